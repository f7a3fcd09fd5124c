// The node classes about plain values: primitives, numbers, logic, lists.
#pragma once

#include "engine/nodes/node.hpp"

namespace comfyd::engine::nodes {

NodeClass primitive_string();
NodeClass primitive_string_multiline();
NodeClass primitive_int();
NodeClass primitive_float();
NodeClass primitive_boolean();
NodeClass primitive_bounding_box();
NodeClass seed_node();

NodeClass number_convert();
NodeClass math_expression();
NodeClass color_to_rgb_int();
NodeClass resolution_selector();

NodeClass not_node();
NodeClass and_node();
NodeClass or_node();
NodeClass switch_node();
NodeClass custom_combo();
NodeClass create_list();

}  // namespace comfyd::engine::nodes
