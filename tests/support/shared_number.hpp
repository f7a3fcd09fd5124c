// A number that libraries of ours read in another process (preloaded_number.hpp). From one thread.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace comfyd::support {

// For COMFYD_TEST_DISK (faulty_disk.cpp).
inline constexpr std::int64_t kDiskIsFull = 1;
inline constexpr std::int64_t kDiskDoesNotSync = 2;

class SharedNumber {
public:
    // In a file of this path, which is made.
    explicit SharedNumber(std::string path) : path_(std::move(path)) { set(0); }

    void set(std::int64_t value) const {
        const int file = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        const auto written = ::pwrite(file, &value, sizeof value, 0);
        ::close(file);
        if (written != sizeof value) {
            throw std::runtime_error("cannot write " + path_);
        }
    }
    const std::string& path() const { return path_; }

private:
    std::string path_;
};

}  // namespace comfyd::support
