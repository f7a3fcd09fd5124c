#include "bulk/plan.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"

namespace comfyd::bulk {
namespace {

Error damaged() {
    return Error(Code::internal, "the stored plan of a batch is damaged");
}

json::value or_null(const std::optional<Time>& time) {
    return time ? json::value(to_unix_ms(*time)) : json::value(nullptr);
}

json::object take_object(json::object& from, const char* key) {
    json::value* found = from.if_contains(key);
    return found != nullptr && found->is_object() ? std::move(found->get_object()) : json::object();
}

// All of it that a plan has.
json::object encode_spec(const jobs::Spec& spec) {
    return {
        {"tenant", spec.tenant},
        {"dialect", spec.dialect},
        {"priority", spec.priority},
        {"batch", spec.batch},
        {"fairness_key", spec.fairness_key},
        {"timeout_ms", spec.timeout.count()},
        {"deadline", or_null(spec.deadline)},
        {"max_attempts", spec.max_attempts},
        {"metadata", spec.metadata},
        {"dialect_data", spec.dialect_data},
        {"workflow_id", spec.workflow_id},
        {"machine", std::string(spec.requirement.machine_text())},
        {"reuse", spec.reuse ? json::value(*spec.reuse) : json::value(nullptr)},
    };
}

Result<jobs::Spec> decode_spec(json::object from) {
    const auto tenant = json::find_string(from, "tenant");
    const auto dialect = json::find_string(from, "dialect");
    const auto priority = json::find_int(from, "priority");
    const auto batch = json::find_bool(from, "batch");
    const auto fairness_key = json::find_string(from, "fairness_key");
    const auto timeout = json::find_int(from, "timeout_ms");
    const auto deadline = json::find_int(from, "deadline");
    const auto max_attempts = json::find_int(from, "max_attempts");
    const auto workflow_id = json::find_string(from, "workflow_id");
    const auto pool = json::find_string(from, "pool");  // of older ones
    const auto machine = json::find_string(from, "machine");
    const auto reuse = json::find_bool(from, "reuse");
    if (!tenant || !*tenant || !dialect || !priority || !batch || !fairness_key || !timeout ||
        !deadline || !max_attempts || !workflow_id || !pool || !machine || !reuse) {
        return fail(damaged());
    }
    jobs::Spec spec;
    spec.tenant = **tenant;
    spec.dialect = dialect->value_or("");
    spec.priority = static_cast<int>(priority->value_or(jobs::kPriorityDefault));
    spec.batch = batch->value_or(false);
    spec.fairness_key = fairness_key->value_or("");
    spec.timeout = Millis(timeout->value_or(jobs::kTimeoutDefault.count()));
    if (*deadline) {
        spec.deadline = from_unix_ms(**deadline);
    }
    spec.max_attempts = static_cast<int>(max_attempts->value_or(jobs::kMaxAttemptsDefault));
    spec.workflow_id = workflow_id->value_or("");
    spec.requirement =
        *machine ? Requirement::decode(**machine) : Requirement().in_pool(pool->value_or(""));
    spec.reuse = *reuse;
    spec.metadata = take_object(from, "metadata");
    spec.dialect_data = take_object(from, "dialect_data");
    return spec;
}

}  // namespace

std::string encode_plan(const Plan& plan) {
    return json::serialize(json::object{
        {"workflow", plan.workflow},
        {"spec", encode_spec(plan.spec)},
        {"auto_fix", plan.auto_fix},
        {"webhook", plan.webhook ? json::value(plan.webhook->to_json()) : json::value(nullptr)},
    });
}

Result<Plan> decode_plan(std::string_view text) {
    auto decoded = json::parse_object(text);
    if (!decoded) {
        return fail(damaged());
    }
    auto spec = decode_spec(take_object(*decoded, "spec"));
    if (!spec) {
        return fail(std::move(spec.error()));
    }
    Plan plan;
    plan.spec = std::move(*spec);
    const auto auto_fix = json::find_bool(*decoded, "auto_fix");
    plan.auto_fix = auto_fix && auto_fix->value_or(false);
    const auto webhook = json::find_object(*decoded, "webhook");
    if (webhook && *webhook != nullptr) {
        auto read = jobs::Webhook::from_json(**webhook);
        if (!read) {
            return fail(damaged());
        }
        plan.webhook = std::move(*read);
    }
    plan.workflow = take_object(*decoded, "workflow");
    return plan;
}

Result<admission::Submission> make_submission(
    const Plan& plan, const jobs::BulkId& bulk, const jobs::BulkItem& item
) {
    auto params = json::parse_object(item.params);
    if (!params) {
        return fail(damaged());
    }
    admission::Submission submission;
    submission.spec = plan.spec;
    submission.spec.id = item.job;
    submission.spec.dialect_data["batch_id"] = bulk.to_string();
    submission.spec.dialect_data["batch_index"] = item.index;
    submission.auto_fix = plan.auto_fix;
    if (plan.workflow.empty()) {
        submission.workflow = take_object(*params, "workflow");
        submission.parameters = take_object(*params, "params");
    } else {
        submission.workflow = plan.workflow;
        submission.parameters = std::move(*params);
    }
    return submission;
}

}  // namespace comfyd::bulk
