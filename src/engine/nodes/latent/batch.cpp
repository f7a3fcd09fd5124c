// Latents taken out of batches, repeated, put together and regrouped; and their masks.
#include <algorithm>
#include <numeric>
#include <utility>

#include "engine/nodes/call.hpp"
#include "engine/nodes/latent/latent.hpp"

namespace comfyd::engine::nodes {
namespace {

using Indexes = std::vector<std::int64_t>;

Indexes counted(std::int64_t first, std::size_t count) {
    Indexes indexes(count);
    std::iota(indexes.begin(), indexes.end(), first);
    return indexes;
}

Indexes indexes_of(const Latent& latent) {
    return latent.batch_index.value_or(counted(0, latent.samples.size(0)));
}

Result<NodeResult> execute_from_batch(Call& call) {
    const auto& latent = call.object<Latent>("samples");
    const std::size_t batch = latent.samples.size(0);
    if (batch == 0) {
        return NodeResult{.outputs = {call.value("samples")}};
    }
    const std::size_t first = std::min(
        batch - 1, static_cast<std::size_t>(std::max<std::int64_t>(0, call.place("batch_index")))
    );
    const std::size_t count = std::min(
        batch - first, static_cast<std::size_t>(std::max<std::int64_t>(0, call.place("length")))
    );
    Latent out = latent;
    auto samples = narrow(call, latent.samples, 0, first, count);
    if (!samples) {
        return fail(std::move(samples.error()));
    }
    out.samples = std::move(*samples);
    if (latent.noise_mask && latent.noise_mask->size(0) != 1) {
        Result<Tensor> mask = latent.noise_mask->size(0) < batch
                                  ? repeat_to_batch(call, *latent.noise_mask, batch)
                                  : *latent.noise_mask;
        if (mask) {
            mask = narrow(call, *mask, 0, first, count);
        }
        if (!mask) {
            return fail(std::move(mask.error()));
        }
        out.noise_mask = std::move(*mask);
    }
    out.batch_index = counted(static_cast<std::int64_t>(first), count);
    if (latent.batch_index) {
        const Indexes& all = *latent.batch_index;
        const std::size_t begin = std::min(first, all.size());
        const std::size_t end = std::min(first + count, all.size());
        out.batch_index = Indexes(
            all.begin() + static_cast<std::ptrdiff_t>(begin),
            all.begin() + static_cast<std::ptrdiff_t>(end)
        );
    }
    return NodeResult{.outputs = {as_value(std::move(out))}};
}

Result<NodeResult> execute_repeat(Call& call) {
    const auto& latent = call.object<Latent>("samples");
    const std::size_t amount = call.size("amount");
    Latent out = latent;
    auto samples = repeat_to_batch(call, latent.samples, latent.samples.size(0) * amount);
    if (!samples) {
        return fail(std::move(samples.error()));
    }
    out.samples = std::move(*samples);
    if (latent.noise_mask && latent.noise_mask->size(0) > 1) {
        auto mask = repeat_to_batch(call, *latent.noise_mask, latent.noise_mask->size(0) * amount);
        if (!mask) {
            return fail(std::move(mask.error()));
        }
        out.noise_mask = std::move(*mask);
    }
    if (latent.batch_index && !latent.batch_index->empty()) {
        const Indexes& old = *latent.batch_index;
        const auto [least, most] = std::ranges::minmax(old);
        const std::int64_t offset = most - least + 1;
        for (std::size_t i = 1; i < amount; ++i) {
            for (const std::int64_t index : old) {
                out.batch_index->push_back(index + static_cast<std::int64_t>(i) * offset);
            }
        }
    }
    return NodeResult{.outputs = {as_value(std::move(out))}};
}

// Everything scaled to the first one's size and put behind it.
Result<NodeResult> batched(const Call& call, const std::vector<const Latent*>& latents) {
    const Latent& first = *latents.front();
    std::vector<Tensor> samples;
    Indexes indexes;
    for (const Latent* latent : latents) {
        Result<Tensor> tensor = latent->samples;
        const Dims& have = latent->samples.dims();
        const Dims& want = first.samples.dims();
        if (!std::equal(have.begin() + 1, have.end(), want.begin() + 1, want.end())) {
            tensor = resize_planes(
                call,
                latent->samples,
                first.samples.size(-1),
                first.samples.size(-2),
                ResizeMethod::bilinear,
                Crop::center
            );
        }
        if (!tensor) {
            return fail(std::move(tensor.error()));
        }
        samples.push_back(std::move(*tensor));
        const Indexes more = indexes_of(*latent);
        indexes.insert(indexes.end(), more.begin(), more.end());
    }
    auto together = concatenate(call, samples, 0);
    if (!together) {
        return fail(std::move(together.error()));
    }
    Latent out = first;
    out.samples = std::move(*together);
    out.batch_index = std::move(indexes);
    return NodeResult{.outputs = {as_value(std::move(out))}};
}

Result<NodeResult> execute_batch(Call& call) {
    return batched(call, {&call.object<Latent>("samples1"), &call.object<Latent>("samples2")});
}

Result<NodeResult> execute_batch_all(Call& call) {
    std::vector<const Latent*> latents;
    for (const Call::Grown& grown : call.grown("latents")) {
        const auto& object = std::get<std::shared_ptr<const Object>>(grown.value);
        latents.push_back(&dynamic_cast<const Latent&>(*object));
    }
    if (latents.empty()) {
        return node_error("IndexError", "list index out of range");
    }
    return batched(call, latents);
}

// The mask of a latent in the size of its picture, one for each sample; ones where it has none.
Result<Tensor> picture_mask(const Call& call, const Latent& latent) {
    const Tensor& samples = latent.samples;
    const std::size_t height = samples.size(-2) * 8;
    const std::size_t width = samples.size(-1) * 8;
    if (!latent.noise_mask) {
        return filled(call, {samples.size(0), 1, height, width}, 1.0F);
    }
    Result<Tensor> mask = *latent.noise_mask;
    if (mask->size(-1) != width || mask->size(-2) != height) {
        mask = resize_planes(call, *mask, width, height, ResizeMethod::bilinear, Crop::disabled);
    }
    return mask && mask->size(0) < samples.size(0) ? repeat_to_batch(call, *mask, samples.size(0))
                                                   : mask;
}

// One run of latents of the same shape, flattened.
struct Run {
    std::vector<Tensor> samples;
    std::vector<Tensor> masks;
    Indexes indexes;
};

Result<> flush(const Call& call, Run& run, std::size_t size, std::vector<Value>& into) {
    if (run.samples.empty()) {
        return {};
    }
    const auto samples = concatenate(call, run.samples, 0);
    if (!samples) {
        return fail(samples.error());
    }
    const auto masks = concatenate(call, run.masks, 0);
    if (!masks) {
        return fail(masks.error());
    }
    const std::size_t all = samples->size(0);
    for (std::size_t at = 0; at < all; at += size) {
        const std::size_t count = std::min(size, all - at);
        auto part = narrow(call, *samples, 0, at, count);
        auto mask = narrow(call, *masks, 0, at, count);
        if (!part || !mask) {
            return fail(std::move((part ? mask : part).error()));
        }
        Latent latent(std::move(*part));
        // A mask of ones says nothing.
        if (std::any_of(mask->data(), mask->data() + mask->count(), [](float x) {
                return x != 1.0F;
            })) {
            latent.noise_mask = std::move(*mask);
        }
        const auto begin = run.indexes.begin() + static_cast<std::ptrdiff_t>(at);
        latent.batch_index = Indexes(begin, begin + static_cast<std::ptrdiff_t>(count));
        into.push_back(as_value(std::move(latent)));
    }
    run = {};
    return {};
}

Result<NodeResult> execute_rebatch(Call& call) {
    const auto size = static_cast<std::size_t>(std::max<std::int64_t>(1, call.place("batch_size")));
    auto out = std::make_shared<List>();
    Run run;
    std::int64_t offset = 0;
    for (const Value& value : call.list("latents")) {
        const auto& latent =
            dynamic_cast<const Latent&>(*std::get<std::shared_ptr<const Object>>(value));
        const Dims& dims = latent.samples.dims();
        const bool fits = run.samples.empty() || std::equal(
                                                     dims.begin() + 1,
                                                     dims.end(),
                                                     run.samples.front().dims().begin() + 1,
                                                     run.samples.front().dims().end()
                                                 );
        if (auto done = fits ? Result<>() : flush(call, run, size, out->items); !done) {
            return fail(std::move(done.error()));
        }
        auto mask = picture_mask(call, latent);
        if (!mask) {
            return fail(std::move(mask.error()));
        }
        const Indexes indexes =
            latent.batch_index.value_or(counted(offset, latent.samples.size(0)));
        offset += static_cast<std::int64_t>(latent.samples.size(0));
        run.samples.push_back(latent.samples);
        run.masks.push_back(std::move(*mask));
        run.indexes.insert(run.indexes.end(), indexes.begin(), indexes.end());
        run.indexes.resize(run.indexes.size() - indexes.size() + latent.samples.size(0));
    }
    if (auto done = flush(call, run, size, out->items); !done) {
        return fail(std::move(done.error()));
    }
    return NodeResult{.outputs = {std::shared_ptr<const List>(std::move(out))}};
}

Result<NodeResult> execute_seed_behavior(Call& call) {
    Latent out = call.object<Latent>("samples");
    if (call.text("seed_behavior") == "random") {
        out.batch_index.reset();
    } else {
        const std::int64_t first =
            out.batch_index && !out.batch_index->empty() ? out.batch_index->front() : 0;
        out.batch_index = Indexes(out.samples.size(0), first);
    }
    return NodeResult{.outputs = {as_value(std::move(out))}};
}

Result<NodeResult> execute_set_mask(Call& call) {
    const Mask& mask = call.mask("mask");
    const ImageShape& shape = mask.shape();
    auto tensor = make_tensor(call, {shape.batch, 1, shape.height, shape.width}, [&](float* into) {
        std::copy_n(mask.data(), shape.rows() * shape.width, into);
    });
    if (!tensor) {
        return fail(std::move(tensor.error()));
    }
    Latent out = call.object<Latent>("samples");
    out.noise_mask = std::move(*tensor);
    return NodeResult{.outputs = {as_value(std::move(out))}};
}

}  // namespace

NodeClass latent_from_batch() {
    return {
        .name = "LatentFromBatch",
        .description = "Takes some latents out of a batch.",
        .execute = &execute_from_batch
    };
}

NodeClass repeat_latent_batch() {
    return {
        .name = "RepeatLatentBatch",
        .description = "Repeats a batch of latents.",
        .execute = &execute_repeat
    };
}

NodeClass latent_batch() {
    return {
        .name = "LatentBatch",
        .description = "Puts two batches of latents into one.",
        .execute = &execute_batch
    };
}

NodeClass batch_latents() {
    return {
        .name = "BatchLatentsNode",
        .description = "Puts latents into one batch, scaled to the size of the first.",
        .execute = &execute_batch_all
    };
}

NodeClass rebatch_latents() {
    return {
        .name = "RebatchLatents",
        .description = "Regroups latents into batches of one size.",
        .execute = &execute_rebatch
    };
}

NodeClass latent_batch_seed_behavior() {
    return {
        .name = "LatentBatchSeedBehavior",
        .description = "Whether the latents of a batch get different noise or all the same.",
        .execute = &execute_seed_behavior
    };
}

NodeClass set_latent_noise_mask() {
    return {
        .name = "SetLatentNoiseMask",
        .description = "Limits sampling to the masked part of a latent.",
        .execute = &execute_set_mask
    };
}

}  // namespace comfyd::engine::nodes
