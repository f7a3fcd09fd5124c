#include "engine/nodes/layers/boxes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "engine/nodes/node.hpp"
#include "engine/nodes/text/python_value.hpp"

namespace comfyd::engine::nodes {
namespace {

// Beyond any canvas, so that later sums cannot overflow.
constexpr double kFar = 1e9;

std::optional<double> as_number(const json::value* value) {
    if (value == nullptr) {
        return std::nullopt;
    }
    if (value->is_double()) {
        return value->as_double();
    }
    if (value->is_int64()) {
        return static_cast<double>(value->as_int64());
    }
    if (value->is_uint64()) {
        return static_cast<double>(value->as_uint64());
    }
    return std::nullopt;
}

bool is_element(const json::object& box) {
    const json::value* corners = box.if_contains("bbox");
    return corners != nullptr && corners->is_array() && corners->as_array().size() == 4;
}

bool is_box(const json::object& box) {
    return box.contains("x") && box.contains("y") && box.contains("width") &&
           box.contains("height");
}

json::array normalized(const json::array& frame) {
    json::array boxes;
    for (const json::value& item : frame) {
        const json::object* box = item.if_object();
        if (box == nullptr) {
            continue;
        }
        json::object plain;
        for (const std::string_view key : {"x", "y", "width", "height"}) {
            const json::value* number = box->if_contains(key);
            plain[key] = number != nullptr ? *number : json::value(0);
        }
        const json::value* metadata = box->if_contains("metadata");
        if (metadata != nullptr && metadata->is_object()) {
            plain["metadata"] = *metadata;
        }
        boxes.emplace_back(std::move(plain));
    }
    return boxes;
}

json::value member_or(const json::object& from, std::string_view key, json::value otherwise) {
    const json::value* value = from.if_contains(key);
    return value != nullptr ? *value : otherwise;
}

Result<json::array> from_elements(
    const json::array& elements, std::int64_t width, std::int64_t height
) {
    json::array boxes;
    for (const json::value& item : elements) {
        const json::object* element = item.if_object();
        if (element == nullptr) {
            continue;
        }
        if (!is_element(*element)) {
            return node_error(
                "ValueError", "An element needs a 'bbox' of four numbers: ymin, xmin, ymax, xmax"
            );
        }
        std::array<double, 4> corners{};
        for (std::size_t i = 0; i < 4; ++i) {
            const auto corner = as_number(&element->at("bbox").as_array()[i]);
            if (!corner) {
                return node_error("ValueError", "The 'bbox' of an element holds four numbers");
            }
            corners[i] = *corner / 1000.0;
        }
        const auto [ymin, xmin, ymax, xmax] = corners;
        const auto w = static_cast<double>(width);
        const auto h = static_cast<double>(height);
        const bool text = member_or(*element, "type", nullptr) == json::value("text");
        const json::value palette = member_or(*element, "color_palette", json::array{});
        boxes.emplace_back(json::object{
            {"x", python_round(std::min(xmin, xmax) * w)},
            {"y", python_round(std::min(ymin, ymax) * h)},
            {"width", python_round(std::abs(xmax - xmin) * w)},
            {"height", python_round(std::abs(ymax - ymin) * h)},
            {"metadata",
             {{"type", text ? "text" : "obj"},
              {"text", text ? member_or(*element, "text", "") : json::value("")},
              {"desc", member_or(*element, "desc", "")},
              {"palette", palette.is_array() ? palette : json::value(json::array{})}}}
        });
    }
    return boxes;
}

Result<json::array> from_json_value(
    const json::value& data, std::int64_t width, std::int64_t height
) {
    if (data.is_null()) {
        return json::array{};
    }
    const bool alone = data.is_object();
    if (!alone && !data.is_array()) {
        return node_error("ValueError", "Boxes are boxes, elements, or a JSON text of them");
    }
    const json::array items = alone ? json::array{data} : data.as_array();
    if (items.empty()) {
        return json::array{};
    }
    if (const json::array* frame = items[0].if_array()) {
        return normalized(*frame);
    }
    const json::object* first = items[0].if_object();
    if (first != nullptr && is_element(*first)) {
        return from_elements(items, width, height);
    }
    if (first != nullptr && is_box(*first)) {
        return normalized(items);
    }
    return node_error(
        "ValueError", "A box has x, y, width and height, an element has a 'bbox'; this has neither"
    );
}

Result<json::value> read_boxes(const Value& value) {
    const auto* text = std::get_if<std::string>(&value);
    if (text == nullptr) {
        auto data = to_json(value);
        if (!data) {
            return node_error("ValueError", "Boxes are boxes, elements, or a JSON text of them");
        }
        return std::move(*data);
    }
    if (text->find_first_not_of(" \t\n\r\v\f") == text->npos) {
        return json::value(nullptr);
    }
    auto parsed = json::parse(*text);
    if (!parsed) {
        return node_error(
            "ValueError", "The text with the boxes is no valid JSON: " + parsed.error().message
        );
    }
    return std::move(*parsed);
}

}  // namespace

Result<json::array> boxes_from(const Value& value, std::int64_t width, std::int64_t height) {
    const auto data = read_boxes(value);
    if (!data) {
        return fail(data.error());
    }
    return from_json_value(*data, width, height);
}

Result<json::array> boxes_on_canvas(const Value& value, std::int64_t width, std::int64_t height) {
    const auto data = read_boxes(value);
    if (!data) {
        return fail(data.error());
    }
    const json::array alone = data->is_array() ? json::array{} : json::array{*data};
    const json::array* items = data->is_array() ? &data->as_array() : &alone;
    if (!items->empty() && (*items)[0].is_array()) {
        items = &(*items)[0].as_array();
    }
    const bool elements = std::ranges::any_of(*items, [](const json::value& item) {
        const json::object* box = item.if_object();
        const json::value* corners = box != nullptr ? box->if_contains("bbox") : nullptr;
        return corners != nullptr && corners->is_array();
    });
    if (elements && (width <= 0 || height <= 0)) {
        return node_error(
            "ValueError",
            "Elements are in thousandths of a canvas: set canvas_width and canvas_height"
        );
    }
    return from_json_value(*data, width, height);
}

double number_of(const json::object& box, std::string_view key) {
    const auto number = as_number(box.if_contains(key));
    return number && std::isfinite(*number) ? std::clamp(*number, -kFar, kFar) : 0.0;
}

std::int64_t integer_of(const json::value* value, std::int64_t otherwise) {
    const auto number = as_number(value);
    if (!number || !std::isfinite(*number)) {
        return otherwise;
    }
    return static_cast<std::int64_t>(std::clamp(*number, -kFar, kFar));
}

std::int64_t python_round(double value) {
    if (!std::isfinite(value)) {
        return 0;
    }
    return static_cast<std::int64_t>(std::nearbyint(std::clamp(value, -kFar, kFar)));
}

}  // namespace comfyd::engine::nodes
