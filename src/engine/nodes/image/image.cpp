#include "engine/nodes/image/image.hpp"

#include "engine/nodes/all.hpp"

namespace comfyd::engine::nodes {

void add_image(Registry& registry) {
    constexpr NodeClass (*kClasses[])() = {
        &empty_image,
        &image_blend,
        &image_invert,
        &image_scale,
        &image_scale_by,
        &image_scale_to_total_pixels,
        &image_scale_to_max_dimension,
        &resize_image_mask,
        &resize_and_pad_image,
        &resize_images_by_shorter_edge,
        &resize_images_by_longer_edge,
        &flux_kontext_image_scale,
        &image_crop,
        &image_crop_v2,
        &image_crop_to_mask,
        &center_crop_images,
        &random_crop_images,
        &crop_by_bboxes,
        &image_flip,
        &image_rotate,
        &image_stitch,
        &image_pad_for_outpaint,
        &image_batch,
        &batch_images,
        &repeat_image_batch,
        &image_from_batch,
        &rebatch_images,
        &image_grid,
        &split_image_to_tile_list,
        &image_merge_tile_list,
        &image_deduplication,
        &get_image_size,
        &image_histogram,
        &curve_editor,
        &image_blur,
        &image_sharpen,
        &image_quantize,
        &image_add_noise,
        &adjust_brightness,
        &adjust_contrast,
        &normalize_images,
        &image_rgb_to_yuv,
        &image_yuv_to_rgb,
        &morphology,
        &canny,
        &color_transfer,
        &seedvr2_preprocess,
        &seedvr2_post_processing,
        &triposplat_preprocess_image,
    };
    for (const auto make : kClasses) {
        registry.add(make());
    }
}

}  // namespace comfyd::engine::nodes
