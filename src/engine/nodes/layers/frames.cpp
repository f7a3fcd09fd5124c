#include "engine/nodes/layers/frames.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/crypto.hpp"
#include "engine/nodes/call.hpp"
#include "engine/nodes/files/save.hpp"
#include "engine/nodes/mask/support.hpp"
#include "workflow/graph/python_text.hpp"

namespace comfyd::engine::nodes {
namespace {

// The alpha of the picture times 1 - mask.
Result<std::optional<Mask>> alpha_of(const Call& call, const Frame& frame) {
    std::optional<Mask> fitting;
    if (frame.layer->mask) {
        const Mask& mask = *frame.layer->mask;
        const std::size_t from = mask.shape().batch == 1 ? 0 : frame.index;
        if (from < mask.shape().batch) {
            const std::size_t first = from * mask.shape().height;
            const ImageShape shape{1, mask.shape().height, mask.shape().width, 1};
            auto own = make_mask(call, shape, [&](std::size_t row, float* into) {
                std::copy_n(mask.row(first + row), shape.width, into);
            });
            if (own && (shape.height != frame.height() || shape.width != frame.width())) {
                own = resize_mask(
                    call,
                    *own,
                    frame.width(),
                    frame.height(),
                    ResizeMethod::bilinear,
                    Crop::disabled
                );
            }
            if (!own) {
                return fail(std::move(own.error()));
            }
            fitting = std::move(*own);
        }
    }
    const bool own_alpha = frame.channels() == 4;
    if (!own_alpha && !fitting) {
        return std::optional<Mask>();
    }
    const ImageShape shape{1, frame.height(), frame.width(), 1};
    auto alpha = make_mask(call, shape, [&](std::size_t row, float* into) {
        for (std::size_t x = 0; x < shape.width; ++x) {
            const float picture = own_alpha ? frame.row(row)[x * 4 + 3] : 1.0F;
            const float inverse = fitting ? clamp_unit(1.0F - fitting->row(row)[x]) : 1.0F;
            into[x] = own_alpha && fitting ? picture * inverse : own_alpha ? picture : inverse;
        }
    });
    if (!alpha) {
        return fail(std::move(alpha.error()));
    }
    return std::optional<Mask>(std::move(*alpha));
}

std::uint8_t rounded_byte(float value) {
    const float scaled = std::nearbyint(value * 255.0F);
    return static_cast<std::uint8_t>(scaled > 0.0F ? std::min(scaled, 255.0F) : 0.0F);
}

}  // namespace

Result<std::vector<Frame>> frames_of(const Call& call, const Layers& document) {
    std::vector<const Layer*> sorted;
    for (const Layer& layer : document.layers) {
        sorted.push_back(&layer);
    }
    // Equal ones keep their order, which is that of their addresses.
    std::ranges::sort(sorted, {}, [](const Layer* layer) {
        return std::pair(layer->z_index, layer);
    });
    std::vector<Frame> frames;
    for (const Layer* layer : sorted) {
        for (std::size_t i = 0; i < layer->image.shape().batch; ++i) {
            if (frames.size() == kLayersMax) {
                return node_error("ValueError", "At most 50 layers can be laid on each other");
            }
            frames.push_back({layer, i});
            auto alpha = alpha_of(call, frames.back());
            if (!alpha) {
                return fail(std::move(alpha.error()));
            }
            frames.back().alpha = std::move(*alpha);
        }
    }
    return frames;
}

Rgba8 to_bitmap(const Frame& frame) {
    Rgba8 bitmap{
        frame.width(), frame.height(), std::vector<std::uint8_t>(frame.width() * frame.height() * 4)
    };
    for (std::size_t y = 0; y < bitmap.height; ++y) {
        for (std::size_t x = 0; x < bitmap.width; ++x) {
            const float* from = frame.row(y) + x * frame.channels();
            std::uint8_t* into = bitmap.at(x, y);
            for (std::size_t c = 0; c < 3; ++c) {
                into[c] = rounded_byte(from[std::min(c, frame.channels() - 1)]);
            }
            into[3] = frame.alpha ? rounded_byte(frame.alpha->row(y)[x]) : 255;
        }
    }
    return bitmap;
}

std::string fingerprint_of(const Frame& frame) {
    const Rgba8 bitmap = to_bitmap(frame);
    std::string text = "(1, " + std::to_string(frame.height()) + ", " +
                       std::to_string(frame.width()) + ", " + std::to_string(frame.channels()) +
                       ")";
    for (std::size_t i = 0; i < bitmap.bytes.size(); i += 4) {
        text.append(reinterpret_cast<const char*>(&bitmap.bytes[i]), 3);
    }
    for (std::size_t i = 3; frame.alpha && i < bitmap.bytes.size(); i += 4) {
        text += static_cast<char>(bitmap.bytes[i]);
    }
    const Layer& layer = *frame.layer;
    const auto python_bool = [](bool value) { return value ? "True" : "False"; };
    const auto python_float = [](double value) { return workflow::python_repr(value); };
    text += "(" + std::to_string(layer.x) + ", " + std::to_string(layer.y) + ", " +
            std::to_string(frame.shown_width()) + ", " + std::to_string(frame.shown_height()) +
            ", " + python_float(layer.rotation) + ", " + python_float(layer.opacity) + ", '" +
            layer.blend + "', True, " + python_bool(layer.flip_h) + ", " +
            python_bool(layer.flip_v) + ")";
    return to_hex(sha256(text)).substr(0, 16);
}

Result<json::array> preview_layer(const Call& call, const Frame& frame) {
    const std::size_t channels = frame.alpha ? 4 : 3;
    const ImageShape shape{1, frame.height(), frame.width(), channels};
    const auto image = make_image(call, shape, [&](std::size_t y, float* into) {
        for (std::size_t x = 0; x < shape.width; ++x) {
            for (std::size_t c = 0; c < 3; ++c) {
                into[x * channels + c] =
                    frame.row(y)[x * frame.channels() + std::min(c, frame.channels() - 1)];
            }
            if (frame.alpha) {
                into[x * 4 + 3] = frame.alpha->row(y)[x];
            }
        }
    });
    if (!image) {
        return fail(image.error());
    }
    return preview_pictures(call, *image, "ComfyUI_temp_" + random_letters(), true);
}

json::object describe(const Frame& frame) {
    const Layer& layer = *frame.layer;
    return {
        {"x", layer.x},
        {"y", layer.y},
        {"width", frame.shown_width()},
        {"height", frame.shown_height()},
        {"rotation", layer.rotation},
        {"name", layer.name.empty() ? json::value(nullptr) : json::value(layer.name)},
        {"visible", true},
        {"opacity", layer.opacity},
        {"blend", layer.blend},
        {"flipH", layer.flip_h},
        {"flipV", layer.flip_v}
    };
}

}  // namespace comfyd::engine::nodes
