// Which node classes of ComfyUI may take part in a merged batch, and how. A class that stands
// before a sampler has to be in this table: only then is it known that a batch of several jobs
// comes out as each job's own run would. Pure data; any thread.
#pragma once

#include <array>
#include <string_view>

namespace comfyd::workflow {

enum class MergeKind {
    shared,      // gives one value; jobs with equal inputs share one node
    per_sample,  // does the same to every sample of a batch, so it can work on all jobs at once
    guider,      // joined with its sampler
    noise,       // likewise
    sampler,     // one for all jobs
    saver,       // writes the prompt into its files, so each job's own has to be given to it
    refused,
};

// How many samples a latent or a picture that it gives has.
enum class MergeCount {
    none,    // it gives neither
    one,     //
    value,   // what its input `counted` says
    same,    // as many as what is linked to `counted`
    repeat,  // likewise, times its input "amount"
};

struct MergeClass {
    std::string_view name;
    MergeKind kind = MergeKind::shared;
    MergeCount count = MergeCount::none;
    std::string_view counted{};
    std::string_view seed{};                                    // samplers and noise
    std::array<std::string_view, 3> conditionings{"", "", ""};  // samplers and guiders

    bool joins(std::string_view input) const;
};

// nullptr: not known.
const MergeClass* find_merge_class(std::string_view class_type);

// True for samplers whose noise is drawn for each job by itself and whose steps do not depend on
// the other samples of a batch.
bool is_mergeable_sampler(std::string_view sampler_name);

}  // namespace comfyd::workflow
