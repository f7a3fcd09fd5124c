// SaveAnimatedWEBP and SaveAnimatedPNG: a batch as one file that moves.

#include <algorithm>
#include <utility>

#include "engine/files.hpp"
#include "engine/nodes/call.hpp"
#include "engine/nodes/files/files.hpp"
#include "engine/nodes/files/save.hpp"
#include "engine/pictures/apng.hpp"
#include "engine/pictures/encode.hpp"
#include "engine/pictures/exif.hpp"
#include "engine/pixels.hpp"

namespace comfyd::engine::nodes {
namespace {

// The largest that animated formats hold.
constexpr double kDurationMax = 0xFFFFFF;

int duration_ms(double frames_per_second) {
    if (frames_per_second == 0) {
        throw NodeFailure("ZeroDivisionError", "float division by zero");
    }
    if (!(frames_per_second > 0)) {
        throw NodeFailure("ValueError", "The pictures of a second are more than none");
    }
    return static_cast<int>(std::min(1000.0 / frames_per_second, kDurationMax));
}

Result<NodeResult> save_file(
    Call& call, std::string_view extension, const pictures::Outcome<std::string>& file
) {
    if (auto stopped = call.check_stopped(); !stopped) {
        return fail(std::move(stopped.error()));
    }
    if (!file) {
        return node_error("ValueError", "The animation cannot be written: " + file.error().text);
    }
    const Image& images = call.image("images");
    const ImageShape& shape = images.shape();
    const auto place = make_save_place(
        call.folders().output, call.text("filename_prefix"), shape.width, shape.height
    );
    if (!place) {
        return fail(place.error());
    }
    const auto name = save_counted(
        *place,
        place->counter,
        0,
        extension,
        [&file](const FileSink& sink) -> Result<> {
            sink(file->data(), file->size());
            return {};
        }
    );
    if (!name) {
        return fail(name.error());
    }
    return NodeResult{
        .outputs = {images},
        .ui =
            json::object{
                {"images", json::array{saved_file(*name, place->subfolder, "output")}},
                {"animated", json::array{shape.batch > 1}}
            }
    };
}

tl::unexpected<Error> wrong_shape(const ImageShape& shape) {
    return node_error(
        "TypeError",
        "A batch of " + std::to_string(shape.batch) + " pictures with " +
            std::to_string(shape.channels) + " channels cannot be saved: at least 1, with 3 or 4"
    );
}

bool can_save(const ImageShape& shape) {
    return shape.batch > 0 && (shape.channels == 3 || shape.channels == 4);
}

// Without loss "quality" is only how long the encoder looks for a smaller file. From here on it
// takes twice as long for half a percent.
constexpr int kLosslessEffort = 50;

pictures::WebpOptions webp_options(const Call& call) {
    const std::string& method = call.text("method");
    pictures::WebpOptions options{
        .lossless = call.flag("lossless"),
        .quality = static_cast<int>(std::clamp<std::int64_t>(call.place("quality"), -1, 101)),
        .method = method == "fastest"   ? 0
                  : method == "slowest" ? 6
                                        : 4
    };
    if (options.lossless && method != "slowest") {
        options.quality = std::min(options.quality, kLosslessEffort);
    }
    return options;
}

Result<NodeResult> execute_webp(Call& call) {
    const Image& images = call.image("images");
    const ImageShape& shape = images.shape();
    if (!can_save(shape)) {
        return wrong_shape(shape);
    }
    const pictures::WebpOptions options = webp_options(call);
    auto bytes = call.new_scratch(shape.height * shape.row_floats());
    if (!bytes) {
        return fail(std::move(bytes.error()));
    }
    const int duration = duration_ms(call.number("fps"));
    std::size_t index = 0;
    const auto next = [&]() -> pictures::Outcome<std::optional<pictures::TimedPixels>> {
        if (index == shape.batch) {
            return std::nullopt;
        }
        to_bytes(images.picture(index), shape.height * shape.row_floats(), bytes->data());
        call.progress(static_cast<int>(index++), static_cast<int>(shape.batch));
        return pictures::TimedPixels{
            {bytes->data(), shape.width, shape.height, shape.channels}, duration
        };
    };
    const std::string exif = pictures::make_exif(workflow_texts(call));
    const auto stopped = [&call] { return call.stopped(); };
    const auto file = shape.batch == 1
                          ? pictures::encode_webp((*next())->pixels, options, stopped, exif)
                          : pictures::encode_webp_animation(next, 0, options, exif, stopped);
    return save_file(call, "webp", file);
}

Result<NodeResult> execute_png(Call& call) {
    const Image& images = call.image("images");
    const ImageShape& shape = images.shape();
    if (!can_save(shape)) {
        return wrong_shape(shape);
    }
    auto texts = png_texts(call);
    if (!texts) {
        return fail(std::move(texts.error()));
    }
    std::vector<pictures::PngChunk> chunks;
    for (const PngText& text : *texts) {
        chunks.emplace_back("comf", text.keyword + '\0' + text.text);
    }
    constexpr std::size_t kLevelMax = 9;
    if (call.size("compress_level") > kLevelMax) {
        return node_error("ValueError", "PNG is compressed by a level from 0 to 9");
    }
    const auto level = static_cast<int>(call.size("compress_level"));
    const int duration = std::min(duration_ms(call.number("fps")), 0xFFFF);
    std::size_t index = 0;
    const auto next = [&]() -> pictures::Outcome<std::optional<pictures::ApngFrame>> {
        if (index == shape.batch) {
            return std::nullopt;
        }
        pictures::ApngFrame frame{.png = {}, .duration_ms = duration};
        const FileSink sink = [&frame](const void* data, std::size_t size) {
            frame.png.append(static_cast<const char*>(data), size);
            return true;
        };
        const auto encoded = encode_png(
            {images.picture(index++), shape.width, shape.height, shape.channels},
            level,
            {},
            sink,
            [&call] { return call.stopped(); }
        );
        if (!encoded) {
            return tl::unexpected(pictures::Failure{encoded.error().text});
        }
        return frame;
    };
    return save_file(call, "png", pictures::assemble_apng(next, 0, chunks));
}

}  // namespace

NodeClass save_animated_webp() {
    return {
        .name = "SaveAnimatedWEBP",
        .description = "Writes a batch as one animated WebP, with the workflow inside.",
        .execute = &execute_webp,
    };
}

NodeClass save_animated_png() {
    return {
        .name = "SaveAnimatedPNG",
        .description = "Writes a batch as one animated PNG, with the workflow inside.",
        .execute = &execute_png,
    };
}

}  // namespace comfyd::engine::nodes
