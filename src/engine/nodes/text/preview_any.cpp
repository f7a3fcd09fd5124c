#include <string>
#include <utility>

#include "engine/nodes/call.hpp"
#include "engine/nodes/text/python_value.hpp"
#include "engine/nodes/text/text.hpp"
#include "engine/nodes/text/value_text.hpp"

namespace comfyd::engine::nodes {
namespace {

constexpr int kIndent = 4;

std::string shown(const Value& value) {
    const auto converted = to_json(value);
    if (converted && (converted->is_array() || converted->is_object())) {
        return dump_json(*converted, kIndent);
    }
    return value_text(value);
}

Result<NodeResult> compute(Call& call) {
    std::string text = call.has("source") ? shown(call.value("source")) : "None";
    json::object ui{{"text", json::array{json::value(text)}}};
    return NodeResult{.outputs = {std::move(text)}, .ui = std::move(ui)};
}

}  // namespace

NodeClass preview_any() {
    return {
        .name = "PreviewAny",
        .description = "Shows any value as text.",
        .execute = &compute,
        .takes_empty = true
    };
}

}  // namespace comfyd::engine::nodes
