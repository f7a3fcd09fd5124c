// The node classes that prepare pictures and captions for training.
#pragma once

#include "engine/nodes/node.hpp"

namespace comfyd::engine::nodes {

NodeClass shuffle_dataset();
NodeClass shuffle_image_text_dataset();
NodeClass merge_image_lists();
NodeClass load_image_dataset_from_folder();
NodeClass load_image_text_dataset_from_folder();
NodeClass save_image_dataset_to_folder();
NodeClass save_image_text_dataset_to_folder();

}  // namespace comfyd::engine::nodes
