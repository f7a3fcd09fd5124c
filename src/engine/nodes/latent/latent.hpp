// LATENT values and the node classes about them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/nodes/latent/tensor.hpp"
#include "engine/nodes/node.hpp"
#include "engine/values/value.hpp"

namespace comfyd::engine::nodes {

class Latent : public Object {
public:
    explicit Latent(Tensor of) : samples(std::move(of)) {}
    std::string_view type() const override { return "LATENT"; }
    std::uint64_t bytes() const override {
        return batch_index ? batch_index->size() * sizeof batch_index->front() : 0;
    }
    bool is_empty() const override { return samples.count() == 0; }

    Tensor samples;                                        // [batch, channels, ..., height, width]
    std::optional<Tensor> noise_mask;                      // [batch, 1, height, width]
    std::optional<std::vector<std::int64_t>> batch_index;  // which noise each sample gets
};

// The latent with other samples, as the one output.
Result<NodeResult> with_samples(const Latent& latent, Result<Tensor> samples);
Value as_value(Latent latent);

std::vector<NodeClass> empty_latents();
NodeClass latent_upscale();
NodeClass latent_upscale_by();
NodeClass latent_rotate();
NodeClass latent_flip();
NodeClass latent_crop();
NodeClass latent_concat();
NodeClass latent_cut();
NodeClass latent_cut_to_batch();
NodeClass latent_from_batch();
NodeClass repeat_latent_batch();
NodeClass latent_batch();
NodeClass batch_latents();
NodeClass rebatch_latents();
NodeClass latent_batch_seed_behavior();
NodeClass set_latent_noise_mask();
NodeClass latent_add();
NodeClass latent_subtract();
NodeClass latent_multiply();
NodeClass latent_interpolate();
NodeClass latent_blend();
NodeClass latent_composite();
NodeClass save_latent();
NodeClass load_latent();

}  // namespace comfyd::engine::nodes
