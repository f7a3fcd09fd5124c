#include "engine/nodes/latent/latent.hpp"

#include <utility>

#include "engine/nodes/all.hpp"

namespace comfyd::engine::nodes {

Value as_value(Latent latent) {
    return std::shared_ptr<const Object>(std::make_shared<const Latent>(std::move(latent)));
}

Result<NodeResult> with_samples(const Latent& latent, Result<Tensor> samples) {
    if (!samples) {
        return fail(std::move(samples.error()));
    }
    Latent changed = latent;
    changed.samples = std::move(*samples);
    return NodeResult{.outputs = {as_value(std::move(changed))}};
}

void add_latent(Registry& registry) {
    std::vector<NodeClass> makers = empty_latents();
    for (NodeClass& node : makers) {
        registry.add(std::move(node));
    }
    registry.add(latent_upscale());
    registry.add(latent_upscale_by());
    registry.add(latent_rotate());
    registry.add(latent_flip());
    registry.add(latent_crop());
    registry.add(latent_concat());
    registry.add(latent_cut());
    registry.add(latent_cut_to_batch());
    registry.add(latent_from_batch());
    registry.add(repeat_latent_batch());
    registry.add(latent_batch());
    registry.add(batch_latents());
    registry.add(rebatch_latents());
    registry.add(latent_batch_seed_behavior());
    registry.add(set_latent_noise_mask());
    registry.add(latent_add());
    registry.add(latent_subtract());
    registry.add(latent_multiply());
    registry.add(latent_interpolate());
    registry.add(latent_blend());
    registry.add(latent_composite());
    registry.add(save_latent());
    registry.add(load_latent());
}

}  // namespace comfyd::engine::nodes
