#include "engine/pictures/exif.hpp"

#include <algorithm>
#include <cstdint>

namespace comfyd::engine::pictures {
namespace {

void append_number(std::string& bytes, std::uint32_t number, int size) {
    for (int shift = (size - 1) * 8; shift >= 0; shift -= 8) {
        bytes += static_cast<char>(number >> shift);
    }
}

}  // namespace

std::string make_exif(const std::vector<std::pair<std::string, std::string>>& texts) {
    constexpr std::uint32_t kModel = 0x0110;
    constexpr std::uint32_t kText = 2;
    std::vector<std::pair<std::uint32_t, std::string>> tags;
    for (const auto& [key, text] : texts) {
        const auto tag = kModel - static_cast<std::uint32_t>(tags.size());
        tags.emplace_back(tag, key + ":" + text + '\0');
    }
    std::ranges::sort(tags);
    std::string exif("Exif\0\0MM\0*\0\0\0\x08", 14);
    std::string values;
    const auto values_at = static_cast<std::uint32_t>(8 + 2 + tags.size() * 12 + 4);
    append_number(exif, static_cast<std::uint32_t>(tags.size()), 2);
    for (const auto& [tag, text] : tags) {
        append_number(exif, tag, 2);
        append_number(exif, kText, 2);
        append_number(exif, static_cast<std::uint32_t>(text.size()), 4);
        if (text.size() <= 4) {
            exif += text + std::string(4 - text.size(), '\0');
            continue;
        }
        append_number(exif, values_at + static_cast<std::uint32_t>(values.size()), 4);
        values += text;
        values += std::string(values.size() % 2, '\0');
    }
    append_number(exif, 0, 4);
    return exif + values;
}

}  // namespace comfyd::engine::pictures
