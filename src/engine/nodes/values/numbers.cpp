// ComfyNumberConvert, ColorToRGBInt and ResolutionSelector.
#include <charconv>
#include <cmath>
#include <string>
#include <utility>

#include "engine/nodes/call.hpp"
#include "engine/nodes/text/python_value.hpp"
#include "engine/nodes/text/unicode.hpp"
#include "engine/nodes/values/values.hpp"
#include "engine/pixels/pictures.hpp"
#include "workflow/graph/python_text.hpp"

namespace comfyd::engine::nodes {
namespace {

Result<NodeResult> converted(double number, const json::value& whole_of) {
    if (!std::isfinite(number)) {
        return node_error(
            "ValueError",
            "Cannot convert non-finite value to number: " +
                workflow::python_repr(json::value(number))
        );
    }
    const auto whole = workflow::python_int(whole_of);
    if (!whole || whole->value.is_null()) {
        return node_error(
            "OverflowError", "The number does not fit into 64 bits: " + (whole ? whole->text : "")
        );
    }
    return NodeResult{.outputs = {number, from_json(whole->value)}};
}

Result<NodeResult> execute_convert(Call& call) {
    const Value& value = call.value("value");
    const auto* text = std::get_if<std::string>(&value);
    if (text == nullptr) {
        const auto plain = to_json(value);
        if (!plain || !(plain->is_bool() || plain->is_number())) {
            return node_error(
                "TypeError", "Unsupported input type: " + std::string(python_type(value))
            );
        }
        if (plain->is_double() && !std::isfinite(plain->get_double())) {
            const bool nan = std::isnan(plain->get_double());
            return node_error(
                nan ? "ValueError" : "OverflowError",
                nan ? "cannot convert float NaN to integer"
                    : "cannot convert float infinity to integer"
            );
        }
        return converted(workflow::python_float(*plain).value_or(0.0), *plain);
    }
    const std::string_view stripped = strip(*text);
    if (stripped.empty()) {
        return node_error("ValueError", "Cannot convert empty string to number.");
    }
    const json::value written(stripped);
    const auto number = workflow::python_float(written);
    if (!number) {
        return node_error(
            "ValueError",
            "Cannot convert string to number: " + workflow::python_repr(json::value(*text))
        );
    }
    const bool is_whole = workflow::python_int(written).has_value();
    return converted(*number, is_whole ? written : json::value(*number));
}

bool parse_hex(std::string_view digits, unsigned& value) {
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    return parsed.ec == std::errc() && parsed.ptr == digits.data() + digits.size();
}

Result<NodeResult> execute_color(Call& call) {
    const std::string& color = call.text("color");
    unsigned rgb = 0;
    unsigned alpha = 255;
    const std::string_view view = color;
    const bool good = (view.size() == 7 || view.size() == 9) && view[0] == '#' &&
                      parse_hex(view.substr(1, 6), rgb) &&
                      (view.size() == 7 || parse_hex(view.substr(7), alpha));
    if (!good) {
        return node_error("ValueError", "Color must be in format #RRGGBB or #RRGGBBAA");
    }
    return NodeResult{
        .outputs = {std::int64_t{rgb}, std::string(view.substr(0, 7)), alpha / 255.0}
    };
}

Result<NodeResult> execute_resolution(Call& call) {
    // "16:9 (Widescreen)"
    const std::string& ratio = call.text("aspect_ratio");
    const double across = std::atof(ratio.c_str());
    const double down = std::atof(ratio.c_str() + (ratio.find(':') + 1));
    const double pixels = call.number("megapixels") * 1024 * 1024;
    const double scale = std::sqrt(pixels / (across * down));
    const auto multiple = static_cast<double>(call.integer("multiple"));
    const auto side = [&](double part) {
        return python_int(std::nearbyint(part * scale / multiple) * multiple);
    };
    return NodeResult{.outputs = {side(across), side(down)}};
}

}  // namespace

NodeClass number_convert() {
    return {
        .name = "ComfyNumberConvert",
        .description = "Makes a number of a text, a number or a yes or no.",
        .execute = &execute_convert
    };
}

NodeClass color_to_rgb_int() {
    return {
        .name = "ColorToRGBInt",
        .description = "A colour as a number, as text and its opacity.",
        .execute = &execute_color
    };
}

NodeClass resolution_selector() {
    return {
        .name = "ResolutionSelector",
        .description = "Width and height for an aspect ratio and a number of megapixels.",
        .execute = &execute_resolution
    };
}

}  // namespace comfyd::engine::nodes
