#include "engine/png.hpp"

#include <spng.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>

#include "engine/call.hpp"
#include "engine/kernel.hpp"
#include "engine/pixels.hpp"

namespace comfyd::engine {
namespace {

constexpr std::string_view kSignature("\x89PNG\r\n\x1a\n", 8);
constexpr std::size_t kChunkBytesMax = 64UL * 1024 * 1024;
constexpr std::size_t kStopCheckRows = 64;

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
    spng_trns transparency{};
    choose_format(source, spng_get_trns(context, &transparency) == 0);
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

int write_to_sink(spng_ctx* /*context*/, void* user, void* data, std::size_t size) {
    const auto& sink = *static_cast<const FileSink*>(user);
    return sink(data, size) ? 0 : SPNG_IO_ERROR;
}

tl::expected<void, PngFailure> set_texts(spng_ctx* context, const std::vector<PngText>& texts) {
    std::vector<spng_text> chunks(texts.size());
    for (std::size_t i = 0; i < texts.size(); ++i) {
        spng_text& chunk = chunks[i];
        if (texts[i].keyword.empty() || texts[i].keyword.size() >= sizeof chunk.keyword) {
            return refuse(
                "'" + texts[i].keyword + "' cannot name a text in a PNG: 1 to 79 characters"
            );
        }
        std::memcpy(chunk.keyword, texts[i].keyword.data(), texts[i].keyword.size());
        chunk.type = SPNG_TEXT;
        chunk.length = texts[i].text.size();
        chunk.text = const_cast<char*>(texts[i].text.data());  // only read
    }
    if (chunks.empty()) {
        return {};
    }
    const int error =
        spng_set_text(context, chunks.data(), static_cast<std::uint32_t>(chunks.size()));
    if (error != 0) {
        return refuse(std::string("the texts cannot be written: ") + spng_strerror(error));
    }
    return {};
}

// Makes the samples of one row, in the processor's byte order.
using FillRow = std::function<void(std::size_t y, std::uint8_t* into)>;

struct Encoding {
    std::size_t width;
    std::size_t height;
    std::size_t channels;
    int bit_depth;
    int level;

