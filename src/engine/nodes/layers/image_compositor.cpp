// ImageCompositor: a stack of layers as one picture, by the places that the layers bring or by the
// composition that the client's editor has saved for exactly these layers.

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>
#include <utility>

#include "base/crypto.hpp"
#include "engine/call.hpp"
#include "engine/nodes/files/save.hpp"
#include "engine/nodes/layers/bitmap.hpp"
#include "engine/nodes/layers/blend.hpp"
#include "engine/nodes/layers/boxes.hpp"
#include "engine/nodes/layers/document.hpp"
#include "engine/nodes/layers/layers.hpp"
#include "engine/nodes/mask/support.hpp"
#include "engine/nodes/text/python_value.hpp"
#include "workflow/python_text.hpp"

namespace comfyd::engine::nodes {
namespace {

constexpr double kFar = kSideMax;
constexpr std::size_t kEmptySide = 64;
constexpr float kOpaque = 0.999F;

// One picture of the stack.
struct Frame {
    const Layer* layer;
    std::size_t index;            // in the layer's batch
    std::optional<Mask> alpha{};  // of the picture's size; none: opaque

    const float* row(std::size_t y) const {
        return layer->image.row(index * layer->image.shape().height + y);
    }
    std::size_t width() const { return layer->image.shape().width; }
    std::size_t height() const { return layer->image.shape().height; }
    std::size_t channels() const { return layer->image.shape().channels; }
    std::int64_t shown_width() const {
        return layer->width > 0 ? layer->width : static_cast<std::int64_t>(width());
    }
    std::int64_t shown_height() const {
        return layer->height > 0 ? layer->height : static_cast<std::int64_t>(height());
    }
};

// How a frame is laid on the canvas.
struct Placement {
    bool visible = true;
    double opacity = 1.0;
    std::string blend = "normal";
    double x = 0.0;
    double y = 0.0;
    double width = 0.0;
    double height = 0.0;
    double rotation = 0.0;
    bool flip_h = false;
    bool flip_v = false;
};

struct Background {
    std::array<float, 3> color{1.0F, 1.0F, 1.0F};
    double opacity = 1.0;
    bool visible = false;
};

struct Composition {
    Canvas canvas{};
    std::vector<Placement> placements{};  // one for each frame
    std::vector<std::size_t> order{};     // from below
    Background background{};
};

struct Bounds {
    std::int64_t x = 0;
    std::int64_t y = 0;
    std::int64_t width = 1;
    std::int64_t height = 1;
};

Bounds bounds_of(const Placement& place) {
    const double half_width = place.width / 2;
    const double half_height = place.height / 2;
    const double cx = place.x + half_width;
    const double cy = place.y + half_height;
    const double cosine = std::cos(place.rotation);
    const double sine = std::sin(place.rotation);
    std::array<double, 4> xs{};
    std::array<double, 4> ys{};
    constexpr std::array<std::pair<int, int>, 4> kCorners = {{{-1, -1}, {1, -1}, {1, 1}, {-1, 1}}};
    for (std::size_t i = 0; i < 4; ++i) {
        const double dx = kCorners[i].first * half_width;
        const double dy = kCorners[i].second * half_height;
        xs[i] = cx + dx * cosine - dy * sine;
        ys[i] = cy + dx * sine + dy * cosine;
    }
    Bounds bounds;
    bounds.x = static_cast<std::int64_t>(std::floor(std::ranges::min(xs)));
    bounds.y = static_cast<std::int64_t>(std::floor(std::ranges::min(ys)));
    const auto right = static_cast<std::int64_t>(std::ceil(std::ranges::max(xs)));
    const auto bottom = static_cast<std::int64_t>(std::ceil(std::ranges::max(ys)));
    bounds.width = std::max<std::int64_t>(1, right - bounds.x);
    bounds.height = std::max<std::int64_t>(1, bottom - bounds.y);
    return bounds;
}

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

std::uint8_t rounded_byte(float value) {
    return static_cast<std::uint8_t>(std::clamp(std::nearbyint(value * 255.0F), 0.0F, 255.0F));
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
                into[c] = rounded_byte(from[c]);
            }
            into[3] = frame.alpha ? rounded_byte(frame.alpha->row(y)[x]) : 255;
        }
    }
    return bitmap;
}

// By which the editor knows that a saved composition belongs to these layers.
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

