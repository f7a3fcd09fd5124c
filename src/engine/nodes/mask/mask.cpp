#include "engine/nodes/mask/mask.hpp"

#include "engine/nodes/all.hpp"

namespace comfyd::engine::nodes {

void add_mask(Registry& registry) {
    registry.add(solid_mask());
    registry.add(invert_mask());
    registry.add(threshold_mask());
    registry.add(crop_mask());
    registry.add(mask_composite());
    registry.add(feather_mask());
    registry.add(grow_mask());
    registry.add(mask_to_image());
    registry.add(image_to_mask());
    registry.add(image_color_to_mask());
    registry.add(image_composite_masked());
    registry.add(batch_masks());
    registry.add(mask_preview());
    registry.add(porter_duff_image_composite());
    registry.add(split_image_with_alpha());
    registry.add(join_image_with_alpha());
    registry.add(void_quadmask_preprocess());
}

}  // namespace comfyd::engine::nodes
