// JSON out of and into texts.
#include <string>
#include <utility>

#include "engine/nodes/call.hpp"
#include "engine/nodes/text/json_text.hpp"
#include "engine/nodes/text/python_value.hpp"
#include "engine/nodes/text/text.hpp"
#include "engine/nodes/text/unicode.hpp"

namespace comfyd::engine::nodes {
namespace {

Result<NodeResult> execute_extract(Call& call) {
    const auto* document = std::get_if<std::string>(&call.value("json_string"));
    const auto* key = std::get_if<std::string>(&call.value("key"));
    if (document == nullptr || key == nullptr) {
        return NodeResult{.outputs = {std::string()}};  // ComfyUI catches Python's TypeError
    }
    const auto room = call.charge(document->size() * kJsonBytesPerByte);
    if (!room) {
        return fail(room.error());
    }
    std::string shown;
    const JsonMember found =
        find_json_member(*document, *key, [&call] { return call.stopped(); }, shown);
    if (auto going = call.check_stopped(); !going) {
        return fail(std::move(going.error()));
    }
    if (found == JsonMember::too_deep) {
        return node_error(
            "RecursionError", "maximum recursion depth exceeded while decoding a JSON document"
        );
    }
    return NodeResult{.outputs = {found == JsonMember::found ? std::move(shown) : std::string()}};
}

Result<NodeResult> dump(const Call& call, const char* input) {
    const auto value = to_json(call.value(input));
    if (!value) {
        return node_error(
            "TypeError",
            "Object of type " + std::string(python_type(call.value(input))) +
                " is not JSON serializable"
        );
    }
    const auto indent = static_cast<int>(std::clamp<std::int64_t>(call.place("indent"), 0, 8));
    return NodeResult{.outputs = {dump_json(*value, indent)}};
}

Result<NodeResult> execute_array(Call& call) {
    return dump(call, "array");
}

Result<NodeResult> execute_dictionary(Call& call) {
    return dump(call, "dictionary");
}

// Upper-case texts; whatever else is in the list is left away.
json::array palette_of(const Call& call) {
    json::array palette;
    const auto add = [&palette](const json::value& color) {
        if (color.is_string() && !color.get_string().empty()) {
            palette.emplace_back(to_upper(std::string_view(color.get_string())));
        }
    };
    const auto colors =
        call.has("color_palette") ? to_json(call.value("color_palette")) : std::nullopt;
    if (colors && colors->is_array()) {
        for (const json::value& color : colors->get_array()) {
            add(color);
        }
    } else if (colors && colors->is_object()) {
        for (const auto& [key, color] : colors->get_object()) {
            add(color);
        }
    }
    return palette;
}

Result<NodeResult> execute_ideogram(Call& call) {
    const auto text = [&call](const char* input) -> std::string {
        return call.has(input) ? call.text(input) : std::string();
    };
    const std::string description = text("high_level_description");
    json::object caption;
    if (!strip(description).empty()) {
        caption["high_level_description"] = description;
    }
    const std::string style = text("style");
    if (style != "none") {
        json::object look{{"aesthetics", text("aesthetics")}, {"lighting", text("lighting")}};
        if (style == "photo") {
            look["photo"] = text("style.photo");
            look["medium"] = text("medium");
        } else {
            look["medium"] = text("medium");
            look["art_style"] = text("style.art_style");
        }
        if (json::array palette = palette_of(call); !palette.empty()) {
            look["color_palette"] = std::move(palette);
        }
        caption["style_description"] = std::move(look);
    }
    const auto element = to_json(call.value("element"));
    caption["compositional_deconstruction"] = {
        {"background", text("background")},
        {"elements", element && element->is_array() ? element->get_array() : json::array()}
    };
    return NodeResult{.outputs = {Data(std::move(caption))}};
}

}  // namespace

NodeClass json_extract_string() {
    return {
        .name = "JsonExtractString",
        .description = "Takes one member of a JSON object out of a text.",
        .execute = &execute_extract
    };
}

NodeClass convert_array_to_string() {
    return {
        .name = "ConvertArrayToString",
        .description = "Writes a list as JSON.",
        .execute = &execute_array
    };
}

NodeClass convert_dictionary_to_string() {
    return {
        .name = "ConvertDictionaryToString",
        .description = "Writes a dictionary as JSON.",
        .execute = &execute_dictionary
    };
}

NodeClass build_json_prompt_ideogram() {
    return {
        .name = "BuildJsonPromptIdeogram",
        .description = "Builds the structured prompt that Ideogram 4 understands.",
        .execute = &execute_ideogram
    };
}

}  // namespace comfyd::engine::nodes
