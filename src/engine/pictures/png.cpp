#include "engine/pictures/png.hpp"

#include <spng.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>

#include "engine/nodes/call.hpp"
#include "engine/nodes/kernel.hpp"

namespace comfyd::engine {
namespace {

constexpr std::string_view kSignature("\x89PNG\r\n\x1a\n", 8);
constexpr std::size_t kChunkBytesMax = 64UL * 1024 * 1024;  // of texts and the like, all together
constexpr std::size_t kStopCheckRows = 64;
constexpr std::uint8_t kAlphaBit = 4;  // of colour types

struct Closer {
    void operator()(spng_ctx* context) const { spng_ctx_free(context); }
};
using Context = std::unique_ptr<spng_ctx, Closer>;

tl::unexpected<PngFailure> refuse(std::string text) {
    return tl::unexpected(PngFailure{std::move(text)});
}
tl::unexpected<PngFailure> refuse_broken(int error) {
    return refuse(std::string("the PNG data is damaged: ") + spng_strerror(error));
}

std::uint32_t big_endian(std::string_view bytes) {
    std::uint32_t number = 0;
    for (std::size_t i = 0; i < 4; ++i) {
        number = number << 8 | static_cast<unsigned char>(bytes[i]);
    }
    return number;
}

// An open decoder with its header, and how its samples become floats.
struct Source {
    Context context;
    spng_ihdr header{};
    bool has_mask = false;
    int format = SPNG_FMT_RGB8;
    float scale = 0;             // sample * scale, or
    bool divide_by_255 = false;  // sample / 255, which is what ComfyUI does with 8-bit colour

