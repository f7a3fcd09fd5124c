// Google Drive's interface, version 3: files of one folder, by their ids. Belongs to one executor.
//
// Names are not unique there: two uploads of one name make two files. An upload whose answer is
// lost is asked about, never begun again in vain.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "assets/blob_store.hpp"
#include "assets/drive/tokens.hpp"
#include "assets/gate.hpp"
#include "assets/patience.hpp"
#include "base/json.hpp"
#include "base/pool.hpp"
#include "base/task.hpp"
#include "net/client.hpp"

namespace comfyd::assets::drive {

inline constexpr std::uint64_t kChunkUnit = 256 * 1024;  // chunks are multiples of it but the last

struct DriveOptions {
    std::string folder;      // id of the folder, or of the shared drive itself
    std::string drive_id{};  // of the shared drive that the folder is in; empty: none
    bool shares = false;     // whoever has the link may read
    std::string endpoint = "https://www.googleapis.com";
    std::uint64_t chunk_bytes = 32 * kChunkUnit;
    std::size_t parallel_max = 8;
    Patience patience{};
    std::string ca_file{};
};

// What an answer means: Code::not_found, Code::storage_full, Code::storage_unavailable (it may
// pass), Code::config_invalid (somebody must set it right), Code::range_not_satisfiable.
Error to_error(const net::ClientResponse& answer);

class Drive {
public:
    // `clock` and `pool` outlive it.
    Drive(Executor executor, DriveOptions options, Identity identity, Clock& clock, Pool& pool);

    // The file's id.
    Task<Result<std::string>> put(std::string name, Source source);
    Task<Result<std::string>> read(std::string id, std::uint64_t first, std::uint64_t length);
    Task<Result<>> remove(std::string id);
    Task<Result<BlobStore::Page>> list(std::string after);
    // Where anybody gets the bytes; nullopt where the file is not shared, or too large for the
    // service to give it without asking a person first. Code::not_found.
    Task<Result<std::optional<std::string>>> link(std::string id);

private:
    friend class Upload;

    // Signed in, and repeated as to_error() says.
    Task<Result<net::ClientResponse>> send(net::ClientRequest request);
    // Once; as it is.
    Task<Result<net::ClientResponse>> send_once(net::ClientRequest request, bool signs_in);
    Task<Result<>> share(std::string id);
    std::string url_of(std::string_view path, std::string_view query = {}) const;

    Executor executor_;
    const DriveOptions options_;
    Pool& pool_;
    net::Client client_;
    Tokens tokens_;
    Gate gate_;
    Gate uploads_;  // each holds a chunk in memory
};

}  // namespace comfyd::assets::drive