Placement placement_of(const Frame& frame) {
    const Layer& layer = *frame.layer;
    const auto coordinate = [](std::int64_t value) {
        return std::clamp(static_cast<double>(value), -kFar, kFar);
    };
    return {
        .visible = true,
        .opacity = std::clamp(layer.opacity, 0.0, 1.0),
        .blend = layer.blend,
        .x = coordinate(layer.x),
        .y = coordinate(layer.y),
        .width = std::min(static_cast<double>(frame.shown_width()), kFar),
        .height = std::min(static_cast<double>(frame.shown_height()), kFar),
        .rotation = layer.rotation,
        .flip_h = layer.flip_h,
        .flip_v = layer.flip_v
    };
}

Composition as_placed(const std::vector<Frame>& frames, const Layers& document) {
    Composition composition;
    std::int64_t right = 1;
    std::int64_t bottom = 1;
    for (const Frame& frame : frames) {
        composition.order.push_back(composition.placements.size());
        composition.placements.push_back(placement_of(frame));
        const Bounds bounds = bounds_of(composition.placements.back());
        right = std::max(right, bounds.x + bounds.width);
        bottom = std::max(bottom, bounds.y + bounds.height);
    }
    composition.canvas = document.canvas.value_or(Canvas{right, bottom});
    return composition;
}

double finite_number(const json::object& from, std::string_view key, double otherwise) {
    const json::value* value = from.if_contains(key);
    if (value == nullptr || !value->is_number()) {
        return otherwise;
    }
    const double number = value->to_number<double>();
    return std::isfinite(number) ? number : otherwise;
}

bool truth(const json::object& from, std::string_view key, bool otherwise) {
    const json::value* value = from.if_contains(key);
    return value != nullptr ? workflow::python_bool(*value) : otherwise;
}

const json::object& object_or_empty(const json::value* value) {
    static const json::object empty;
    return value != nullptr && value->is_object() ? value->as_object() : empty;
}

// What the editor saved for one layer. Not trusted: everything is clamped.
Placement read_placement(const json::value& entry, const Frame& frame) {
    const json::object& layer = object_or_empty(&entry);
    const json::object& place = object_or_empty(layer.if_contains("transform"));
    const auto size = [&](std::string_view key, std::size_t natural) {
        const double value = finite_number(place, key, static_cast<double>(natural));
        return value <= 0.0 ? static_cast<double>(natural) : std::min(value, kFar);
    };
    const json::value* blend = layer.if_contains("blend");
    return {
        .visible = truth(layer, "visible", true),
        .opacity = std::clamp(finite_number(layer, "opacity", 1.0), 0.0, 1.0),
        .blend =
            blend != nullptr && blend->is_string() ? std::string(blend->as_string()) : "normal",
        .x = std::clamp(finite_number(place, "x", 0.0), -kFar, kFar),
        .y = std::clamp(finite_number(place, "y", 0.0), -kFar, kFar),
        .width = size("w", frame.width()),
        .height = size("h", frame.height()),
        .rotation = finite_number(place, "rotation", 0.0),
        .flip_h = truth(layer, "flipH", false),
        .flip_v = truth(layer, "flipV", false)
    };
}

