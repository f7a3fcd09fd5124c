// Values that the person who builds the workflow types in.
#include <utility>

#include "engine/nodes/call.hpp"
#include "engine/nodes/values/values.hpp"

namespace comfyd::engine::nodes {
namespace {

Result<NodeResult> pass_value(Call& call) {
    return NodeResult{.outputs = {call.value("value")}};
}

Result<NodeResult> pass_seed(Call& call) {
    return NodeResult{.outputs = {call.value("seed")}};
}

Result<NodeResult> make_box(Call& call) {
    json::object box;
    for (const char* side : {"x", "y", "width", "height"}) {
        box[side] = call.integer(side);
    }
    return NodeResult{.outputs = {Data(std::move(box))}};
}

}  // namespace

NodeClass primitive_string() {
    return {.name = "PrimitiveString", .description = "A text.", .execute = &pass_value};
}

NodeClass primitive_string_multiline() {
    return {
        .name = "PrimitiveStringMultiline",
        .description = "A text of several lines.",
        .execute = &pass_value
    };
}

NodeClass primitive_int() {
    return {.name = "PrimitiveInt", .description = "A whole number.", .execute = &pass_value};
}

NodeClass primitive_float() {
    return {.name = "PrimitiveFloat", .description = "A number.", .execute = &pass_value};
}

NodeClass primitive_boolean() {
    return {.name = "PrimitiveBoolean", .description = "Yes or no.", .execute = &pass_value};
}

NodeClass primitive_bounding_box() {
    return {
        .name = "PrimitiveBoundingBox",
        .description = "A rectangle by its corner and its size.",
        .execute = &make_box
    };
}

NodeClass seed_node() {
    return {
        .name = "SeedNode",
        .description = "A seed that several nodes can share.",
        .execute = &pass_seed
    };
}

}  // namespace comfyd::engine::nodes
