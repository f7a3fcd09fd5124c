// One content on its way to Drive by a resumable upload: chunk by chunk, each going on where the
// service says that the last one ended, also after a crash. Internal to drive.
#pragma once

#include <string>
#include <string_view>

#include "assets/drive/drive.hpp"

namespace comfyd::assets::drive {

class Upload {
public:
    // `drive` outlives it.
    Upload(Drive& drive, std::string name, Source source);

    // The file's id.
    Task<Result<std::string>> run();

private:
    // How far it is: an id when it is done.
    struct Step {
        std::optional<std::string> id{};
        bool is_session_gone = false;
    };

    // False: there is nothing to go on with.
    bool resume();
    Task<Result<>> begin();
    bool is_session(std::string_view url) const;
    Task<Result<Step>> advance();
    Task<Result<net::ClientResponse>> put(std::string range, std::string bytes);
    Result<Step> understand(const net::ClientResponse& answer);
    Result<Step> finished(const net::ClientResponse& answer) const;

    Drive& drive_;
    const std::string name_;
    const Source source_;
    std::string session_;     // its address is the right to write: never shown
    std::uint64_t sent_ = 0;  // that the service has
    bool is_unsure_ = false;  // the last answer did not come: it is to be asked how far it is
};

}  // namespace comfyd::assets::drive
