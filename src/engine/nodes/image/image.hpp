// The classes that make pictures from pictures, and what is measured on pictures.
#pragma once

#include "engine/nodes/node.hpp"

namespace comfyd::engine::nodes {

NodeClass empty_image();
NodeClass image_blend();
NodeClass image_invert();

NodeClass image_scale();
NodeClass image_scale_by();
NodeClass image_scale_to_total_pixels();
NodeClass image_scale_to_max_dimension();
NodeClass resize_image_mask();
NodeClass resize_and_pad_image();
NodeClass resize_images_by_shorter_edge();
NodeClass resize_images_by_longer_edge();
NodeClass flux_kontext_image_scale();

NodeClass image_crop();
NodeClass image_crop_v2();
NodeClass image_crop_to_mask();
NodeClass center_crop_images();
NodeClass random_crop_images();
NodeClass crop_by_bboxes();

NodeClass image_flip();
NodeClass image_rotate();
NodeClass image_stitch();
NodeClass image_pad_for_outpaint();

NodeClass image_batch();
NodeClass batch_images();
NodeClass repeat_image_batch();
NodeClass image_from_batch();
NodeClass rebatch_images();
NodeClass image_grid();
NodeClass split_image_to_tile_list();
NodeClass image_merge_tile_list();
NodeClass image_deduplication();

NodeClass get_image_size();
NodeClass image_histogram();
NodeClass curve_editor();

NodeClass image_blur();
NodeClass image_sharpen();
NodeClass image_quantize();
NodeClass image_add_noise();
NodeClass adjust_brightness();
NodeClass adjust_contrast();
NodeClass normalize_images();
NodeClass image_rgb_to_yuv();
NodeClass image_yuv_to_rgb();
NodeClass morphology();
NodeClass canny();
NodeClass color_transfer();
NodeClass seedvr2_preprocess();
NodeClass seedvr2_post_processing();
NodeClass triposplat_preprocess_image();

}  // namespace comfyd::engine::nodes
