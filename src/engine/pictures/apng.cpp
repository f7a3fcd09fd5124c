#include "engine/pictures/apng.hpp"

#include <zlib.h>

#include <algorithm>
#include <string_view>

#include "engine/pictures/formats.hpp"
#include "engine/pictures/png_chunks.hpp"

namespace comfyd::engine::pictures {
namespace {

constexpr std::size_t kSignatureBytes = 8;
constexpr std::size_t kChunkFrame = 12;  // length, type and checksum

std::string big_endian(std::uint32_t number) {
    std::string bytes(4, '\0');
    for (std::size_t i = 0; i < 4; ++i) {
        bytes[i] = static_cast<char>(number >> (24 - 8 * i));
    }
    return bytes;
}

std::uint32_t big_endian(std::string_view bytes) {
    std::uint32_t number = 0;
    for (std::size_t i = 0; i < 4; ++i) {
        number = number << 8 | static_cast<unsigned char>(bytes[i]);
    }
    return number;
}

std::string chunk(std::string_view type, std::string_view content) {
    const std::string body = std::string(type) + std::string(content);
    const auto checksum = crc32_z(0, reinterpret_cast<const Bytef*>(body.data()), body.size());
    return big_endian(static_cast<std::uint32_t>(content.size())) + body +
           big_endian(static_cast<std::uint32_t>(checksum));
}

// The content of every chunk of one type.
std::vector<std::string_view> contents(std::string_view png, std::string_view type) {
    std::vector<std::string_view> found;
    png.remove_prefix(kSignatureBytes);
    while (png.size() >= kChunkFrame) {
        const std::size_t length = big_endian(png);
        if (png.substr(4, 4) == type) {
            found.push_back(png.substr(8, length));
        }
        png.remove_prefix(std::min(png.size(), length + kChunkFrame));
    }
    return found;
}

// How long a frame stays; the whole canvas replaces what was there.
std::string frame_control(std::uint32_t sequence, std::string_view header, int duration_ms) {
    constexpr std::uint32_t kThousandths = 1000;
    const auto duration = static_cast<std::uint32_t>(duration_ms);
    const std::string delay = big_endian(duration << 16 | kThousandths);
    return chunk(
        "fcTL",
        big_endian(sequence) + std::string(header.substr(0, 8)) + std::string(8, '\0') + delay +
            std::string(2, '\0')
    );
}

}  // namespace

Outcome<std::string> assemble_apng(
    const std::function<Outcome<std::optional<ApngFrame>>()>& next,
    int loops,
    const std::vector<PngChunk>& chunks
) {
    std::string header;
    std::string first_control;  // which a still picture does not have
    std::string data;
    std::uint32_t count = 0;
    std::uint32_t sequence = 0;
    while (true) {
        const auto frame = next();
        if (!frame) {
            return tl::unexpected(frame.error());
        }
        if (!*frame) {
            break;
        }
        const auto& [png, duration_ms] = **frame;
        if (duration_ms < 0 || duration_ms > 0xFFFF) {
            return refuse("a frame of an animated PNG stays at most 65.535 seconds");
        }
        const std::string_view shape = contents(png, "IHDR").at(0);
        const std::string control = frame_control(sequence++, shape, duration_ms);
        if (count == 0) {
            header = shape;
            first_control = control;
        } else {
            data += control;
        }
        for (const std::string_view content : contents(png, "IDAT")) {
            data += count == 0 ? chunk("IDAT", content)
                               : chunk("fdAT", big_endian(sequence++) + std::string(content));
        }
        ++count;
    }
    if (count == 0) {
        return refuse("there is nothing to write");
    }
    std::string file = std::string(kPngSignature) + chunk("IHDR", header);
    if (count > 1) {
        const auto plays = static_cast<std::uint32_t>(loops);
        file += chunk("acTL", big_endian(count) + big_endian(plays)) + first_control;
    }
    file += data;
    for (const auto& [type, content] : chunks) {
        file += chunk(type, content);
    }
    return file + chunk("IEND", "");
}

}  // namespace comfyd::engine::pictures
