#include "engine/nodes/dataset/dataset.hpp"

#include "engine/nodes/all.hpp"

namespace comfyd::engine::nodes {

void add_dataset(Registry& registry) {
    registry.add(shuffle_dataset());
    registry.add(shuffle_image_text_dataset());
    registry.add(merge_image_lists());
    registry.add(load_image_dataset_from_folder());
    registry.add(load_image_text_dataset_from_folder());
    registry.add(save_image_dataset_to_folder());
    registry.add(save_image_text_dataset_to_folder());
}

}  // namespace comfyd::engine::nodes
