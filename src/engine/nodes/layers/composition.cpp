#include "engine/nodes/layers/composition.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "engine/nodes/call.hpp"
#include "engine/nodes/layers/boxes.hpp"
#include "workflow/graph/python_text.hpp"

namespace comfyd::engine::nodes {
namespace {

constexpr double kFar = kSideMax;

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

}  // namespace

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

std::optional<Composition> saved_composition(
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

}  // namespace comfyd::engine::nodes
