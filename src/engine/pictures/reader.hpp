// Picture files as ComfyUI sees them: a batch of frames in its floats, and whether they have alpha.
//
// The formats are PNG and animated PNG, JPEG, GIF, WebP, BMP and TIFF, told apart by their first
// bytes and never by a name. Files are not trusted: sizes are checked before memory is taken, and a
// damaged file is a Failure. A Reader belongs to one thread; different readers are independent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace comfyd::engine::pictures {

inline constexpr std::size_t kFramesMax = 10'000;

// Why a picture cannot be read or written. Callers turn it into their own error.
struct Failure {
    std::string text;
};
template <class T = void>
using Outcome = tl::expected<T, Failure>;

struct Facts {
    std::size_t width = 0;  // of every frame, after the rotation that the file asks for
    std::size_t height = 0;
    std::size_t frames_max = 1;
    bool has_alpha = false;         // also for palettes, which ComfyUI decodes with alpha
    std::size_t scratch_bytes = 0;  // working space that read() needs
};

class Reader {
public:
    virtual ~Reader() = default;
    virtual const Facts& facts() const = 0;
    // Fills `rgb` with height * width * 3 floats and, where the facts say so, `mask` with 1 -
    // alpha. False after the last frame.
    virtual Outcome<bool> read(std::uint8_t* scratch, float* rgb, float* mask) = 0;
};

// `file` must outlive the reader. `stopped` is asked now and then; when it says so, reading ends
// early and the content does not matter.
Outcome<std::unique_ptr<Reader>> open(std::string_view file, std::function<bool()> stopped);

// The first frame in 8 bits, unrotated. `stopped` as above.
struct Bitmap {
    std::size_t width = 0;
    std::size_t height = 0;
    std::vector<std::uint8_t> rgba;
    bool has_alpha = false;
};
Outcome<Bitmap> decode_rgba(
    std::string_view file,
    std::size_t pixels_max,
    const std::function<bool()>& stopped = [] { return false; }
);

}  // namespace comfyd::engine::pictures
