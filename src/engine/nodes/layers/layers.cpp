#include "engine/nodes/layers/layers.hpp"

#include "engine/nodes/all.hpp"

namespace comfyd::engine::nodes {

void add_layers(Registry& registry) {
    registry.add(add_layer());
    registry.add(create_bounding_boxes());
    registry.add(draw_bboxes());
    registry.add(image_compositor());
    registry.add(layers_from_bounding_boxes());
    registry.add(text_overlay());
}

}  // namespace comfyd::engine::nodes