    std::size_t row_bytes() const {
        return width * channels * static_cast<std::size_t>(bit_depth / 8);
    }
};

int encode_rows(
    spng_ctx* context,
    const Encoding& encoding,
    const FillRow& fill,
    const std::function<bool()>& stopped
) {
    std::vector<std::uint8_t> row(encoding.row_bytes());
    int error = 0;
    for (std::size_t y = 0; y < encoding.height && error == 0; ++y) {
        if (y % kStopCheckRows == 0 && stopped()) {
            return SPNG_IO_ERROR;
        }
        fill(y, row.data());
        error = spng_encode_row(context, row.data(), row.size());
    }
    return error == SPNG_EOI ? 0 : error;
}

spng_color_type color_type(std::size_t channels) {
    return channels == 4   ? SPNG_COLOR_TYPE_TRUECOLOR_ALPHA
           : channels == 3 ? SPNG_COLOR_TYPE_TRUECOLOR
                           : SPNG_COLOR_TYPE_GRAYSCALE;
}

tl::expected<void, PngFailure> encode(
    const Encoding& encoding,
    const FillRow& fill,
    const std::vector<PngText>& texts,
    const FileSink& sink,
    const std::function<bool()>& stopped
) {
    const Context context(spng_ctx_new(SPNG_CTX_ENCODER));
    if (!context) {
        return refuse("there is no memory for the encoder");
    }
    spng_set_png_stream(
        context.get(), &write_to_sink, const_cast<FileSink*>(&sink)
    );  // only called
    spng_ihdr header{};
    header.width = static_cast<std::uint32_t>(encoding.width);
    header.height = static_cast<std::uint32_t>(encoding.height);
    header.bit_depth = static_cast<std::uint8_t>(encoding.bit_depth);
    header.color_type = static_cast<std::uint8_t>(color_type(encoding.channels));
    int error = spng_set_ihdr(context.get(), &header);
    if (error == 0) {
        const auto set = set_texts(context.get(), texts);
        if (!set) {
            return set;
        }
        spng_set_option(context.get(), SPNG_IMG_COMPRESSION_LEVEL, encoding.level);
        // Each row minus the one above, and runs instead of a search for repetitions: for filtered
        // photographs that is as small as zlib's default at level 4 and takes a fifth of the time.
        spng_set_option(context.get(), SPNG_FILTER_CHOICE, SPNG_FILTER_CHOICE_UP);
        spng_set_option(context.get(), SPNG_IMG_COMPRESSION_STRATEGY, Z_RLE);
        error = spng_encode_image(
            context.get(), nullptr, 0, SPNG_FMT_PNG, SPNG_ENCODE_PROGRESSIVE | SPNG_ENCODE_FINALIZE
        );
    }
    error = error != 0 ? error : encode_rows(context.get(), encoding, fill, stopped);
    if (error != 0) {
        return refuse(std::string("the picture cannot be written: ") + spng_strerror(error));
    }
    return {};
}

void to_words(const float* from, std::size_t count, std::uint8_t* into) {
    for (std::size_t i = 0; i < count; ++i) {
        const float scaled = from[i] * 65535.0F;
        const float low = scaled > 0.0F ? scaled : 0.0F;
        const auto word = static_cast<std::uint16_t>(low < 65535.0F ? low : 65535.0F);
        std::memcpy(into + i * sizeof word, &word, sizeof word);
    }
}

}  // namespace

tl::expected<PngHeader, PngFailure> read_png_header(std::string_view file) {
    const auto source = open_png(file);
    if (!source) {
        return tl::unexpected(source.error());
    }
    return PngHeader{
        source->header.width, source->header.height, source->has_mask, source->scratch_bytes()
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
    spng_ctx* context = source->context.get();
    const std::size_t row_bytes = source->row_bytes();
    const bool interlaced = source->interlaced();
    int error = spng_decode_image(
        context, nullptr, 0, source->format, SPNG_DECODE_PROGRESSIVE | SPNG_DECODE_TRNS
    );
    for (std::size_t count = 0; error == 0; ++count) {
        if (count % kStopCheckRows == 0 && stopped()) {
            return {};
        }
        spng_row_info info{};
        error = spng_get_row_info(context, &info);
        if (error != 0) {
            break;
        }
        std::uint8_t* row = scratch + (interlaced ? info.row_num * row_bytes : 0);
        error = spng_decode_row(context, row, row_bytes);
        if (!interlaced && (error == 0 || error == SPNG_EOI)) {
            convert_any_row(*source, row, info.row_num, rgb, mask);
        }
    }
    if (error != SPNG_EOI) {
        return refuse_broken(error);
    }
    for (std::size_t y = 0; interlaced && y < source->header.height; ++y) {
        convert_any_row(*source, scratch + y * row_bytes, y, rgb, mask);
    }
    return {};
}

tl::expected<void, PngFailure> encode_png(
    const PngPicture& picture,
    int level,
    const std::vector<PngText>& texts,
    const FileSink& sink,
    const std::function<bool()>& stopped
) {
    const std::size_t samples = picture.width * picture.channels;
    const auto fill = [&](std::size_t y, std::uint8_t* into) {
        const float* row = picture.row ? picture.row(y) : picture.pixels + y * samples;
        picture.bit_depth == 16 ? to_words(row, samples, into) : to_bytes(row, samples, into);
    };
    return encode(
        {picture.width, picture.height, picture.channels, picture.bit_depth, level},
        fill,
        texts,
        sink,
        stopped
    );
}

tl::expected<std::string, PngFailure> encode_png(
    const PngBytes& picture, int level, const std::vector<PngText>& texts
) {
    const std::size_t samples = picture.width * picture.channels;
    const auto fill = [&](std::size_t y, std::uint8_t* into) {
        std::copy_n(picture.pixels + y * samples, samples, into);
    };
    std::string file;
    const FileSink sink = [&file](const void* data, std::size_t size) {
        file.append(static_cast<const char*>(data), size);
        return true;
    };
    const auto done =
        encode({picture.width, picture.height, picture.channels, 8, level}, fill, texts, sink, [] {
            return false;
        });
    if (!done) {
        return tl::unexpected(done.error());
    }
    return file;
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
