// The list of every node class that the engine runs. A node is one function that returns its
// NodeClass; adding one means a file in this folder, a line below and a line in all.cpp.
#pragma once

#include "engine/registry.hpp"

namespace comfyd::engine {

Registry make_registry();

namespace nodes {

NodeClass empty_image();
NodeClass image_blend();
NodeClass image_invert();
NodeClass image_scale();
NodeClass load_image();
NodeClass preview_image();
NodeClass save_image();

}  // namespace nodes
}  // namespace comfyd::engine
