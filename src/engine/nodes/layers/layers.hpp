// The classes that stack pictures, and that draw boxes and texts on them.
#pragma once

#include "engine/nodes/node.hpp"

namespace comfyd::engine::nodes {

NodeClass add_layer();
NodeClass create_bounding_boxes();
NodeClass draw_bboxes();
NodeClass image_compositor();
NodeClass layers_from_bounding_boxes();
NodeClass text_overlay();

}  // namespace comfyd::engine::nodes