int hex_digit(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// "#rgb" or "#rrggbb"; white for anything else.
std::array<float, 3> read_color(const json::value* value) {
    std::string digits;
    if (value != nullptr && value->is_string()) {
        for (const char c : value->as_string()) {
            digits += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        }
    }
    digits.erase(0, digits.find_first_not_of(" \t\n\r"));
    digits.erase(digits.find_last_not_of(" \t\n\r") + 1);
    const bool hash = digits.starts_with('#');
    digits.erase(0, hash ? 1 : 0);
    const bool valid = hash && (digits.size() == 3 || digits.size() == 6) &&
                       std::ranges::all_of(digits, [](char c) { return hex_digit(c) >= 0; });
    std::array<float, 3> color{1.0F, 1.0F, 1.0F};
    for (std::size_t i = 0; valid && i < 3; ++i) {
        const bool brief = digits.size() == 3;
        const int high = hex_digit(digits[brief ? i : i * 2]);
        const int low = hex_digit(digits[brief ? i : i * 2 + 1]);
        color[i] = static_cast<float>(high * 16 + low) / 255.0F;
    }
    return color;
}

std::vector<std::size_t> read_order(const json::value* value, std::size_t count) {
    std::vector<std::size_t> order(count);
    std::vector<bool> seen(count);
    const json::array* items = value != nullptr ? value->if_array() : nullptr;
    bool valid = items != nullptr && items->size() == count;
    for (std::size_t i = 0; i < count; ++i) {
        order[i] = i;
        const json::value* item = valid ? &(*items)[i] : nullptr;
        valid = item != nullptr && item->is_int64() && item->as_int64() >= 0 &&
                static_cast<std::size_t>(item->as_int64()) < count &&
                !seen[static_cast<std::size_t>(item->as_int64())];
        if (valid) {
            seen[static_cast<std::size_t>(item->as_int64())] = true;
        }
    }
    for (std::size_t i = 0; valid && i < count; ++i) {
        order[i] = static_cast<std::size_t>((*items)[i].as_int64());
    }
    return order;
}

// The editor's composition, when it is one and was made for these very layers.
std::optional<Composition> saved(
    const json::value& state, const std::vector<Frame>& frames, const json::array& fingerprints
) {
    const json::object& object = object_or_empty(&state);
    const json::value* version = object.if_contains("version");
    const json::value* canvas = object.if_contains("canvas");
    const json::value* layers = object.if_contains("layers");
    const json::value* inputs = object.if_contains("inputs");
    if ((version != nullptr && !version->is_null() && *version != json::value(1)) ||
        canvas == nullptr || !canvas->is_object() || layers == nullptr || !layers->is_array() ||
        inputs == nullptr || *inputs != json::value(fingerprints) ||
        layers->as_array().size() != frames.size()) {
        return std::nullopt;
    }
    Composition composition;
    composition.canvas.width = python_round(finite_number(canvas->as_object(), "w", 0.0));
    composition.canvas.height = python_round(finite_number(canvas->as_object(), "h", 0.0));
    if (composition.canvas.width <= 0 || composition.canvas.height <= 0) {
        return std::nullopt;
    }
    for (std::size_t i = 0; i < frames.size(); ++i) {
        composition.placements.push_back(read_placement(layers->as_array()[i], frames[i]));
    }
    composition.order = read_order(object.if_contains("order"), frames.size());
    if (const json::value* background = object.if_contains("background");
        background != nullptr && background->is_object()) {
        const json::object& entry = background->as_object();
        composition.background = {
            read_color(entry.if_contains("color")),
            std::clamp(finite_number(entry, "opacity", 1.0), 0.0, 1.0),
            truth(entry, "visible", true)
        };
    }
    return composition;
}

// The editor's state as JSON; null when there is none.
json::value state_of(const Call& call) {
    if (!call.has("compositor")) {
        return nullptr;
    }
    const Value& value = call.value("compositor");
    if (const auto* text = std::get_if<std::string>(&value)) {
        auto parsed = json::parse(*text);
        return parsed ? std::move(*parsed) : json::value(nullptr);
    }
    return to_json(value).value_or(nullptr);
}

bool was_given(const Call& call) {
    if (!call.has("compositor")) {
        return false;
    }
    if (const auto* text = std::get_if<std::string>(&call.value("compositor"))) {
        return !text->empty() && *text != "{}";
    }
    const json::value state = state_of(call);
    return state.is_object() && !state.as_object().empty();
}

Result<Rgba8> prepare(const Call& call, const Frame& frame, const Placement& place) {
    Rgba8 bitmap = to_bitmap(frame);
    flip(bitmap, place.flip_h, place.flip_v);
    const auto width = static_cast<std::size_t>(std::max(1.0, std::nearbyint(place.width)));
    const auto height = static_cast<std::size_t>(std::max(1.0, std::nearbyint(place.height)));
    if (bitmap.width != width || bitmap.height != height) {
        auto scaled = resized(call, bitmap, width, height);
        if (!scaled) {
            return scaled;
        }
        bitmap = std::move(*scaled);
    }
    if (place.rotation != 0.0) {
        return rotated(call, bitmap, -(place.rotation * (180.0 / std::numbers::pi)));
    }
    return bitmap;
}

const std::array<float, 256>& linear_of_bytes() {
    static const std::array<float, 256> table = [] {
        std::array<float, 256> values{};
        for (std::size_t i = 0; i < values.size(); ++i) {
            values[i] = srgb_to_linear(static_cast<float>(i) / 255.0F);
        }
        return values;
    }();
    return table;
}

// Python's //, which rounds down.
std::int64_t half_down(std::int64_t value) {
    return value >= 0 ? value / 2 : -((-value + 1) / 2);
}

Result<> lay(const Call& call, NewImage& canvas, const Rgba8& bitmap, const Placement& place) {
    const Bounds bounds = bounds_of(place);
    const auto canvas_width = static_cast<std::int64_t>(canvas.shape().width);
    const auto canvas_height = static_cast<std::int64_t>(canvas.shape().height);
    const std::int64_t x0 = std::max<std::int64_t>(bounds.x, 0);
    const std::int64_t y0 = std::max<std::int64_t>(bounds.y, 0);
    const std::int64_t x1 = std::min(bounds.x + bounds.width, canvas_width);
    const std::int64_t y1 = std::min(bounds.y + bounds.height, canvas_height);
    if (x0 >= x1 || y0 >= y1) {
        return {};
    }
    // The bitmap sits in the middle of the bounds; around it nothing is laid.
    const std::int64_t left =
        bounds.x + half_down(bounds.width - static_cast<std::int64_t>(bitmap.width));
    const std::int64_t top =
        bounds.y + half_down(bounds.height - static_cast<std::int64_t>(bitmap.height));
    const BlendMode mode(place.blend);
    const auto count = static_cast<std::size_t>(x1 - x0);
    return call.for_rows(
        static_cast<std::size_t>(y1 - y0),
        count * 64,
        [&](std::size_t first, std::size_t last) {
            std::vector<float> row(count * 4);
            for (std::size_t i = first; i < last; ++i) {
                const std::int64_t y = y0 + static_cast<std::int64_t>(i);
                std::ranges::fill(row, 0.0F);
                for (std::int64_t x = std::max(x0, left);
                     y >= top && y < top + static_cast<std::int64_t>(bitmap.height) &&
                     x < std::min(x1, left + static_cast<std::int64_t>(bitmap.width));
                     ++x) {
                    const std::uint8_t* from = bitmap.at(
                        static_cast<std::size_t>(x - left), static_cast<std::size_t>(y - top)
                    );
                    float* into = row.data() + (x - x0) * 4;
                    for (std::size_t c = 0; c < 3; ++c) {
                        into[c] = linear_of_bytes()[from[c]];
                    }
                    into[3] = static_cast<float>(from[3]) / 255.0F;
                }
                float* under = canvas.row(static_cast<std::size_t>(y)) + x0 * 4;
                mode.apply(under, row.data(), count, static_cast<float>(place.opacity));
            }
        }
    );
}

void fill_background(NewImage& canvas, const Background& background) {
    const ImageShape& shape = canvas.shape();
    std::fill_n(canvas.data(), shape.rows() * shape.row_floats(), 0.0F);
    if (!background.visible || background.opacity <= 0.0) {
        return;
    }
    std::array<float, 4> layer{0.0F, 0.0F, 0.0F, 1.0F};
    std::ranges::transform(background.color, layer.begin(), &srgb_to_linear);
    const BlendMode normal("normal");
    for (std::size_t i = 0; i < shape.rows() * shape.width; ++i) {
        normal.apply(
            canvas.data() + i * 4, layer.data(), 1, static_cast<float>(background.opacity)
        );
    }
}

// The canvas in linear light, with alpha.
Result<NewImage> compose(
    const Call& call, const std::vector<Frame>& frames, const Composition& composition
) {
    const auto [width, height] = composition.canvas;
    if (width > std::int64_t{kSideMax} || height > std::int64_t{kSideMax}) {
        return node_error(
            "ValueError",
            "The canvas of " + std::to_string(width) + " x " + std::to_string(height) +
                " is larger than 16384 x 16384"
        );
    }
    auto canvas =
        call.new_image({1, static_cast<std::size_t>(height), static_cast<std::size_t>(width), 4});
    if (!canvas) {
        return canvas;
    }
    fill_background(*canvas, composition.background);
    for (const std::size_t index : composition.order) {
        const Placement& place = composition.placements[index];
        if (!place.visible) {
            continue;
        }
        const auto bitmap = prepare(call, frames[index], place);
        if (!bitmap) {
            return fail(bitmap.error());
        }
        if (auto laid = lay(call, *canvas, *bitmap, place); !laid) {
            return fail(std::move(laid.error()));
        }
    }
    return canvas;
}

struct Composite {
    Image image;  // with alpha only where something shines through
    Mask mask;
};

Result<Composite> to_outputs(const Call& call, NewImage canvas) {
    const ImageShape shape = canvas.shape();
    const std::size_t pixels = shape.rows() * shape.width;
    bool opaque = true;
    for (std::size_t i = 0; i < pixels && opaque; ++i) {
        opaque = clamp_unit(canvas.data()[i * 4 + 3]) >= kOpaque;
    }
    const std::size_t channels = opaque ? 3 : 4;
    auto image =
        make_image(call, {1, shape.height, shape.width, channels}, [&](std::size_t y, float* into) {
            const float* from = canvas.row(y);
            for (std::size_t x = 0; x < shape.width; ++x) {
                for (std::size_t c = 0; c < 3; ++c) {
                    into[x * channels + c] = linear_to_srgb(clamp_unit(from[x * 4 + c]));
                }
                if (!opaque) {
                    into[x * channels + 3] = clamp_unit(from[x * 4 + 3]);
                }
            }
        });
    if (!image) {
        return fail(std::move(image.error()));
    }
    auto mask = make_mask(call, {1, shape.height, shape.width, 1}, [&](std::size_t y, float* into) {
        for (std::size_t x = 0; x < shape.width; ++x) {
            into[x] = opaque ? 0.0F : clamp_unit(1.0F - clamp_unit(canvas.row(y)[x * 4 + 3]));
        }
    });
    if (!mask) {
        return fail(std::move(mask.error()));
    }
    return Composite{std::move(*image), std::move(*mask)};
}

Result<Composite> empty_composite(const Call& call) {
    const ImageShape shape{1, kEmptySide, kEmptySide, 3};
    auto image = make_image(call, shape, [](std::size_t, float* into) {
        std::fill_n(into, kEmptySide * 3, 0.0F);
    });
    auto mask = make_mask(call, {1, kEmptySide, kEmptySide, 1}, [](std::size_t, float* into) {
        std::fill_n(into, kEmptySide, 0.0F);
    });
    if (!image || !mask) {
        return fail(image ? mask.error() : image.error());
    }
    return Composite{std::move(*image), std::move(*mask)};
}

// What the editor shows of one layer.
Result<json::array> preview_layer(const Call& call, const Frame& frame) {
    const std::size_t channels = frame.alpha ? 4 : 3;
    const ImageShape shape{1, frame.height(), frame.width(), channels};
    const auto image = make_image(call, shape, [&](std::size_t y, float* into) {
        for (std::size_t x = 0; x < shape.width; ++x) {
            std::copy_n(frame.row(y) + x * frame.channels(), 3, into + x * channels);
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

Result<NodeResult> execute(Call& call) {
    const auto& document = call.object<Layers>("layers");
    const auto frames = frames_of(call, document);
    if (!frames) {
        return fail(frames.error());
    }
    json::array previews;
    json::array fingerprints;
    json::array boxes;
    for (const Frame& frame : *frames) {
        auto files = preview_layer(call, frame);
        if (!files) {
            return fail(std::move(files.error()));
        }
        previews.insert(previews.end(), files->begin(), files->end());
        fingerprints.emplace_back(fingerprint_of(frame));
        boxes.emplace_back(describe(frame));
    }
    const auto replayed =
        frames->empty() ? std::nullopt : saved(state_of(call), *frames, fingerprints);
    Result<Composite> composite = fail(Code::internal, "");
    if (frames->empty()) {
        composite = empty_composite(call);
    } else {
        auto canvas = compose(call, *frames, replayed ? *replayed : as_placed(*frames, document));
        if (!canvas) {
            return fail(std::move(canvas.error()));
        }
        composite = to_outputs(call, std::move(*canvas));
    }
    if (!composite) {
        return fail(std::move(composite.error()));
    }
    auto ui = preview_ui(call, composite->image, true);
    if (!ui) {
        return fail(std::move(ui.error()));
    }
    (*ui)["compositor_layers"] = std::move(previews);
    (*ui)["compositor_inputs"] = std::move(fingerprints);
    (*ui)["compositor_bboxes"] = std::move(boxes);
    if (was_given(call) && !replayed) {
        (*ui)["compositor_state_stale"] = json::array{true};
    }
    return NodeResult{
        .outputs = {std::move(composite->image), std::move(composite->mask)}, .ui = std::move(*ui)
    };
}

}  // namespace

NodeClass image_compositor() {
    return {
        .name = "ImageCompositor",
        .description = "Lays a stack of layers on each other, each with its place and blend mode.",
        .execute = &execute,
    };
}

}  // namespace comfyd::engine::nodes
