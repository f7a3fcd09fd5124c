// Reading numbers out of a file that may end anywhere. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace comfyd::media {

// 0 where the file has ended.
inline std::uint8_t byte_at(std::string_view file, std::size_t at) {
    return at < file.size() ? static_cast<std::uint8_t>(file[at]) : std::uint8_t{0};
}
inline std::uint32_t big_endian(std::string_view file, std::size_t at, int bytes) {
    std::uint32_t number = 0;
    for (int i = 0; i < bytes; ++i) {
        number = number << 8 | byte_at(file, at + static_cast<std::size_t>(i));
    }
    return number;
}
inline std::uint32_t little_endian(std::string_view file, std::size_t at, int bytes) {
    std::uint32_t number = 0;
    for (int i = bytes - 1; i >= 0; --i) {
        number = number << 8 | byte_at(file, at + static_cast<std::size_t>(i));
    }
    return number;
}
// What is there of it.
inline std::string_view part(std::string_view file, std::size_t at, std::size_t size) {
    return at < file.size() ? file.substr(at, size) : std::string_view();
}

}  // namespace comfyd::media
