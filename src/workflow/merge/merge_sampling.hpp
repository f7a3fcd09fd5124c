// The sampling run of a merge: the latents, seeds and conditionings of all jobs joined for one
// sampler. Part of a merge; see merge.hpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "workflow/merge/merge_classes.hpp"
#include "workflow/merge/merge_state.hpp"
#include "workflow/merge/merge_texts.hpp"

namespace comfyd::workflow {

class MergeSampling {
public:
    // `state` outlives it and has its jobs.
    explicit MergeSampling(MergeState& state);

    // The same sampler of each job, whose other sources have been placed.
    Result<> place(const MergeGroup& group);

private:
    // Latents and seeds of all jobs.
    struct Joined {
        std::string id{};
        MergeBatch layout{};
    };
    Result<Joined> join_latents(const MergeGroup& group);
    Result<std::string> seed_of(const MergeJob& job, Graph::Position sampler) const;
    Result<std::string> place_group(const MergeGroup& group, const Joined& batch);
    Result<json::array> place_linked(
        const MergeGroup& group, std::string_view name, const MergeClass& known, const Joined& batch
    );
    Result<json::array> join_conditionings(
        const MergeGroup& sources, int slot, const Joined& batch
    );
    const MergeValue& value_of(std::size_t job, Graph::Position at) const {
        return jobs_[job].values[at];
    }

    std::vector<MergeJob>& jobs_;
    MergeState& state_;
    std::optional<TextLimit> text_limit_;
};

}  // namespace comfyd::workflow
