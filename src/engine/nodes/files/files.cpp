#include "engine/nodes/files/files.hpp"

#include "engine/nodes/all.hpp"

namespace comfyd::engine::nodes {

void add_files(Registry& registry) {
    registry.add(image_compare());
    registry.add(load_image());
    registry.add(load_image_mask());
    registry.add(load_image_output());
    registry.add(painter());
    registry.add(preview_image());
    registry.add(save_animated_png());
    registry.add(save_animated_webp());
    registry.add(save_image());
    registry.add(save_image_advanced());
    registry.add(save_image_websocket());
    registry.add(save_text());
}

}  // namespace comfyd::engine::nodes