    std::size_t row_bytes() const {
        const std::size_t pixel_bytes = format == SPNG_FMT_RGB8    ? 3
                                        : format == SPNG_FMT_RGBA8 ? 4
                                                                   : 8;
        return header.width * pixel_bytes;
    }
    bool interlaced() const { return header.interlace_method != SPNG_INTERLACE_NONE; }
    // An interlaced picture comes in passes that each add pixels to the rows, so all rows are kept.
    std::size_t scratch_bytes() const { return row_bytes() * (interlaced() ? header.height : 1); }
};

void choose_format(Source& source, bool has_transparency) {
    const spng_ihdr& header = source.header;
    const bool gray = header.color_type == SPNG_COLOR_TYPE_GRAYSCALE ||
                      header.color_type == SPNG_COLOR_TYPE_GRAYSCALE_ALPHA;
    const bool indexed = header.color_type == SPNG_COLOR_TYPE_INDEXED;
    const bool alpha = header.color_type == SPNG_COLOR_TYPE_GRAYSCALE_ALPHA ||
                       header.color_type == SPNG_COLOR_TYPE_TRUECOLOR_ALPHA;
    source.has_mask = alpha || indexed || has_transparency;
    if (header.bit_depth == 16) {
        source.format = SPNG_FMT_RGBA16;
        source.scale = 1.0F / 65535.0F;
    } else {
        source.format = source.has_mask || gray ? SPNG_FMT_RGBA8 : SPNG_FMT_RGB8;
        source.divide_by_255 = !gray;
        // ComfyUI's decoder widens gray to 16 bits by a shift, so that white is a little less
        // than 1.
        source.scale = gray ? 256.0F / 65535.0F : 0;
    }
}

tl::expected<Source, PngFailure> open_png(std::string_view file) {
    if (!file.starts_with(kSignature)) {
        return refuse("it is not a PNG");
    }
    Source source;
    source.context.reset(spng_ctx_new(0));
    spng_ctx* context = source.context.get();
    if (context == nullptr) {
        return refuse("there is no memory for the decoder");
    }
    // Before the library looks: it calls sizes that it cannot represent damage.
    if (file.size() >= kSignature.size() + 16) {
        const std::string_view sides = file.substr(kSignature.size() + 8, 8);
        if (big_endian(sides) > kSideMax || big_endian(sides.substr(4)) > kSideMax) {
            return refuse(
                "it measures " + std::to_string(big_endian(sides)) + " x " +
                std::to_string(big_endian(sides.substr(4))) + "; at most " +
                std::to_string(kSideMax) + " x " + std::to_string(kSideMax) + " can be loaded"
            );
        }
    }
    spng_set_image_limits(context, kSideMax, kSideMax);
    spng_set_chunk_limits(context, kChunkBytesMax, kChunkBytesMax);
    int error = spng_set_png_buffer(context, file.data(), file.size());
    error = error != 0 ? error : spng_get_ihdr(context, &source.header);
    if (error != 0) {
        return refuse_broken(error);
    }
    // Reads all that stands before the pixels, texts included.
    spng_trns transparency{};
    const int found = spng_get_trns(context, &transparency);
    if (found != 0 && found != SPNG_ECHUNKAVAIL) {
        return refuse_broken(found);
    }
    choose_format(source, found == 0);
    return source;
}

// Division is not multiplication by the inverse: last bits differ.
COMFYD_KERNEL void divide_by_255(const std::uint8_t* from, std::size_t count, float* into) {
    for (std::size_t i = 0; i < count; ++i) {
        into[i] = static_cast<float>(from[i]) / 255.0F;
    }
}

template <class Sample>
void convert_row(
    const Source& source, const std::uint8_t* bytes, std::size_t width, float* rgb, float* mask
) {
    const std::size_t step = source.format == SPNG_FMT_RGB8 ? 3 : 4;
    const auto to_float = [&](std::size_t at) {
        Sample sample;
        std::memcpy(&sample, bytes + at * sizeof(Sample), sizeof sample);
        const auto number = static_cast<float>(sample);
        return source.divide_by_255 ? number / 255.0F : number * source.scale;
    };
    for (std::size_t x = 0; x < width; ++x) {
        rgb[x * 3] = to_float(x * step);
        rgb[x * 3 + 1] = to_float(x * step + 1);
        rgb[x * 3 + 2] = to_float(x * step + 2);
    }
    if (mask != nullptr) {
        for (std::size_t x = 0; x < width; ++x) {
            mask[x] = 1.0F - to_float(x * step + 3);
        }
    }
}

void convert_any_row(
    const Source& source, const std::uint8_t* bytes, std::size_t row, float* rgb, float* mask
) {
    const std::size_t width = source.header.width;
    float* const rgb_row = rgb + row * width * 3;
    float* const mask_row = source.has_mask ? mask + row * width : nullptr;
    if (source.format == SPNG_FMT_RGB8 && source.divide_by_255) {
        divide_by_255(bytes, width * 3, rgb_row);
    } else if (source.format == SPNG_FMT_RGBA16) {
        convert_row<std::uint16_t>(source, bytes, width, rgb_row, mask_row);
    } else {
        convert_row<std::uint8_t>(source, bytes, width, rgb_row, mask_row);
    }
}

// Decodes each row to place(row) and then calls read(row); of an interlaced picture each pass adds
// to the rows. SPNG_EOI: all of it; 0: it was stopped.
template <class Place, class Read>
int decode_rows(
    const Source& source,
    std::size_t row_bytes,
    const Place& place,
    const Read& read,
    const std::function<bool()>& stopped
) {
    spng_ctx* context = source.context.get();
    const int transparency = source.format == SPNG_FMT_RAW ? 0 : SPNG_DECODE_TRNS;
    int error = spng_decode_image(
        context, nullptr, 0, source.format, SPNG_DECODE_PROGRESSIVE | transparency
    );
    for (std::size_t count = 0; error == 0; ++count) {
        if (count % kStopCheckRows == 0 && stopped()) {
            return 0;
        }
        spng_row_info info{};
        error = spng_get_row_info(context, &info);
        if (error != 0) {
            return error;
        }
        error = spng_decode_row(context, place(info.row_num), row_bytes);
        if (error == 0 || error == SPNG_EOI) {
            read(info.row_num);
        }
    }
    return error;
}

}  // namespace

tl::expected<PngHeader, PngFailure> read_png_header(std::string_view file) {
    const auto source = open_png(file);
    if (!source) {
        return tl::unexpected(source.error());
    }
    return PngHeader{
        source->header.width,
        source->header.height,
        source->has_mask,
        (source->header.color_type & kAlphaBit) != 0,
        source->scratch_bytes()
    };
}

tl::expected<void, PngFailure> decode_png(
    std::string_view file,
    std::uint8_t* scratch,
    float* rgb,
    float* mask,
    const std::function<bool()>& stopped
) {
    const auto source = open_png(file);
    if (!source) {
        return tl::unexpected(source.error());
    }
    const std::size_t row_bytes = source->row_bytes();
    const bool interlaced = source->interlaced();
    const auto place = [&](std::size_t y) { return scratch + (interlaced ? y * row_bytes : 0); };
    const auto read = [&](std::size_t y) {
        if (!interlaced) {
            convert_any_row(*source, scratch, y, rgb, mask);
        }
    };
    const int error = decode_rows(*source, row_bytes, place, read, stopped);
    if (error != SPNG_EOI) {
        return error != 0 ? refuse_broken(error) : tl::expected<void, PngFailure>();
    }
    for (std::size_t y = 0; interlaced && y < source->header.height; ++y) {
        if (y % kStopCheckRows == 0 && stopped()) {
            return {};
        }
        convert_any_row(*source, place(y), y, rgb, mask);
    }
    return {};
}

tl::expected<void, PngFailure> decode_png_rgba(
    std::string_view file, std::uint8_t* rgba, const std::function<bool()>& stopped
) {
    auto source = open_png(file);
    if (!source) {
        return tl::unexpected(source.error());
    }
    source->format = SPNG_FMT_RGBA8;
    const std::size_t row_bytes = source->row_bytes();
    const auto place = [&](std::size_t y) { return rgba + y * row_bytes; };
    const int error = decode_rows(*source, row_bytes, place, [](std::size_t) {}, stopped);
    if (error != SPNG_EOI && error != 0) {
        return refuse_broken(error);
    }
    return {};
}

tl::expected<void, PngFailure> decode_png_raw(
    std::string_view file,
    const std::function<std::uint8_t*(std::size_t y)>& row,
    const std::function<bool()>& stopped
) {
    auto source = open_png(file);
    if (!source) {
        return tl::unexpected(source.error());
    }
    source->format = SPNG_FMT_RAW;
    const std::size_t samples = (source->header.color_type & kAlphaBit) != 0 ? 4 : 3;
    const std::size_t row_bytes = source->header.width * samples * sizeof(std::uint16_t);
    const int error = decode_rows(*source, row_bytes, row, [](std::size_t) {}, stopped);
    if (error != SPNG_EOI && error != 0) {
        return refuse_broken(error);
    }
    return {};
}

std::vector<PngText> read_png_texts(std::string_view file) {
    std::vector<PngText> texts;
    const auto source = open_png(file);
    std::uint32_t count = 0;
    if (!source || spng_get_text(source->context.get(), nullptr, &count) != 0) {
        return texts;
    }
    std::vector<spng_text> chunks(count);
    if (spng_get_text(source->context.get(), chunks.data(), &count) == 0) {
        for (const spng_text& chunk : chunks) {
            texts.push_back({chunk.keyword, std::string(chunk.text, chunk.length)});
        }
    }
    return texts;
}

}  // namespace comfyd::engine
