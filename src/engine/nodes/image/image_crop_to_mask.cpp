#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/nodes/image/image.hpp"
#include "engine/nodes/kernel.hpp"
#include "engine/pixels/extremum.hpp"
#include "engine/pixels/values.hpp"

namespace comfyd::engine::nodes {
namespace {

using Color = std::array<float, 3>;

struct Settings {
    std::int64_t width = 0;
    std::int64_t height = 0;
    double padding = 1;
    std::int64_t grow = 0;
    Color background{};
};

// Everything but "#rrggbb" is black.
Result<Color> parse_color(std::string_view text) {
    while (text.starts_with('#')) {
        text.remove_prefix(1);
    }
    Color color{};
    for (std::size_t c = 0; c < 3 && text.size() == 6; ++c) {
        const std::string_view digits = text.substr(c * 2, 2);
        unsigned byte = 0;
        const auto [end, error] =
            std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
        if (error != std::errc{} || end != digits.data() + digits.size()) {
            return node_error(
                "ValueError",
                "invalid literal for int() with base 16: '" + std::string(digits) + "'"
            );
        }
        color[c] = static_cast<float>(byte / 255.0);
    }
    return color;
}

Result<Image> inverted(const Call& call, const Image& mask) {
    return map_values(call, mask, [](const float* from, std::size_t count, float* into) {
        for (std::size_t i = 0; i < count; ++i) {
            into[i] = 1.0F - from[i];
        }
    });
}

// Whether the border is bright and the middle is dark.
bool looks_inverted(const Image& mask) {
    const ImageShape& shape = mask.shape();
    double border = 0;
    for (std::size_t x = 0; x < shape.width; ++x) {
        border += mask.row(0)[x] + mask.row(shape.height - 1)[x];
    }
    for (std::size_t y = 0; y < shape.height; ++y) {
        border += mask.row(y)[0] + mask.row(y)[shape.width - 1];
    }
    border /= 2.0 * static_cast<double>(shape.width + shape.height);
    const std::size_t left = shape.width / 4;
    const std::size_t top = shape.height / 4;
    double middle = 0;
    for (std::size_t y = top; y < shape.height - top; ++y) {
        for (std::size_t x = left; x < shape.width - left; ++x) {
            middle += mask.row(y)[x];
        }
    }
    middle /= static_cast<double>((shape.height - 2 * top) * (shape.width - 2 * left));
    return border > 0.5 && middle < 0.5;
}

Result<Image> grown(const Call& call, const Image& mask, std::int64_t by) {
    constexpr float kNothing = std::numeric_limits<float>::infinity();
    if (by == 0) {
        return mask;
    }
    const auto side = static_cast<std::size_t>(std::abs(by)) * 2 + 1;
    if (by > 0) {
        return extremum(call, mask, side, Extremum::largest, -kNothing);
    }
    auto outside = inverted(call, mask);
    if (outside) {
        outside = extremum(call, *outside, side, Extremum::largest, -kNothing);
    }
    return outside ? inverted(call, *outside) : outside;
}

Result<Image> prepared_mask(const Call& call, const Image& given, std::int64_t grow) {
    Result<Image> mask =
        map_values(call, given, [](const float* from, std::size_t count, float* into) {
            for (std::size_t i = 0; i < count; ++i) {
                into[i] = clamp_unit(from[i]);
            }
        });
    if (mask && looks_inverted(*mask)) {
        mask = inverted(call, *mask);
    }
    if (mask) {
        mask = grown(call, *mask, grow);
    }
    if (!mask) {
        return mask;
    }
    constexpr float kFaint = 0.05F;
    return map_values(call, *mask, [](const float* from, std::size_t count, float* into) {
        for (std::size_t i = 0; i < count; ++i) {
            into[i] = from[i] < kFaint ? 0.0F : from[i];
        }
    });
}

struct Bounds {
    std::size_t left = std::numeric_limits<std::size_t>::max();
    std::size_t top = std::numeric_limits<std::size_t>::max();
    std::size_t right = 0;  // inside
    std::size_t bottom = 0;
};

// Around all that is surely foreground; `invert` looks at the background instead.
std::optional<Bounds> bounds(const Image& mask, bool invert) {
    constexpr int kSure = 204;
    const ImageShape& shape = mask.shape();
    Bounds out;
    bool any = false;
    for (std::size_t y = 0; y < shape.height; ++y) {
        for (std::size_t x = 0; x < shape.width; ++x) {
            const float value = clamp_unit(mask.row(y)[x]) * 255.0F;
            const int byte = value == value ? static_cast<int>(value) : 0;
            if ((invert ? 255 - byte : byte) > kSure) {
                any = true;
                out.left = std::min(out.left, x);
                out.right = std::max(out.right, x);
                out.top = std::min(out.top, y);
                out.bottom = y;
            }
        }
    }
    return any ? std::optional(out) : std::nullopt;
}

// A rectangle that may reach beyond the picture.
struct Frame {
    std::int64_t left = 0;
    std::int64_t top = 0;
    std::int64_t width = 0;
    std::int64_t height = 0;
};

Frame frame_around(const Bounds& bounds, double aspect, double padding) {
    const auto width = static_cast<double>(bounds.right - bounds.left + 1);
    const auto height = static_cast<double>(bounds.bottom - bounds.top + 1);
    const bool wide = width / height >= aspect;
    const double full_width = std::trunc(wide ? width * padding : height * aspect * padding);
    const double full_height = std::trunc(wide ? width / aspect * padding : height * padding);
    const double half_width = std::ceil(full_width / 2);
    const double half_height = std::ceil(full_height / 2);
    const double x = static_cast<double>(bounds.left + bounds.right) / 2.0;
    const double y = static_cast<double>(bounds.top + bounds.bottom) / 2.0;
    return {
        python_int(x - half_width),
        python_int(y - half_height),
        python_int(2 * half_width),
        python_int(2 * half_height)
    };
}

// The masked picture over the background, inside the frame; beyond the border is background.
Result<Image> composed(
    const Call& call,
    const Image& picture,
    const Image& mask,
    const Frame& frame,
    const Color& background
) {
    const ImageShape& shape = picture.shape();
    auto out = call.new_image(
        {1, static_cast<std::size_t>(frame.height), static_cast<std::size_t>(frame.width), 3}
    );
    if (!out) {
        return fail(std::move(out.error()));
    }
    const ImageShape size = out->shape();
    auto done =
        call.for_rows(size.height, size.row_floats(), [&](std::size_t first, std::size_t last) {
            COMFYD_NO_CONTRACTION
            for (std::size_t row = first; row < last; ++row) {
                const std::int64_t y = frame.top + static_cast<std::int64_t>(row);
                const bool inside_y = y >= 0 && y < static_cast<std::int64_t>(shape.height);
                const auto source = static_cast<std::size_t>(inside_y ? y : 0);
                float* into = out->row(row);
                for (std::size_t column = 0; column < size.width; ++column, into += 3) {
                    const std::int64_t x = frame.left + static_cast<std::int64_t>(column);
                    const bool inside =
                        inside_y && x >= 0 && x < static_cast<std::int64_t>(shape.width);
                    const auto at = static_cast<std::size_t>(inside ? x : 0);
                    const float* pixel = picture.row(source) + at * shape.channels;
                    const float weight = inside ? mask.row(source)[at] : 0.0F;
                    for (std::size_t c = 0; c < 3; ++c) {
                        const float value = inside ? clamp_unit(pixel[c]) : 0.0F;
                        into[c] = clamp_unit(value * weight + background[c] * (1.0F - weight));
                    }
                }
            }
        });
    if (!done) {
        return fail(std::move(done.error()));
    }
    return std::move(*out).finish();
}

Result<Image> cropped(
    const Call& call, const Image& given, const Image& given_mask, const Settings& settings
) {
    Result<Image> picture = given;
    Result<Image> mask = prepared_mask(call, given_mask, settings.grow);
    if (!mask) {
        return mask;
    }
    const double longest = static_cast<double>(std::max(given.shape().width, given.shape().height));
    const auto limit = static_cast<double>(std::max(settings.width, settings.height));
    if (longest > limit) {
        const double factor = limit / longest;
        const std::int64_t width = python_int(static_cast<double>(given.shape().width) * factor);
        const std::int64_t height = python_int(static_cast<double>(given.shape().height) * factor);
        picture = scale(call, *picture, width, height, ResizeMethod::lanczos);
        if (picture) {
            mask = scale(call, *mask, width, height, ResizeMethod::lanczos);
        }
    }
    if (!picture || !mask) {
        return fail((picture ? mask : picture).error());
    }
    auto found = bounds(*mask, false);
    if (!found) {
        found = bounds(*mask, true);
        if (found) {
            mask = inverted(call, *mask);
        }
    }
    if (!mask) {
        return mask;
    }
    const ImageShape& shape = picture->shape();
    const double aspect =
        static_cast<double>(settings.width) / static_cast<double>(settings.height);
    const Frame frame = found ? frame_around(*found, aspect, settings.padding)
                              : Frame{
                                    0,
                                    0,
                                    static_cast<std::int64_t>(shape.width),
                                    static_cast<std::int64_t>(shape.height)
                                };
    if (frame.width < 1 || frame.height < 1) {
        return node_error("ValueError", "height and width must be > 0");
    }
    const auto whole = composed(call, *picture, *mask, frame, settings.background);
    if (!whole) {
        return whole;
    }
    return scale(call, *whole, settings.width, settings.height, ResizeMethod::lanczos);
}

Result<NodeResult> compute(Call& call) {
    const auto background = parse_color(call.text("background"));
    if (!background) {
        return fail(background.error());
    }
    const Settings settings{
        call.place("width"),
        call.place("height"),
        call.number("pad_factor"),
        call.place("grow_mask"),
        *background
    };
    auto images = with_channels(call, call.image("images"), 3);
    if (!images) {
        return fail(std::move(images.error()));
    }
    const ImageShape& shape = images->shape();
    Result<Image> masks = as_image(call.mask("masks"));
    const std::size_t mask_batch = masks->shape().batch;
    if (mask_batch != 1 && mask_batch != shape.batch) {
        return node_error(
            "ValueError",
            "Mask batch " + std::to_string(mask_batch) + " does not match image batch " +
                std::to_string(shape.batch)
        );
    }
    if (masks->shape().width != shape.width || masks->shape().height != shape.height) {
        masks =
            resize(call, *masks, shape.width, shape.height, ResizeMethod::bilinear, Crop::disabled);
    }
    std::vector<Image> out;
    for (std::size_t i = 0; i < shape.batch && masks; ++i) {
        const auto picture = some_pictures(call, *images, i, 1);
        const auto mask = some_pictures(call, *masks, mask_batch == 1 ? 0 : i, 1);
        if (!picture || !mask) {
            return fail((picture ? mask : picture).error());
        }
        auto crop = cropped(call, *picture, *mask, settings);
        if (!crop) {
            return fail(std::move(crop.error()));
        }
        out.push_back(std::move(*crop));
    }
    if (!masks) {
        return fail(std::move(masks.error()));
    }
    auto joined = join(call, out);
    if (!joined) {
        return fail(std::move(joined.error()));
    }
    return NodeResult{.outputs = {std::move(*joined)}};
}

}  // namespace

NodeClass image_crop_to_mask() {
    return {
        .name = "ImageCropToMask",
        .description = "Cuts out what a mask shows, on a plain background, scaled to one size.",
        .execute = &compute,
    };
}

}  // namespace comfyd::engine::nodes
