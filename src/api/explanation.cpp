#include "api/explanation.hpp"

#include <cmath>

namespace comfyd::api {
namespace {

double rounded(double seconds) {
    return std::round(seconds * 1000) / 1000;
}

json::object encode(const scheduler::Amount& amount) {
    return {{"jobs", amount.jobs}, {"seconds", rounded(amount.seconds)}};
}

json::array encode(const std::vector<std::string>& sentences) {
    json::array out;
    for (const std::string& sentence : sentences) {
        out.emplace_back(sentence);
    }
    return out;
}

json::array encode(const std::vector<scheduler::WorkerVerdict>& workers) {
    json::array out;
    for (const scheduler::WorkerVerdict& verdict : workers) {
        json::object one{
            {"worker", verdict.worker}, {"capable", verdict.capable}, {"reason", verdict.reason}
        };
        if (verdict.capable) {
            one["busy_seconds"] = rounded(verdict.numbers.remaining_s);
            one["load_seconds"] = rounded(verdict.numbers.load_s);
            one["run_seconds"] = rounded(verdict.numbers.run_s);
            one["finish_seconds"] = rounded(verdict.numbers.finish_s);
            one["models_loaded"] = rounded(verdict.numbers.cached);
        }
        one["vram_needed_bytes"] = verdict.numbers.vram_needed;
        one["vram_free_bytes"] = verdict.numbers.vram_free;
        out.emplace_back(std::move(one));
    }
    return out;
}

json::array encode(const std::vector<scheduler::Factor>& factors) {
    json::array out;
    for (const scheduler::Factor& factor : factors) {
        out.emplace_back(json::object{
            {"name", factor.name},
            {"multiplier", rounded(factor.multiplier)},
            {"weight", rounded(factor.weight)},
            {"reason", factor.reason}
        });
    }
    return out;
}

// How the priority that was asked for became the one by which it waits.
void add_priority(const jobs::Explained& explained, json::object& out) {
    const scheduler::Explanation& told = *explained.waiting;
    out["effective_priority"] = told.priority;
    if (!told.fairness_key.empty()) {
        out["fairness_key"] = told.fairness_key;
    }
    if (explained.is_classified) {
        const auto made = scheduler::classify(explained.job.priority, told.grounds);
        out["priority_score"] = rounded(made.score);
        out["priority_factors"] = encode(made.factors);
    }
}

json::object encode(const scheduler::Explanation& told) {
    json::object by_class;
    for (std::size_t i = 0; i < told.ahead_by_class.size(); ++i) {
        by_class[scheduler::to_string(static_cast<scheduler::WaitClass>(i))] =
            encode(told.ahead_by_class[i]);
    }
    json::object out;
    out["queue_position"] = told.position;
    out["class"] = scheduler::to_string(told.wait_class);
    out["waited_seconds"] = rounded(told.waited_s);
    out["wait_target_seconds"] = rounded(told.target_s);
    out["expected_wait_seconds"] =
        told.expected_wait_s ? json::value(rounded(*told.expected_wait_s)) : json::value();
    out["expected_load_seconds"] = rounded(told.expected_load_s);
    out["expected_run_seconds"] = rounded(told.expected_run_s);
    out["ahead"] = json::object{
        {"by_class", std::move(by_class)},
        {"own_tenant_jobs", told.own_tenant_ahead},
        {"other_tenants", told.other_tenants_ahead}
    };
    out["running"] = encode(told.running);
    out["tenant_at_limit"] = told.tenant_at_limit;
    out["workers_capable"] = told.workers_capable;
    out["workers"] = encode(told.workers);
    if (!told.waits_for.empty()) {
        out["waits_for_worker"] = told.waits_for;
    }
    out["reasons"] = encode(told.reasons);
    out["advice"] = encode(told.advice);
    return out;
}

}  // namespace

json::object encode_explanation(const jobs::Explained& explained) {
    const jobs::Job& job = explained.job;
    json::object out{
        {"execution_id", job.id.to_string()},
        {"state", jobs::to_string(job.state)},
        {"priority", job.priority},
        {"attempt", job.attempt}
    };
    if (explained.waiting) {
        add_priority(explained, out);
        for (auto& member : encode(*explained.waiting)) {
            out[member.key()] = std::move(member.value());
        }
        return out;
    }
    std::string reason;
    switch (job.state) {
        case jobs::State::queued:
            reason = explained.waits_for ? "job " + explained.waits_for->to_string() +
                                               " does the same, and this one will have its outputs"
                                         : "it is on its way into the queue or to a worker";
            break;
        case jobs::State::running:
            reason = "it runs on worker '" + job.worker + "'";
            break;
        case jobs::State::retry_waiting:
            reason = "an attempt failed; it is queued again at " +
                     (job.not_before ? to_rfc3339(*job.not_before) : "once");
            break;
        default:
            reason = "it has ended";
    }
    out["reasons"] = json::array{json::value(reason)};
    out["advice"] = json::array();
    return out;
}

}  // namespace comfyd::api
