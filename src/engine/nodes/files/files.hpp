// The classes that load, save and preview.
#pragma once

#include "engine/nodes/node.hpp"

namespace comfyd::engine::nodes {

NodeClass image_compare();
NodeClass load_image();
NodeClass load_image_mask();
NodeClass load_image_output();
NodeClass painter();
NodeClass preview_image();
NodeClass save_animated_png();
NodeClass save_animated_webp();
NodeClass save_image();
NodeClass save_image_advanced();
NodeClass save_image_websocket();
NodeClass save_text();

}  // namespace comfyd::engine::nodes
