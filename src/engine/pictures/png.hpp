// PNG pictures to and from ComfyUI's floats. Holds no state. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "engine/files.hpp"

namespace comfyd::engine {

// What keeps a picture from being read or written. Nodes turn it into their own error.
struct PngFailure {
    std::string text;
};

struct PngHeader {
    std::size_t width = 0;
    std::size_t height = 0;
    bool has_mask = false;          // alpha, or a palette: ComfyUI decodes those with alpha
    bool has_alpha = false;         // a channel of its own
    std::size_t scratch_bytes = 0;  // working space that decode_png() needs
};

// Refuses other formats, sides above kSideMax and texts that take too much memory, each with its
// reason. Of an animation the still
// picture is read that every viewer shows.
tl::expected<PngHeader, PngFailure> read_png_header(std::string_view file);

// Fills `rgb` with height * width * 3 floats and, where the header says so, `mask` with 1 - alpha.
// Asks `stopped` now and then and ends early when it says so.
tl::expected<void, PngFailure> decode_png(
    std::string_view file,
    std::uint8_t* scratch,
    float* rgb,
    float* mask,
    const std::function<bool()>& stopped
);

// The same in 8 bits: fills `rgba` with height * width * 4 bytes.
tl::expected<void, PngFailure> decode_png_rgba(
    std::string_view file, std::uint8_t* rgba, const std::function<bool()>& stopped
);

// Deep colour as it lies in the file: 3 or 4 samples of 16 bits, the high byte first. row(y) says
// where each row goes; of an interlaced picture each is asked for several times.
tl::expected<void, PngFailure> decode_png_raw(
    std::string_view file,
    const std::function<std::uint8_t*(std::size_t y)>& row,
    const std::function<bool()>& stopped
);

struct PngText {
    std::string keyword;
    std::string text;  // ASCII
};

struct PngPicture {
    const float* pixels = nullptr;  // rows of width * channels
    std::size_t width = 0;
    std::size_t height = 0;
    std::size_t channels = 3;  // 1: gray, 3 or 4
    int bit_depth = 8;         // or 16
    // Set where the rows lie elsewhere; what it gives need only be there until the next call.
    std::function<const float*(std::size_t y)> row{};
};

// sample = trunc(clip(largest * x, 0, largest)), as ComfyUI. `level` is zlib's.
tl::expected<void, PngFailure> encode_png(
    const PngPicture& picture,
    int level,
    const std::vector<PngText>& texts,
    const FileSink& sink,
    const std::function<bool()>& stopped
);

struct PngBytes {
    const std::uint8_t* pixels = nullptr;  // rows of width * channels
    std::size_t width = 0;
    std::size_t height = 0;
    std::size_t channels = 4;  // 1, 3 or 4
};
tl::expected<std::string, PngFailure> encode_png(
    const PngBytes& picture, int level, const std::vector<PngText>& texts
);

// The uncompressed texts of a PNG, in their order. Damaged files have none.
std::vector<PngText> read_png_texts(std::string_view file);

}  // namespace comfyd::engine
