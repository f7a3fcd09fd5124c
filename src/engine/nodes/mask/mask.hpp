// The node classes about masks, and about pictures by masks.
#pragma once

#include "engine/nodes/node.hpp"

namespace comfyd::engine::nodes {

NodeClass solid_mask();
NodeClass invert_mask();
NodeClass threshold_mask();
NodeClass crop_mask();
NodeClass mask_composite();
NodeClass feather_mask();
NodeClass grow_mask();
NodeClass mask_to_image();
NodeClass image_to_mask();
NodeClass image_color_to_mask();
NodeClass image_composite_masked();
NodeClass batch_masks();
NodeClass mask_preview();
NodeClass porter_duff_image_composite();
NodeClass split_image_with_alpha();
NodeClass join_image_with_alpha();
NodeClass void_quadmask_preprocess();

}  // namespace comfyd::engine::nodes
