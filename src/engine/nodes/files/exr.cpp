#include "engine/nodes/files/exr.hpp"

#include <array>
#include <bit>
#include <cstring>
#include <string_view>

namespace comfyd::engine::nodes {
namespace {

static_assert(std::endian::native == std::endian::little, "EXR is little-endian");

template <class Number>
void append(std::string& bytes, Number number) {
    std::array<char, sizeof number> raw{};
    std::memcpy(raw.data(), &number, sizeof number);
    bytes.append(raw.data(), raw.size());
}

void append_name(std::string& bytes, std::string_view name) {
    bytes += name;
    bytes += '\0';
}

void append_attribute(
    std::string& header, std::string_view name, std::string_view type, std::string_view value
) {
    append_name(header, name);
    append_name(header, type);
    append(header, static_cast<std::int32_t>(value.size()));
    header += value;
}

// In the order of the file, which is alphabetical, and where the pixel has them.
struct Channel {
    char name;
    std::size_t index;
};
std::vector<Channel> channels_of(std::size_t count) {
    if (count == 1) {
        return {{'Y', 0}};
    }
    if (count == 4) {
        return {{'A', 3}, {'B', 2}, {'G', 1}, {'R', 0}};
    }
    return {{'B', 2}, {'G', 1}, {'R', 0}};
}

std::string channel_list(std::size_t count) {
    constexpr std::int32_t kFloat = 2;
    std::string list;
    for (const Channel& channel : channels_of(count)) {
        append_name(list, std::string_view(&channel.name, 1));
        append(list, kFloat);
        append(list, std::int32_t{0});
        append(list, std::int32_t{1});
        append(list, std::int32_t{1});
    }
    return list + '\0';
}

std::string window(const Exr& picture) {
    std::string box;
    append(box, std::int32_t{0});
    append(box, std::int32_t{0});
    append(box, static_cast<std::int32_t>(picture.width - 1));
    append(box, static_cast<std::int32_t>(picture.height - 1));
    return box;
}

std::string number(float value) {
    std::string bytes;
    append(bytes, value);
    return bytes;
}

// Red, green, blue and white as x and y.
std::string chromaticities(bool wide_gamut) {
    constexpr std::array<float, 8> kRec709 = {
        0.64F, 0.33F, 0.30F, 0.60F, 0.15F, 0.06F, 0.3127F, 0.3290F
    };
    constexpr std::array<float, 8> kRec2020 = {
        0.708F, 0.292F, 0.170F, 0.797F, 0.131F, 0.046F, 0.3127F, 0.3290F
    };
    std::string bytes;
    for (const float value : wide_gamut ? kRec2020 : kRec709) {
        append(bytes, value);
    }
    return bytes;
}

std::string header_of(const Exr& picture) {
    std::string header("\x76\x2f\x31\x01\x02\0\0\0", 8);
    append_attribute(header, "channels", "chlist", channel_list(picture.channels));
    append_attribute(header, "compression", "compression", std::string_view("\0", 1));
    append_attribute(header, "dataWindow", "box2i", window(picture));
    append_attribute(header, "displayWindow", "box2i", window(picture));
    append_attribute(header, "lineOrder", "lineOrder", std::string_view("\0", 1));
    append_attribute(header, "screenWindowCenter", "v2f", std::string(8, '\0'));
    append_attribute(header, "screenWindowWidth", "float", number(1.0F));
    append_attribute(header, "gamma", "float", number(1.0F));
    append_attribute(header, "writer", "string", "lavc");
    for (const auto& [name, text] : picture.texts) {
        append_attribute(header, name, "string", text);
    }
    append_attribute(
        header, "chromaticities", "chromaticities", chromaticities(picture.wide_gamut)
    );
    return header + '\0';
}

}  // namespace

bool write_exr(const Exr& picture, const FileSink& sink) {
    std::string header = header_of(picture);
    const std::size_t row_bytes = picture.width * picture.channels * sizeof(float);
    const std::size_t block = 8 + row_bytes;
    const std::size_t first = header.size() + picture.height * sizeof(std::uint64_t);
    for (std::size_t y = 0; y < picture.height; ++y) {
        append(header, static_cast<std::uint64_t>(first + y * block));
    }
    if (!sink(header.data(), header.size())) {
        return false;
    }
    const auto channels = channels_of(picture.channels);
    std::string row;
    for (std::size_t y = 0; y < picture.height; ++y) {
        row.clear();
        append(row, static_cast<std::int32_t>(y));
        append(row, static_cast<std::int32_t>(row_bytes));
        const float* from = picture.pixels + y * picture.width * picture.channels;
        for (const Channel& channel : channels) {
            for (std::size_t x = 0; x < picture.width; ++x) {
                append(row, from[x * picture.channels + channel.index]);
            }
        }
        if (!sink(row.data(), row.size())) {
            return false;
        }
    }
    return true;
}

}  // namespace comfyd::engine::nodes
