// For tests: pictures as ComfyUI saves them, as far as a reader of their texts can tell.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace comfyd::workflow::test {

inline std::string big(std::uint32_t number, int size = 4) {
    std::string bytes;
    for (int shift = (size - 1) * 8; shift >= 0; shift -= 8) {
        bytes += static_cast<char>(number >> shift);
    }
    return bytes;
}

inline std::string chunk(std::string_view type, std::string_view data) {
    return big(static_cast<std::uint32_t>(data.size())) + std::string(type) + std::string(data) +
           "crc.";
}

inline std::string text_chunk(std::string_view name, std::string_view text) {
    return chunk("tEXt", std::string(name) + '\0' + std::string(text));
}

inline std::string png(const std::string& chunks) {
    return std::string("\x89PNG\r\n\x1a\n") + chunk("IHDR", std::string(13, '\1')) +
           chunk("IDAT", "picture") + chunks + chunk("IEND", "");
}

}  // namespace comfyd::workflow::test
