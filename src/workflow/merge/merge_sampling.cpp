#include "workflow/merge/merge_sampling.hpp"

#include <utility>

#include "base/text.hpp"

namespace comfyd::workflow {

MergeSampling::MergeSampling(MergeState& state)
    : jobs_(state.jobs), state_(state), text_limit_(text_limit(jobs_[0].graph)) {}

Result<> MergeSampling::place(const MergeGroup& group) {
    auto batch = join_latents(group);
    if (!batch) {
        return fail(batch.error());
    }
    auto id = place_group(group, *batch);
    if (!id) {
        return fail(id.error());
    }
    for (std::size_t job = 0; job < jobs_.size(); ++job) {
        jobs_[job].values[group[job]] = {*id, state_.batches.size(), batch->layout.counts[job]};
    }
    state_.batches.push_back(std::move(batch->layout));
    return {};
}

Result<MergeSampling::Joined> MergeSampling::join_latents(const MergeGroup& group) {
    json::object inputs;
    Joined joined;
    std::string seeds;
    for (std::size_t job = 0; job < jobs_.size(); ++job) {
        const MergeJob& of = jobs_[job];
        const Graph::Link* link = of.graph.link(group[job], "latent_image");
        if (link == nullptr) {
            return refuse_merge(of, group[job], "has no latents");
        }
        const MergeValue& value = of.values[link->source];
        const MergeValue& first =
            jobs_[0].values[jobs_[0].graph.link(group[0], "latent_image")->source];
        const bool is_joined = value.batch != kNoBatch;
        if (is_joined != (first.batch != kNoBatch) || (is_joined && value.id != first.id)) {
            return refuse_merge(of, group[job], "takes latents of another run than the other jobs");
        }
        if (value.count == 0) {
            return refuse_merge(of, group[job], "makes a number of pictures that is not known");
        }
        const std::string name = "latent" + std::to_string(is_joined ? 0 : job);
        inputs[name] = merge_link(value.id, link->slot);
        joined.layout.counts.push_back(value.count);
        auto seed = seed_of(of, group[job]);
        if (!seed) {
            return fail(seed.error());
        }
        seeds += (seeds.empty() ? "" : ",") + *seed + ":" + std::to_string(value.count);
    }
    if (joined.layout.start_of(jobs_.size()) > kMergeSamplesMax) {
        return refuse_merge(jobs_[0], group[0], "would make too many pictures at once");
    }
    inputs["jobs"] = std::move(seeds);
    joined.id = state_.prompt.add_shared("ComfydLatentBatch", std::move(inputs));
    return joined;
}

// In decimal.
Result<std::string> MergeSampling::seed_of(const MergeJob& job, Graph::Position sampler) const {
    const MergeClass* known = find_merge_class(job.graph[sampler].class_type);
    if (known->seed.empty()) {
        const Graph::Link* noise = job.graph.link(sampler, "noise");
        known = noise != nullptr ? find_merge_class(job.graph[noise->source].class_type) : nullptr;
        if (known == nullptr || known->kind != MergeKind::noise) {
            return refuse_merge(job, sampler, "takes another noise than RandomNoise");
        }
        sampler = noise->source;
    }
    const json::value* seed = json::find(*job.graph[sampler].inputs, known->seed);
    if (seed == nullptr || !(seed->is_uint64() || (seed->is_int64() && seed->get_int64() >= 0))) {
        return refuse_merge(job, sampler, "has no seed of its own");
    }
    return json::serialize(*seed);
}

// The sampler, its guider or its noise, once for all jobs.
Result<std::string> MergeSampling::place_group(const MergeGroup& group, const Joined& batch) {
    const Graph& graph = jobs_[0].graph;
    const Graph::Node& node = graph[group[0]];
    const MergeClass& known = *find_merge_class(node.class_type);
    json::object inputs;
    for (const auto& input : *node.inputs) {
        const std::string_view name = view(input.key());
        if (name == "latent_image") {
            inputs[input.key()] = merge_link(batch.id, 0);
        } else if (name == known.seed) {
            inputs[input.key()] = merge_link(batch.id, 1);
        } else if (graph.link(group[0], name) == nullptr) {
            inputs[input.key()] = input.value();
        } else {
            auto linked = place_linked(group, name, known, batch);
            if (!linked) {
                return fail(linked.error());
            }
            inputs[input.key()] = std::move(*linked);
        }
    }
    const std::string id = state_.prompt.add_shared(node.class_type, std::move(inputs));
    for (std::size_t job = 0; job < jobs_.size(); ++job) {
        state_.prompt.add_origin(id, state_.origin(job, group[job]));
    }
    return id;
}

Result<json::array> MergeSampling::place_linked(
    const MergeGroup& group, std::string_view name, const MergeClass& known, const Joined& batch
) {
    MergeGroup sources;
    bool same = true;
    for (std::size_t job = 0; job < jobs_.size(); ++job) {
        const Graph::Link* link = jobs_[job].graph.link(group[job], name);
        if (link == nullptr) {
            return refuse_merge(jobs_[job], group[job], "is not linked as in the other jobs");
        }
        sources.push_back(link->source);
        same = same && value_of(job, link->source) == value_of(0, sources[0]);
    }
    const int slot = jobs_[0].graph.link(group[0], name)->slot;
    const MergeClass* source = find_merge_class(jobs_[0].graph[sources[0]].class_type);
    if (source != nullptr &&
        (source->kind == MergeKind::guider || source->kind == MergeKind::noise)) {
        auto id = place_group(sources, batch);
        return id ? Result<json::array>(merge_link(*id, slot)) : fail(id.error());
    }
    if (same && value_of(0, sources[0]).batch == kNoBatch) {
        return merge_link(value_of(0, sources[0]).id, slot);
    }
    if (!known.joins(name)) {
        return refuse_merge(
            jobs_[0], group[0], "differs between the jobs in its input '" + std::string(name) + "'"
        );
    }
    return join_conditionings(sources, slot, batch);
}

Result<json::array> MergeSampling::join_conditionings(
    const MergeGroup& sources, int slot, const Joined& batch
) {
    json::object inputs;
    std::string counts;
    for (std::size_t job = 0; job < jobs_.size(); ++job) {
        const MergeJob& of = jobs_[job];
        if (text_limit_) {
            const std::string node = find_long_text(of.graph, sources[job], *text_limit_);
            if (!node.empty()) {
                return refuse_merge(of, of.graph.find(node), kOtherLength);
            }
        }
        const MergeValue& value = value_of(job, sources[job]);
        inputs["conditioning" + std::to_string(job)] = merge_link(value.id, slot);
        counts += (counts.empty() ? "" : ",") + std::to_string(batch.layout.counts[job]);
    }
    inputs["counts"] = std::move(counts);
    return merge_link(state_.prompt.add_shared("ComfydConditioningBatch", std::move(inputs)), 0);
}

}  // namespace comfyd::workflow
