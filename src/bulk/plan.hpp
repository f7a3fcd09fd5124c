// What every item of a bulk is made of: the workflow and what was asked for about its runs. Written
// once, as one JSON text, and read by whoever submits the items. Plain values.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "admission/submission.hpp"
#include "base/json.hpp"
#include "jobs/bulk.hpp"

namespace comfyd::bulk {

struct Plan {
    // {"prompt": …, "parameters": …} as for admission; empty: each item brings {"workflow",
    // "params"} itself.
    json::object workflow;
    // What jobs::Service is asked for: tenant, dialect, priority, batch, fairness_key, timeout,
    // deadline, max_attempts, metadata, dialect_data, workflow_id, pool and reuse.
    jobs::Spec spec;
    bool auto_fix = false;
    std::optional<jobs::Webhook> webhook{};  // of the bulk, not of its jobs
};

std::string encode_plan(const Plan& plan);
// Code::internal when the text is not what encode_plan() wrote.
Result<Plan> decode_plan(std::string_view text);

// The submission of one item, as the job whose id the item has.
Result<admission::Submission> make_submission(
    const Plan& plan, const jobs::BulkId& bulk, const jobs::BulkItem& item
);

}  // namespace comfyd::bulk
