#include "base/scratch_folder.hpp"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/log.hpp"

namespace comfyd {

namespace fs = std::filesystem;

Result<ScratchFolder> ScratchFolder::make() {
    std::error_code error;
    std::string name = fs::temp_directory_path(error) / "comfyd-XXXXXX";
    if (error || ::mkdtemp(name.data()) == nullptr) {
        return fail(
            Code::storage_unavailable,
            "no temporary folder: " + (error ? error.message() : std::strerror(errno))
        );
    }
    return ScratchFolder(name);
}

ScratchFolder::ScratchFolder(ScratchFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})) {}

ScratchFolder::~ScratchFolder() {
    if (path_.empty()) {
        return;
    }
    // Links in it are removed, not followed.
    std::error_code error;
    fs::remove_all(path_, error);
    if (error) {
        log::warning(
            "a temporary folder stays", {{"folder", path_.string()}, {"error", error.message()}}
        );
    }
}

}  // namespace comfyd
