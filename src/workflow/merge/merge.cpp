#include "workflow/merge/merge.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/text.hpp"
#include "workflow/graph/graph.hpp"
#include "workflow/merge/merge_check.hpp"
#include "workflow/merge/merge_classes.hpp"
#include "workflow/merge/merge_sampling.hpp"
#include "workflow/merge/merge_shape.hpp"
#include "workflow/merge/merge_state.hpp"
#include "workflow/merge/merge_texts.hpp"

namespace comfyd::workflow {
namespace {

using Position = Graph::Position;

// Jobs that share their sampling runs.
class Merger {
public:
    Merger(MergedPrompt& prompt, std::vector<MergeJob> jobs, const PromptClasses& classes)
        : classes_(classes), state_{prompt, std::move(jobs)} {}

    // How many samples the first sampling run makes for each job.
    Result<std::vector<std::size_t>> run() {
        auto groups = pair_samplers();
        if (!groups) {
            return fail(groups.error());
        }
        MergeSampling sampling(state_);
        // Nodes of the same shape are at the same level: what a sampler needs is there in every job
        // when its turn comes.
        std::size_t levels = 0;
        for (const MergeJob& job : jobs_) {
            levels = std::max(levels, job.graph.depth());
        }
        for (std::size_t level = 0; level < levels; ++level) {
            auto placed = place_level(level);
            for (const MergeGroup& group : *groups) {
                if (placed && jobs_[0].graph.levels()[group[0]] == level) {
                    placed = sampling.place(group);
                }
            }
            if (!placed) {
                return fail(placed.error());
            }
        }
        return state_.batches[0].counts;
    }

private:
    // Any two samplers of the same shape may share a run; which of several does not matter.
    Result<std::vector<MergeGroup>> pair_samplers() const {
        std::vector<std::vector<std::pair<std::size_t, Position>>> samplers;  // (shape, position)
        for (const MergeJob& job : jobs_) {
            auto& found = samplers.emplace_back();
            for (const Position at : job.graph.order()) {
                const MergeClass* known = find_merge_class(job.graph[at].class_type);
                if (job.needed[at] && known != nullptr && known->kind == MergeKind::sampler) {
                    found.emplace_back(job.shapes[at], at);
                }
            }
            std::ranges::sort(found);
        }
        std::vector<MergeGroup> groups(samplers[0].size());
        for (const auto& found : samplers) {
            if (!std::ranges::equal(
                    found,
                    samplers[0],
                    {},
                    &std::pair<std::size_t, Position>::first,
                    &std::pair<std::size_t, Position>::first
                )) {
                return fail(Code::conflict, "the jobs do not have the same samplers");
            }
            for (std::size_t i = 0; i < found.size(); ++i) {
                groups[i].push_back(found[i].second);
            }
        }
        return groups;
    }

    Result<> place_level(std::size_t level) {
        for (std::size_t job = 0; job < jobs_.size(); ++job) {
            const MergeJob& of = jobs_[job];
            for (const Position at : of.graph.order()) {
                if (!of.needed[at] || of.graph.levels()[at] != level) {
                    continue;
                }
                const MergeClass* known = find_merge_class(of.graph[at].class_type);
                if (known != nullptr &&
                    (known->kind == MergeKind::sampler || known->kind == MergeKind::guider ||
                     known->kind == MergeKind::noise)) {
                    continue;
                }
                if (auto placed = place(job, at, known); !placed) {
                    return placed;
                }
            }
        }
        return {};
    }

    // A node that is not part of the sampling itself.
    Result<> place(std::size_t job, Position at, const MergeClass* known) {
        MergeJob& of = jobs_[job];
        MergeValue& made = of.values[at];
        json::object inputs;
        for (const auto& input : *of.graph[at].inputs) {
            const std::string_view name = view(input.key());
            const Graph::Link* link = of.graph.link(at, name);
            if (link == nullptr) {
                inputs[input.key()] = input.value();
                continue;
            }
            const MergeValue& source = of.values[link->source];
            if (source.id.empty()) {
                return refuse_merge(of, at, "takes what only a sampler can be given");
            }
            if (source.batch == kNoBatch) {
                inputs[input.key()] = merge_link(source.id, link->slot);
            } else if (known != nullptr && known->kind == MergeKind::per_sample &&
                       name == known->counted) {
                made.batch = source.batch;
                inputs[input.key()] = merge_link(source.id, link->slot);
            } else {
                auto part = part_of(job, at, *link);
                if (!part) {
                    return fail(part.error());
                }
                inputs[input.key()] = merge_link(*part, 0);
            }
        }
        made.count = count_of(of, at, known);
        const std::string_view class_type = of.graph[at].class_type;
        if (known == nullptr) {
            made.id = state_.prompt.add_own(class_type, std::move(inputs), state_.origin(job, at));
        } else if (known->kind == MergeKind::saver) {
            add_metadata(of, class_type == "PreviewImage", inputs);
            made.id =
                state_.prompt.add_own("ComfydSaveImage", std::move(inputs), state_.origin(job, at));
        } else {
            made.id = state_.prompt.add_shared(class_type, std::move(inputs));
        }
        state_.prompt.add_origin(made.id, state_.origin(job, at));
        return {};
    }

    // The pictures of one job out of those of all.
    Result<std::string> part_of(std::size_t job, Position at, const Graph::Link& link) {
        const MergeJob& of = jobs_[job];
        const NodeDefinition* source = classes_.find(of.graph[link.source].class_type);
        const auto slot = static_cast<std::size_t>(link.slot);
        if (source == nullptr || slot >= source->outputs().size() ||
            source->outputs()[slot] != "IMAGE") {
            return refuse_merge(
                of, at, "takes latents of a sampler and is not known to work on a batch"
            );
        }
        const MergeValue& value = of.values[link.source];
        const MergeBatch& batch = state_.batches[value.batch];
        return state_.prompt.add_shared(
            "ImageFromBatch",
            {{"image", merge_link(value.id, link.slot)},
             {"batch_index", batch.start_of(job)},
             {"length", batch.counts[job]}}
        );
    }

