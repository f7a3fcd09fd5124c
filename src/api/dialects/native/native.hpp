// ComfyUI's own API in front of the whole fleet: clients and pages written for one ComfyUI server
// work unchanged. Every route stands with and without the prefix /api.
//
// A caller sees the queue, the history and the files of its own tenant, whatever API the jobs came
// by. docs/compatibility.md says where the answers differ from those of a single server.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/router.hpp"
#include "api/services.hpp"
#include "base/pool.hpp"
#include "comfy/server/files.hpp"

namespace comfyd::api {

namespace native {
class Board;
}

struct NativeParts {
    Executor board;                  // of the one that follows the jobs for the sockets
    Pool& pool;                      // for disk
    Pool& media;                     // for pictures, which may take long
    std::filesystem::path folder;    // settings and documents of users, names of uploaded files
    std::filesystem::path frontend;  // the editor's files; empty: none are served
    // Runs on `media`. Code::invalid_argument for what is no picture. Empty: not available.
    std::function<
        Result<std::string>(const std::string& picture, const comfy::server::PictureForm& form)>
        convert_picture{};
    // The picture with the alpha of another one; PNG. As above.
    std::function<Result<std::string>(const std::string& picture, const std::string& mask)>
        replace_alpha{};
};

// Before jobs::Service::recover(). Returns the board, to be stopped on its executor.
std::shared_ptr<native::Board> add_native(
    Router& router, const Services& services, NativeParts parts
);

}  // namespace comfyd::api
