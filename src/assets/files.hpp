// What the files of the store share.
#pragma once

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/time.hpp"

namespace comfyd::assets {

// A file descriptor that closes itself.
class FileHandle {
public:
    explicit FileHandle(int fd = -1) : fd_(fd) {}
    ~FileHandle();
    FileHandle(FileHandle&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    FileHandle& operator=(FileHandle&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    int get() const { return fd_; }
    bool is_open() const { return fd_ >= 0; }

private:
    int fd_;
};

// Code::storage_full when the disk or the quota is, else Code::storage_unavailable.
Error storage_error(std::string_view doing, const std::filesystem::path& path, int error_number);

timespec to_timespec(Time time);

// `length` bytes of a file from `first` on, fewer at its end. Blocks. Code::not_found.
Result<std::string> read_part(
    const std::filesystem::path& path, std::uint64_t first, std::uint64_t length
);

// It may be there already.
Result<> make_folder(const std::filesystem::path& folder);

}  // namespace comfyd::assets