    static std::size_t count_of(const MergeJob& job, Position at, const MergeClass* known) {
        if (known == nullptr || known->count == MergeCount::none) {
            return 0;
        }
        if (known->count == MergeCount::one) {
            return 1;
        }
        const json::object& inputs = *job.graph[at].inputs;
        const auto literal = [&](std::string_view name) -> std::size_t {
            const auto number = json::find_int(inputs, name);
            const bool good = number && *number && **number > 0 &&
                              **number <= static_cast<std::int64_t>(kMergeSamplesMax);
            return good ? static_cast<std::size_t>(**number) : 0;
        };
        if (known->count == MergeCount::value) {
            return literal(known->counted);
        }
        const Graph::Link* link = job.graph.link(at, known->counted);
        const std::size_t source = link != nullptr ? job.values[link->source].count : 0;
        return known->count == MergeCount::same ? source : source * literal("amount");
    }

    void add_metadata(const MergeJob& job, bool preview, json::object& inputs) const {
        inputs["preview"] = preview;
        inputs["prompt"] = json::serialize_python(*job.from.workflow);
        inputs["extra_pnginfo"] = job.from.extra_pnginfo != nullptr
                                      ? json::serialize_python(*job.from.extra_pnginfo)
                                      : "{}";
    }

    const PromptClasses& classes_;
    MergeState state_;
    std::vector<MergeJob>& jobs_ = state_.jobs;
};

Result<std::vector<MergeJob>> read_jobs(
    const std::vector<MergeInput>& inputs, const PromptClasses& classes
) {
    std::vector<MergeJob> jobs;
    jobs.reserve(inputs.size());
    Shapes shapes(classes);
    for (const MergeInput& input : inputs) {
        MergeJob& job = jobs.emplace_back(input, classes);
        job.from.place = input.place.value_or(jobs.size() - 1);
        if (auto refusal = find_unmergeable(job.graph, job.needed, classes)) {
            return fail(Code::conflict, std::move(*refusal));
        }
        job.shapes = shapes.of(job.graph);
    }
    return jobs;
}

// Those whose texts get the same length are sampled together, the others in the same prompt by
// themselves: a refusal would keep all jobs of the form apart from then on, for one long text. Only
// where every job has such a text of its own is that right. Indexes, by the first of each part.
Result<std::vector<std::vector<std::size_t>>> split_by_texts(const std::vector<MergeJob>& jobs) {
    std::vector<std::vector<std::size_t>> parts;
    std::map<std::vector<std::string>, std::size_t> known;  // places in parts
    std::optional<tl::unexpected<Error>> refusal;
    for (std::size_t index = 0; index < jobs.size(); ++index) {
        const MergeJob& job = jobs[index];
        std::vector<std::string> unusual;
        for (UnusualText& text : find_unusual_texts(job.graph, job.needed, job.shapes)) {
            unusual.push_back(std::move(text.what));
            refusal = refuse_merge(job, text.at, kOtherLength);
        }
        const auto [part, is_new] = known.emplace(std::move(unusual), parts.size());
        if (is_new) {
            parts.emplace_back();
        }
        parts[part->second].push_back(index);
    }
    if (refusal && jobs.size() > 1 && parts.size() == jobs.size() && !known.contains({})) {
        return *refusal;
    }
    return parts;
}

}  // namespace

Result<Merged> merge(const std::vector<MergeInput>& jobs, const PromptClasses& classes) {
    if (jobs.empty() || jobs.size() > kMergeJobsMax) {
        return fail(
            Code::conflict, "between 1 and " + std::to_string(kMergeJobsMax) + " jobs can be merged"
        );
    }
    std::size_t nodes = 0;
    for (const MergeInput& job : jobs) {
        nodes += job.workflow->size();
    }
    if (nodes > kPromptNodesMax) {
        return fail(Code::conflict, "the jobs have too many nodes together");
    }
    auto read = read_jobs(jobs, classes);
    if (!read) {
        return fail(read.error());
    }
    const auto parts = split_by_texts(*read);
    if (!parts) {
        return fail(parts.error());
    }
    MergedPrompt prompt;
    std::vector<std::size_t> samples(jobs.size());
    for (const std::vector<std::size_t>& part : *parts) {
        std::vector<MergeJob> members;
        for (const std::size_t index : part) {
            members.push_back(std::move((*read)[index]));
        }
        const auto counts = Merger(prompt, std::move(members), classes).run();
        if (!counts) {
            return fail(counts.error());
        }
        for (std::size_t i = 0; i < part.size(); ++i) {
            samples[part[i]] = (*counts)[i];
        }
    }
    return prompt.take(std::move(samples));
}

std::optional<std::string> why_not_mergeable(
    const json::object& workflow, const PromptClasses& classes
) {
    auto merged = merge({{&workflow, nullptr}}, classes);
    return merged ? std::nullopt : std::optional(std::move(merged.error().message));
}

bool worker_supports_merge(const NodeClasses& worker) {
    static constexpr std::array<std::string_view, 4> kNeeded{
        "ComfydConditioningBatch", "ComfydLatentBatch", "ComfydSaveImage", "ImageFromBatch"
    };
    return std::ranges::all_of(kNeeded, [&](std::string_view class_type) {
        return worker.find(class_type) != nullptr;
    });
}

}  // namespace comfyd::workflow
