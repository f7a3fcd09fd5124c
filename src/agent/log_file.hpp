// A log on disk that does not grow without end: when a file is full it is renamed and a new one
// begun, and the oldest is removed. One thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "net/descriptor.hpp"

namespace comfyd::agent {

class LogFile {
public:
    static constexpr std::uint64_t kBytesMax = 10 * 1024 * 1024;
    static constexpr int kFilesMax = 3;  // "x.log", "x.log.1", "x.log.2"

    explicit LogFile(
        std::filesystem::path path, std::uint64_t bytes_max = kBytesMax, int files_max = kFilesMax
    );

    // A disk that takes nothing loses it: a log must not stop what it tells of.
    void append(std::string_view bytes);

private:
    void open();
    void turn();

    std::filesystem::path path_;
    std::uint64_t bytes_max_;
    int files_max_;
    net::Descriptor file_;
    std::uint64_t size_ = 0;
};

}  // namespace comfyd::agent
