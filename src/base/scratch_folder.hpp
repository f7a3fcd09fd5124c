// A folder of one's own below the system's temporary one, for as long as this object lives: nobody
// else may look into it, and nothing of it stays. One thread.
#pragma once

#include <filesystem>

#include "base/error.hpp"

namespace comfyd {

class ScratchFolder {
public:
    // Code::storage_unavailable.
    static Result<ScratchFolder> make();
    ~ScratchFolder();
    ScratchFolder(ScratchFolder&& other) noexcept;
    ScratchFolder& operator=(ScratchFolder&&) = delete;

    const std::filesystem::path& path() const { return path_; }

private:
    explicit ScratchFolder(std::filesystem::path path) : path_(std::move(path)) {}

    std::filesystem::path path_;
};

}  // namespace comfyd
