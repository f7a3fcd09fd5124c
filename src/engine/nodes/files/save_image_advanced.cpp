// SaveImageAdvanced: PNG in 8 or 16 bits, or OpenEXR in linear light.

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/files.hpp"
#include "engine/nodes/call.hpp"
#include "engine/nodes/files/exr.hpp"
#include "engine/nodes/files/files.hpp"
#include "engine/nodes/files/save.hpp"

namespace comfyd::engine::nodes {
namespace {

constexpr int kPngLevel = 4;

float srgb_to_linear(float x) {
    if (x <= 0.04045F) {
        return x / 12.92F;
    }
    return std::pow((x + 0.055F) / 1.055F, 2.4F);
}

// BT.2100's hybrid log-gamma to scene light.
float hlg_to_linear(float x) {
    if (x <= 0.5F) {
        return x * x / 3.0F;
    }
    return (std::exp((x - 0.55991072928F) / 0.17883277F) + 0.28466892F) / 12.0F;
}

// Colour only: alpha stays as it is.
Result<Image> to_linear(const Call& call, const Image& images, float (*curve)(float)) {
    const ImageShape& shape = images.shape();
    auto linear = call.new_image(shape);
    if (!linear) {
        return fail(std::move(linear.error()));
    }
    auto done = call.for_rows(
        shape.rows(),
        shape.row_floats() * 16,
        [&](std::size_t first, std::size_t last) {
            for (std::size_t row = first; row < last; ++row) {
                for (std::size_t i = 0; i < shape.row_floats(); ++i) {
                    const float x = images.row(row)[i];
                    const bool alpha = shape.channels == 4 && i % 4 == 3;
                    linear->row(row)[i] = alpha ? x : curve(x);
                }
            }
        }
    );
    if (!done) {
        return fail(std::move(done.error()));
    }
    return std::move(*linear).finish();
}

Result<Image> exr_pixels(const Call& call, const Image& images, const std::string& color_space) {
    if (color_space == "linear") {
        return images;
    }
    return to_linear(call, images, color_space == "HDR" ? &hlg_to_linear : &srgb_to_linear);
}

using Write = std::function<Result<>(std::size_t index, const FileSink& sink)>;

Result<NodeResult> save_each(Call& call, const std::string& extension, const Write& write) {
    const Image& images = call.image("images");
    const ImageShape& shape = images.shape();
    auto place = make_save_place(
        call.folders().output, call.text("filename_prefix"), shape.width, shape.height
    );
    if (!place) {
        return fail(std::move(place.error()));
    }
    place->tail = "";
    const auto space = call.charge(shape.batch * kBytesPerFile);
    if (!space) {
        return fail(space.error());
    }
    std::vector<std::string> names(shape.batch);
    auto done = call.for_each(shape.batch, [&](std::size_t i) -> Result<> {
        auto name = save_counted(
            *place,
            place->counter + i,
            i,
            extension,
            [&](const FileSink& sink) -> Result<> { return write(i, sink); }
        );
        if (!name) {
            return fail(std::move(name.error()));
        }
        names[i] = std::move(*name);
        return call.check_stopped();
    });
    if (!done) {
        return fail(std::move(done.error()));
    }
    json::array files;
    for (const std::string& name : names) {
        files.emplace_back(saved_file(name, place->subfolder, "output"));
    }
    return NodeResult{.outputs = {images}, .ui = json::object{{"images", std::move(files)}}};
}

Result<NodeResult> save_png(Call& call) {
    const Image& images = call.image("images");
    const ImageShape& shape = images.shape();
    const auto texts = png_texts(call);
    if (!texts) {
        return fail(texts.error());
    }
    const int bit_depth = call.text("format.bit_depth") == "16-bit" ? 16 : 8;
    return save_each(call, "png", [&](std::size_t i, const FileSink& sink) -> Result<> {
        const auto encoded = encode_png(
            {images.picture(i), shape.width, shape.height, shape.channels, bit_depth},
            kPngLevel,
            *texts,
            sink,
            [&call] { return call.stopped(); }
        );
        if (auto stopped = call.check_stopped(); !stopped) {
            return stopped;
        }
        if (!encoded) {
            return node_error("ValueError", encoded.error().text);
        }
        return {};
    });
}

Result<NodeResult> save_exr(Call& call) {
    const std::string& color_space = call.text("format.input_color_space");
    const auto pixels = exr_pixels(call, call.image("images"), color_space);
    if (!pixels) {
        return fail(pixels.error());
    }
    const ImageShape& shape = pixels->shape();
    const auto texts = workflow_texts(call);
    return save_each(call, "exr", [&](std::size_t i, const FileSink& sink) -> Result<> {
        write_exr(
            {pixels->picture(i),
             shape.width,
             shape.height,
             shape.channels,
             texts,
             color_space == "HDR"},
            sink
        );
        return {};
    });
}

Result<NodeResult> compute(Call& call) {
    const std::size_t channels = call.image("images").shape().channels;
    if (channels != 1 && channels != 3 && channels != 4) {
        return node_error(
            "ValueError",
            "A picture with " + std::to_string(channels) + " channels cannot be saved: 1, 3 or 4"
        );
    }
    return call.text("format") == "exr" ? save_exr(call) : save_png(call);
}

}  // namespace

NodeClass save_image_advanced() {
    return {
        .name = "SaveImageAdvanced",
        .description = "Writes pictures as PNG of 8 or 16 bits or as OpenEXR in linear light.",
        .execute = &compute,
    };
}

}  // namespace comfyd::engine::nodes
