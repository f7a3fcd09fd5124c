#include "admission/request_hash.hpp"

#include <utility>

#include "base/crypto.hpp"

namespace comfyd::admission {
namespace {

// What is sealed is another text each time.
json::object without_sealed(json::object dialect_data) {
    json::value* target = dialect_data.if_contains("export");
    if (target != nullptr && target->is_object()) {
        target->get_object().erase("sealed");
    }
    return dialect_data;
}

std::string hash_all(const Submission& submission, json::object given) {
    const jobs::Spec& spec = submission.spec;
    json::object all(given.storage());
    all["workflow"] = std::move(given);
    all["dialect"] = spec.dialect;
    all["priority"] = spec.priority;
    if (spec.batch) {
        all["class"] = "batch";
    }
    if (!spec.fairness_key.empty()) {
        all["fairness_key"] = spec.fairness_key;
    }
    if (const auto pool = spec.requirement.pool(); !pool.empty()) {
        all["pool"] = std::string(pool);
    }
    if (const Requirement elsewhere = spec.requirement.in_pool("");
        !elsewhere.machine_text().empty()) {
        all["machine"] = std::string(elsewhere.machine_text());
    }
    all["timeout_ms"] = spec.timeout.count();
    all["max_attempts"] = spec.max_attempts;
    all["extra_data"] = spec.extra_data;
    all["metadata"] = spec.metadata;
    all["dialect_data"] = without_sealed(spec.dialect_data);
    all["workflow_id"] = spec.workflow_id;
    if (spec.deadline) {
        all["deadline"] = to_unix_ms(*spec.deadline);
    }
    if (submission.time_to_live) {
        all["time_to_live_ms"] = submission.time_to_live->count();
    }
    if (spec.webhook) {
        all["webhook"] = spec.webhook->to_json();
    }
    if (spec.reuse) {
        all["reuse"] = *spec.reuse;
    }
    return to_hex(sha256(json::serialize_canonical(all)));
}

}  // namespace

std::string request_hash(const Submission& submission, json::object given) {
    return !submission.request.empty()
               ? to_hex(sha256(json::serialize_canonical(submission.request)))
               : hash_all(submission, std::move(given));
}

}  // namespace comfyd::admission
