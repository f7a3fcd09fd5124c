#include "engine/nodes/values/values.hpp"

#include "engine/nodes/all.hpp"

namespace comfyd::engine::nodes {

void add_values(Registry& registry) {
    registry.add(primitive_string());
    registry.add(primitive_string_multiline());
    registry.add(primitive_int());
    registry.add(primitive_float());
    registry.add(primitive_boolean());
    registry.add(primitive_bounding_box());
    registry.add(seed_node());
    registry.add(number_convert());
    registry.add(math_expression());
    registry.add(color_to_rgb_int());
    registry.add(resolution_selector());
    registry.add(not_node());
    registry.add(and_node());
    registry.add(or_node());
    registry.add(switch_node());
    registry.add(custom_combo());
    registry.add(create_list());
}

}  // namespace comfyd::engine::nodes
