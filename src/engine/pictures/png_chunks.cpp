#include "engine/pictures/png_chunks.hpp"

#include <cstddef>
#include <cstdint>

namespace comfyd::engine::pictures {
namespace {

constexpr std::size_t kFrameBytes = 12;  // length, type and checksum of a chunk

std::uint32_t big_endian(std::string_view bytes) {
    std::uint32_t number = 0;
    for (std::size_t i = 0; i < 4; ++i) {
        number = number << 8 | static_cast<unsigned char>(bytes[i]);
    }
    return number;
}

// Takes the first chunk off `rest`; a damaged file ends with what is left of it.
struct Chunk {
    std::string_view type;
    std::string_view whole;
};
Chunk take_chunk(std::string_view& rest) {
    const std::size_t length = rest.size() >= kFrameBytes ? big_endian(rest) : 0;
    const bool complete = rest.size() >= kFrameBytes && length <= rest.size() - kFrameBytes;
    const std::size_t size = complete ? length + kFrameBytes : rest.size();
    const Chunk chunk{complete ? rest.substr(4, 4) : std::string_view(), rest.substr(0, size)};
    rest.remove_prefix(size);
    return chunk;
}

bool is_text(std::string_view type) {
    return type == "tEXt" || type == "zTXt" || type == "iTXt" || type == "iCCP";
}

}  // namespace

bool is_animated_png(std::string_view file) {
    file.remove_prefix(kPngSignature.size());
    while (!file.empty()) {
        const Chunk chunk = take_chunk(file);
        if (chunk.type == "acTL" || chunk.type == "IDAT") {
            return chunk.type == "acTL";
        }
    }
    return false;
}

std::unique_ptr<const std::string> without_texts(std::string_view file) {
    if (!file.starts_with(kPngSignature)) {
        return nullptr;
    }
    std::string kept(kPngSignature);
    for (std::string_view rest = file.substr(kPngSignature.size()); !rest.empty();) {
        const Chunk chunk = take_chunk(rest);
        if (!is_text(chunk.type)) {
            kept += chunk.whole;
        }
    }
    return kept.size() == file.size() ? nullptr
                                      : std::make_unique<const std::string>(std::move(kept));
}

}  // namespace comfyd::engine::pictures
