// Painter: strokes that the client has drawn into a file, over a picture or a colour.

#include <algorithm>
#include <array>
#include <utility>

#include "engine/nodes/call.hpp"
#include "engine/nodes/files/files.hpp"
#include "engine/nodes/files/load.hpp"
#include "engine/nodes/files/save.hpp"
#include "engine/pictures/reader.hpp"
#include "engine/pictures/resize.hpp"

namespace comfyd::engine::nodes {
namespace {

bool is_blank(std::string_view text) {
    return text.find_first_not_of(" \t\n\r\v\f") == text.npos;
}

int hex_digit(char c) {
    const char lower = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
    return lower >= '0' && lower <= '9'   ? lower - '0'
           : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10
                                          : -1;
}

// "#rrggbb"; black for other lengths.
Result<std::array<float, 3>> parse_color(std::string_view text) {
    std::array<float, 3> color{};
    text.remove_prefix(std::min(text.find_first_not_of('#'), text.size()));
    for (std::size_t i = 0; text.size() == 6 && i < 3; ++i) {
        const int high = hex_digit(text[i * 2]);
        const int low = hex_digit(text[i * 2 + 1]);
        if (high < 0 || low < 0) {
            return node_error(
                "ValueError",
                "invalid literal for int() with base 16: '" + std::string(text.substr(i * 2, 2)) +
                    "'"
            );
        }
        color[i] = static_cast<float>((high * 16 + low) / 255.0);
    }
    return color;
}

// The first picture of the input, or a canvas of one colour.
Result<Image> make_base(const Call& call) {
    if (call.has("image")) {
        const Image& image = call.image("image");
        ImageShape shape = image.shape();
        shape.batch = 1;
        auto first = call.new_image(shape);
        if (!first) {
            return fail(std::move(first.error()));
        }
        std::copy_n(image.data(), shape.rows() * shape.row_floats(), first->data());
        return std::move(*first).finish();
    }
    const auto color = parse_color(call.text("bg_color"));
    if (!color) {
        return fail(color.error());
    }
    auto canvas = call.new_image({1, call.size("height"), call.size("width"), 3});
    if (!canvas) {
        return fail(std::move(canvas.error()));
    }
    const ImageShape& shape = canvas->shape();
    for (std::size_t i = 0; i < shape.rows() * shape.width; ++i) {
        std::copy_n(color->data(), 3, canvas->data() + i * 3);
    }
    return std::move(*canvas).finish();
}

// The strokes in the size of the picture under them, with alpha.
Result<Image> load_strokes(const Call& call, const ImageShape& under) {
    const std::string& name = call.text("mask");
    const auto file = read_named(name, call.folders());
    if (!file) {
        return fail(file.error());
    }
    const auto bitmap = pictures::decode_rgba(*file, kSideMax * kSideMax);
    if (!bitmap) {
        return node_error(
            "PIL.UnidentifiedImageError", "Cannot load '" + name + "': " + bitmap.error().text
        );
    }
    auto strokes = call.new_image({1, bitmap->height, bitmap->width, 4});
    if (!strokes) {
        return fail(std::move(strokes.error()));
    }
    std::ranges::transform(bitmap->rgba, strokes->data(), [](std::uint8_t byte) {
        return static_cast<float>(byte) / 255.0F;
    });
    Image drawn = std::move(*strokes).finish();
    if (bitmap->width == under.width && bitmap->height == under.height) {
        return drawn;
    }
    return resize(call, drawn, under.width, under.height, ResizeMethod::lanczos, Crop::disabled);
}

Result<NodeResult> with_preview(const Call& call, Image image, Mask mask) {
    auto ui = preview_ui(call, image, false);
    if (!ui) {
        return fail(std::move(ui.error()));
    }
    return NodeResult{.outputs = {std::move(image), std::move(mask)}, .ui = std::move(*ui)};
}

Result<NodeResult> compute(Call& call) {
    const auto base = make_base(call);
    if (!base) {
        return fail(base.error());
    }
    const ImageShape& shape = base->shape();
    auto mask = call.new_mask(1, shape.height, shape.width);
    if (!mask) {
        return fail(std::move(mask.error()));
    }
    const std::size_t pixels = shape.height * shape.width;
    if (is_blank(call.text("mask"))) {
        std::fill_n(mask->data(), pixels, 0.0F);
        return with_preview(call, *base, std::move(*mask).finish());
    }
    if (shape.channels != 3) {
        return node_error("ValueError", "Only pictures without alpha can be painted over");
    }
    const auto strokes = load_strokes(call, shape);
    auto painted = call.new_image(shape);
    if (!strokes || !painted) {
        return fail(strokes ? painted.error() : strokes.error());
    }
    for (std::size_t i = 0; i < pixels; ++i) {
        const float* stroke = strokes->data() + i * 4;
        mask->data()[i] = stroke[3];
        for (std::size_t c = 0; c < 3; ++c) {
            const float over = stroke[c] * stroke[3];
            const float under = base->data()[i * 3 + c] * (1.0F - stroke[3]);
            painted->data()[i * 3 + c] = over + under;
        }
    }
    return with_preview(call, std::move(*painted).finish(), std::move(*mask).finish());
}

// Without a file nothing but the inputs counts.
Result<std::string> fingerprint(const json::object& inputs, const Folders& folders) {
    auto hash = file_fingerprint(inputs, "mask", folders);
    return hash ? hash : Result<std::string>("");
}

}  // namespace

NodeClass painter() {
    return {
        .name = "Painter",
        .description = "Lays what was painted by hand over a picture or a colour.",
        .execute = &compute,
        .fingerprint = &fingerprint,
    };
}

}  // namespace comfyd::engine::nodes
