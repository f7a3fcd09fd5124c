#include "media/metadata.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "media/bytes.hpp"

namespace comfyd::media {
namespace {

constexpr std::string_view kPng("\x89PNG\r\n\x1a\n", 8);

bool is_png_picture(std::string_view type) {
    static constexpr std::array<std::string_view, 9> kKept{
        "iCCP", "sRGB", "gAMA", "cHRM", "tRNS", "pHYs", "acTL", "fcTL", "fdAT"
    };
    const bool is_critical = !type.empty() && type[0] >= 'A' && type[0] <= 'Z';
    return is_critical || std::ranges::find(kKept, type) != kKept.end();
}

std::optional<std::string> strip_png(std::string_view file) {
    std::string kept(kPng);
    std::size_t at = kPng.size();
    while (at < file.size()) {
        const std::size_t size = std::size_t{big_endian(file, at, 4)} + 12;
        if (size > file.size() - at) {
            return std::nullopt;
        }
        const std::string_view type = file.substr(at + 4, 4);
        if (is_png_picture(type)) {
            kept += file.substr(at, size);
        }
        if (type == "IEND") {
            return kept;
        }
        at += size;
    }
    return std::nullopt;
}

constexpr std::string_view kExif("Exif\0\0", 6);
constexpr std::uint32_t kOrientationTag = 0x0112;

// Of an EXIF block; kAsItIs where it says nothing that can be.
Orientation exif_orientation(std::string_view block) {
    if (!block.starts_with(kExif)) {
        return kAsItIs;
    }
    const auto said = tiff_number(block.substr(kExif.size()), kOrientationTag);
    return said && *said >= 1 && *said <= 8 ? static_cast<Orientation>(*said) : kAsItIs;
}

// A block that says nothing else, with its marker.
std::string orientation_block(Orientation orientation) {
    std::string tiff("MM\0\x2A\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0", 19);
    tiff += static_cast<char>(orientation);
    tiff += std::string(6, '\0');
    const std::size_t size = 2 + kExif.size() + tiff.size();
    return std::string("\xFF\xE1") + static_cast<char>(size >> 8) + static_cast<char>(size & 0xFF) +
           std::string(kExif) + tiff;
}

// Calls `with(marker, all of it)` for the parts before the pixels. Where those begin; 0: the file
// is damaged.
template <class With>
std::size_t each_jpeg_part(std::string_view file, const With& with) {
    std::size_t at = 2;
    while (at + 4 <= file.size() && byte_at(file, at) == 0xFF) {
        const std::uint8_t marker = byte_at(file, at + 1);
        if (marker == 0xDA) {
            return at;
        }
        const std::size_t size = 2 + std::size_t{big_endian(file, at + 2, 2)};
        if (size > file.size() - at) {
            break;
        }
        with(marker, file.substr(at, size));
        at += size;
    }
    return 0;
}

std::optional<std::string> strip_jpeg(std::string_view file) {
    std::string kept(file.substr(0, 2));
    if (const Orientation orientation = jpeg_orientation(file); orientation != kAsItIs) {
        kept += orientation_block(orientation);
    }
    const std::size_t pixels = each_jpeg_part(file, [&kept](std::uint8_t marker, auto whole) {
        constexpr std::array<std::uint8_t, 3> kDropped{0xE1, 0xED, 0xFE};  // EXIF, IPTC, comments
        if (std::ranges::find(kDropped, marker) == kDropped.end()) {
            kept += whole;
        }
    });
    return pixels == 0 ? std::nullopt : std::optional(kept.append(file.substr(pixels)));
}

std::string little(std::uint32_t number) {
    std::string bytes;
    for (int shift = 0; shift < 32; shift += 8) {
        bytes += static_cast<char>(number >> shift & 0xFF);
    }
    return bytes;
}

// Calls `with(type, whole chunk)`; false: the file is damaged.
template <class With>
bool each_webp_chunk(std::string_view file, const With& with) {
    std::size_t at = 12;
    while (at + 8 <= file.size()) {
        const std::size_t length = little_endian(file, at + 4, 4);
        if (length > file.size() - at - 8) {
            return false;
        }
        const std::size_t size = std::min(8 + length + (length & 1), file.size() - at);
        with(file.substr(at, 4), file.substr(at, size));
        at += size;
    }
    return at >= file.size();
}

std::optional<std::string> strip_webp(std::string_view file) {
    constexpr std::uint8_t kExifAndXmp = 0x0C;
    std::string kept("WEBP");
    const bool is_whole = each_webp_chunk(file, [&kept](auto type, auto chunk) {
        if (type == "EXIF" || type == "XMP ") {
            return;
        }
        kept += chunk;
        if (type == "VP8X" && chunk.size() > 8) {
            char& flags = kept[kept.size() - chunk.size() + 8];
            flags = static_cast<char>(static_cast<std::uint8_t>(flags) & ~kExifAndXmp);
        }
    });
    return is_whole ? std::optional("RIFF" + little(static_cast<std::uint32_t>(kept.size())) + kept)
                    : std::nullopt;
}

}  // namespace

std::optional<std::string> strip_metadata(std::string_view file) {
    if (file.starts_with(kPng)) {
        return strip_png(file);
    }
    if (file.starts_with("\xff\xd8\xff")) {
        return strip_jpeg(file);
    }
    if (file.starts_with("RIFF") && part(file, 8, 4) == "WEBP") {
        return strip_webp(file);
    }
    return std::nullopt;
}

std::optional<std::uint32_t> tiff_number(std::string_view tiff, std::uint32_t tag) {
    constexpr std::uint32_t kShort = 3;
    const bool is_big = tiff.starts_with("MM");
    const auto number = [&](std::size_t at, int bytes) {
        return is_big ? big_endian(tiff, at, bytes) : little_endian(tiff, at, bytes);
    };
    const std::size_t folder = number(4, 4);
    const std::uint32_t entries = number(folder, 2);
    for (std::size_t i = 0; i < entries && folder + 2 + 12 * i < tiff.size(); ++i) {
        const std::size_t entry = folder + 2 + 12 * i;
        if (number(entry, 2) == tag) {
            return number(entry + 8, number(entry + 2, 2) == kShort ? 2 : 4);
        }
    }
    return std::nullopt;
}

Orientation jpeg_orientation(std::string_view file) {
    Orientation orientation = kAsItIs;
    each_jpeg_part(file, [&orientation](std::uint8_t marker, std::string_view whole) {
        if (marker == 0xE1 && orientation == kAsItIs) {
            orientation = exif_orientation(part(whole, 4, whole.size()));
        }
    });
    return orientation;
}

std::vector<std::pair<std::string, std::string>> animated_png_texts(std::string_view file) {
    std::vector<std::pair<std::string, std::string>> texts;
    std::size_t at = kPng.size();
    while (at + 12 <= file.size()) {
        const std::size_t length = big_endian(file, at, 4);
        const std::string_view content = part(file, at + 8, length);
        const std::size_t end = content.find('\0');
        if (part(file, at + 4, 4) == "comf" && end != std::string_view::npos) {
            texts.emplace_back(content.substr(0, end), content.substr(end + 1));
        }
        at += length + 12;
    }
    return texts;
}

std::string_view webp_exif(std::string_view file) {
    std::string_view found;
    each_webp_chunk(file, [&found](auto type, auto chunk) {
        if (type == "EXIF" && chunk.size() > 8) {
            found = chunk.substr(8, little_endian(chunk, 4, 4));
        }
    });
    return found;
}

}  // namespace comfyd::media
