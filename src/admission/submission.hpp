// What a dialect decoded from a request, and what admission makes of it. Plain values.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "base/json.hpp"
#include "base/time.hpp"
#include "jobs/service.hpp"
#include "workflow/catalogue/catalogue.hpp"
#include "workflow/catalogue/worker_lack.hpp"
#include "workflow/rules/issue.hpp"
#include "workflow/rules/prompt_rules.hpp"

namespace comfyd::admission {

// What must be good.
enum class Manner {
    strict,  // every node
    // As ComfyUI: one output and what it needs. The others are not run. Values are coerced, and
    // links that would hurt a worker are dropped. The workflow is the prompt itself, without
    // wrapper, in no other format and without parameters.
    comfyui,
};

struct Submission {
    // With the tenant; without workflow, node_count, targets and request_hash; of the requirement
    // only the pool. Credentials of API nodes may stand in extra_data.
    jobs::Spec spec;
    json::object workflow;      // API format, the editor's save format, or a wrapper around either
    json::object parameters{};  // as for workflow::bind_parameters(), may be empty
    Manner manner = Manner::strict;
    std::optional<std::vector<std::string>> targets{};  // output nodes to run; nullopt: all
    // A deadline that is counted from now: unlike spec.deadline it is the same in a repeated
    // request.
    std::optional<Millis> time_to_live{};
    // False where the dialect's contract refuses the editor's save format
    // (Code::workflow_format_ui).
    bool converts_editor_format = true;
    // Put right what is plainly a slip; what was done follows the spec's own warnings, and all are
    // kept as dialect_data["warnings"].
    bool auto_fix = false;
    // Not empty: what was asked for, where the workflow was found by a name. Requests with the same
    // idempotency key are told from each other by this, for the name may mean another one by now.
    json::object request{};
    // Where the workflow is to be had, in the place of it, and the field that says so.
    std::string workflow_source{};
    std::string workflow_field{};
    // That the request was decoded with; null: the present one is taken.
    std::shared_ptr<const workflow::Catalogue> catalogue{};
};

struct Admitted {
    jobs::Spec spec;  // complete, for jobs::Service::submit()
    // Set: an earlier request with the same idempotency key made this job; the spec is not complete
    // then.
    std::optional<jobs::Submitted> earlier{};
    // Of Manner::comfyui: what is run, and what ComfyUI says of the outputs that are not.
    std::vector<std::string> outputs{};
    json::object node_errors{};
};

// Why a submission is not taken.
struct Refusal {
    enum class Why {
        failed,       // not because of the workflow: `error` is all
        not_allowed,  // the operator's rules are against it
        invalid,      // it cannot run
        no_worker,    // no worker has all that it needs
        unavailable,  // files that it names cannot be had
    };
    Error error;  // in the words of every dialect but ComfyUI's
    Why why = Why::failed;
    std::vector<workflow::Issue> issues{};  // at node and input, where they are known so
    // Set where ComfyUI itself would have refused it: its own words, which say all of that.
    json::object prompt_error{};
    json::object node_errors{};
    std::optional<workflow::WorkerLack> lack{};  // of Why::no_worker
};

template <class T>
using Decision = tl::expected<T, Refusal>;

}  // namespace comfyd::admission
