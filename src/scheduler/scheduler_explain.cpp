// What the scheduler tells: names, position, expected wait, and why a job waits.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "scheduler/scheduler_impl.hpp"

namespace comfyd::scheduler {
namespace {

constexpr std::size_t kVerdictsMax = 200;
constexpr std::size_t kTenantsMax = 20;

std::string seconds(double value) {
    char text[32];
    std::snprintf(text, sizeof text, value < 10 ? "%.1f s" : "%.0f s", value);
    return text;
}

std::string gigabytes(std::uint64_t bytes) {
    char text[32];
    std::snprintf(
        text, sizeof text, "%.1f GiB", static_cast<double>(bytes) / (1024.0 * 1024 * 1024)
    );
    return text;
}

std::string hundredths(double part) {
    return std::to_string(std::lround(100 * part)) + " %";
}

std::string joined(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) {
        text += (text.empty() ? "" : ", ") + word;
    }
    return text;
}

std::string jobs(std::size_t count) {
    return std::to_string(count) + (count == 1 ? " job" : " jobs");
}

void give_reasons_of_nobody(Explanation& told) {
    constexpr int kNamedMax = 3;
    int named = 0;
    for (const WorkerVerdict& verdict : told.workers) {
        if (++named > kNamedMax) {
            break;
        }
        told.reasons.push_back("worker '" + verdict.worker + "' " + verdict.reason);
    }
    told.reasons.insert(
        told.reasons.begin(),
        told.workers.empty() ? "there is no worker" : "no worker can run it now"
    );
    told.advice.push_back(
        "bring up or add a worker that has the nodes, the models and the memory it needs"
    );
}

void keep_largest(std::map<std::string, Amount>& tenants) {
    while (tenants.size() > kTenantsMax) {
        tenants.erase(std::min_element(tenants.begin(), tenants.end(), [](auto& a, auto& b) {
            return a.second.jobs < b.second.jobs;
        }));
    }
}

}  // namespace

std::string_view to_string(WaitClass wait_class) {
    switch (wait_class) {
        case WaitClass::high:
            return "high";
        case WaitClass::medium:
            return "medium";
        case WaitClass::low:
            return "low";
        case WaitClass::batch:
            break;
    }
    return "batch";
}

WaitClass wait_class_of(int priority, bool batch) {
    if (batch) {
        return WaitClass::batch;
    }
    return priority >= 8 ? WaitClass::high : priority >= 4 ? WaitClass::medium : WaitClass::low;
}

Millis wait_target(WaitClass wait_class) {
    switch (wait_class) {
        case WaitClass::high:
            return std::chrono::seconds(30);
        case WaitClass::medium:
            return std::chrono::minutes(2);
        case WaitClass::low:
            return std::chrono::minutes(10);
        case WaitClass::batch:
            break;
    }
    return std::chrono::hours(1);
}

std::string_view to_string(PolicyName policy) {
    switch (policy) {
        case PolicyName::finish_time:
            return "finish-time";
        case PolicyName::score:
            return "score";
        case PolicyName::fifo:
            break;
    }
    return "fifo";
}

std::optional<PolicyName> parse_policy(std::string_view text) {
    for (const PolicyName policy : {PolicyName::finish_time, PolicyName::score, PolicyName::fifo}) {
        if (text == to_string(policy)) {
            return policy;
        }
    }
    return std::nullopt;
}

std::string_view to_string(Why why) {
    switch (why) {
        case Why::only_choice:
            return "only_choice";
        case Why::warm:
            return "warm";
        case Why::best_finish:
            return "best_finish";
        case Why::spread:
            return "spread";
        case Why::best_score:
            return "best_score";
        case Why::first_free:
            break;
    }
    return "first_free";
}

std::optional<std::size_t> Scheduler::Impl::position(const JobId& job, Time now) {
    if (!order_.contains(job)) {
        return std::nullopt;
    }
    const Order::Place place = order_.place(job, nullptr);
    std::size_t above = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(place.wait_class); ++i) {
        above += order_.in_turn(static_cast<WaitClass>(i)).jobs;
    }
    const std::size_t ahead = above + place.ahead;
    const auto helped = class_to_help(now);
    if (!helped || options_.ageing_turn < 2 || place.wait_class > *helped) {
        return ahead + 1;
    }
    // Every so many placements one goes to the class that is late.
    const auto every = static_cast<std::size_t>(options_.ageing_turn);
    const auto first = every - std::min(every, static_cast<std::size_t>(since_ageing_turn_) + 1);
    if (place.wait_class == *helped) {
        return std::min(ahead, first + place.ahead * every) + 1;
    }
    const std::size_t late = order_.in_turn(*helped).jobs;
    const std::size_t given = ahead < first ? 0 : 1 + (ahead - first) / (every - 1);
    return ahead + std::min(late, given) + 1;
}

// What is ahead and what runs, shared by those that can run it; or by those that have its models
// while they stay with them.
double Scheduler::Impl::wait_s(
    const Order::Place& place, std::size_t ahead, double ahead_s, Time now
) const {
    const double capacity = std::max(1.0, machines_.capable(place.profile).first);
    const Amount runs = machines_.running(now);
    const double shared = (ahead_s + runs.seconds) / capacity;
    const Index anchor = profiles_[place.profile].anchor;
    const auto& busy = machines_.busy_with(anchor);
    if (anchor == 0 || busy.empty() || !policy_->stays_with_models()) {
        return shared;
    }
    const Amount own_class = order_.in_turn(place.wait_class);
    const double part = own_class.jobs == 0 ? 0
                                            : static_cast<double>(std::min(ahead, own_class.jobs)) /
                                                  static_cast<double>(own_class.jobs);
    double queue_s = part * order_.in_turn(place.wait_class, anchor).seconds;
    for (std::size_t i = 0; i < static_cast<std::size_t>(place.wait_class); ++i) {
        queue_s += order_.in_turn(static_cast<WaitClass>(i), anchor).seconds;
    }
    const Machines::Machine& first = machines_[busy.begin()->second];
    return machines_.remaining_s(first, now) + queue_s / capacity_with(anchor);
}

// Of the busy workers that have a model, judged by the first few of them.
double Scheduler::Impl::capacity_with(Index anchor) const {
    constexpr int kLookedAt = 16;
    double capacity = 0;
    int looked_at = 0;
    const auto& busy = machines_.busy_with(anchor);
    for (const auto& [ends, worker] : busy) {
        if (looked_at == kLookedAt) {
            break;
        }
        ++looked_at;
        const Machines::Machine& machine = machines_[worker];
        capacity += machines_.capacity_of(machine) / machine.state.slots;
    }
    return capacity * static_cast<double>(busy.size()) / looked_at;
}

std::optional<double> Scheduler::Impl::expected_wait(const JobId& job, Time now) {
    if (!order_.contains(job)) {
        return std::nullopt;
    }
    const Order::Place place = order_.place(job, nullptr);
    if (!place.tenant_hold.empty() || machines_.capable(place.profile).second == 0) {
        return std::nullopt;
    }
    return raw_wait(job, now) * std::exp(log_off_[static_cast<std::size_t>(place.wait_class)]);
}

double Scheduler::Impl::raw_wait(const JobId& job, Time now) const {
    const Order::Place place = order_.place(job, nullptr);
    double ahead_s = place.ahead_s;
    for (std::size_t i = 0; i < static_cast<std::size_t>(place.wait_class); ++i) {
        ahead_s += order_.in_turn(static_cast<WaitClass>(i)).seconds;
    }
    return wait_s(place, place.ahead, ahead_s, now);
}

WorkerVerdict Scheduler::Impl::judge_worker(
    const Machines::Machine& machine, Index profile, Time now
) const {
    const Index requirement = profiles_[profile].requirement;
    WorkerVerdict verdict;
    verdict.worker = machine.state.id;
    verdict.numbers = numbers_of(machine, profile, now);
    const Numbers& numbers = verdict.numbers;
    if (!machine.state.available) {
        const std::string& why = machine.state.unavailable_why;
        verdict.reason = "takes no jobs now: it " + (why.empty() ? "is draining or down" : why);
        return verdict;
    }
    if (!machines_.can_run(machine.kind, requirement)) {
        const auto missing =
            profiles_.requirement(requirement)
                .missing_of(
                    {{}, machine.state.gpu_type, machine.state.region, machine.state.vram_bytes}
                );
        verdict.reason = !missing.empty() ? "lacks " + joined(missing)
                         : profiles_.requirement(requirement).pool().empty()
                             ? "lacks a node class or a model that the workflow names"
                             : "is of another pool, or lacks a node class or a model that the "
                               "workflow names";
        return verdict;
    }
    if (!machines_.has_large_gpu(machines_.kinds()[machine.kind], profile)) {
        const double part = profiles_[profile].memory_part;
        verdict.reason = "its GPU has " + gigabytes(machine.state.vram_bytes) +
                         (part > 0 ? " of which the job may take " + hundredths(part) : "") +
                         ", the job needs about " +
                         gigabytes(profiles_.expected(profile, machine.type).vram_bytes);
        return verdict;
    }
    if (!machines_.has_memory(machines_.kinds()[machine.kind], profile)) {
        verdict.reason = "its machine has " + gigabytes(machine.state.ram_bytes) +
                         " of memory, the job's models take " +
                         gigabytes(machines_.model_bytes(profile));
        return verdict;
    }
    const bool fits = machines_.fits_now(machine, profile);
    verdict.capable = true;
    verdict.is_free = machine.has_room() && fits;
    verdict.reason = machine.has_room() ? "free" : "busy for about " + seconds(numbers.remaining_s);
    if (numbers.load_s > 0) {
        verdict.reason += ", would load models for " + seconds(numbers.load_s);
    }
    if (machine.has_room() && !fits) {
        verdict.reason += ", but other jobs use the memory of its GPU";
    }
    return verdict;
}

void Scheduler::Impl::judge_workers(Index profile, Explanation& explanation, Time now) const {
    std::vector<WorkerVerdict> others;
    for (Index worker = 0; worker < machines_.count(); ++worker) {
        if (!machines_[worker].live) {
            continue;
        }
        WorkerVerdict verdict = judge_worker(machines_[worker], profile, now);
        explanation.workers_capable += verdict.capable ? 1 : 0;
        (verdict.capable ? explanation.workers : others).push_back(std::move(verdict));
    }
    std::sort(
        explanation.workers.begin(),
        explanation.workers.end(),
        [](const WorkerVerdict& a, const WorkerVerdict& b) {
            return a.numbers.finish_s != b.numbers.finish_s
                       ? a.numbers.finish_s < b.numbers.finish_s
                       : a.worker < b.worker;
        }
    );
    explanation.workers.insert(explanation.workers.end(), others.begin(), others.end());
    if (explanation.workers.size() > kVerdictsMax) {
        explanation.workers.resize(kVerdictsMax);
    }
}

void Scheduler::Impl::give_reasons(const Order::Place& place, Explanation& told) const {
    auto& reasons = told.reasons;
    auto& advice = told.advice;
    if (!place.tenant_hold.empty()) {
        reasons.push_back(place.tenant_hold);
        return;
    }
    if (told.workers_capable == 0) {
        give_reasons_of_nobody(told);
        return;
    }
    if (told.tenant_at_limit) {
        reasons.push_back("as many of the tenant's jobs run as may run at a time");
        advice.push_back("wait for one of them, or raise the tenant's limit");
    }
    std::size_t above = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(place.wait_class); ++i) {
        above += told.ahead_by_class[i].jobs;
    }
    if (above > 0) {
        reasons.push_back(jobs(above) + " of a higher class go first");
        advice.push_back("a higher priority would put it before them");
    }
    if (place.ahead > 0) {
        reasons.push_back(jobs(place.ahead) + " of its own class go first");
    }
    if (!told.waits_for.empty()) {
        reasons.push_back(
            "worker '" + told.waits_for +
            "' has its models and is expected to be free sooner than " + "another could load them"
        );
    }
    if (told.waited_s > told.target_s) {
        reasons.push_back(
            "it is past the target of its class (" + seconds(told.target_s) +
            "), so its class gets turns before higher ones"
        );
    }
    // Where one is free already, another would change nothing.
    const bool any_free = std::ranges::any_of(told.workers, &WorkerVerdict::is_free);
    if (place.ahead + above > 0 && !any_free) {
        const auto workers = static_cast<double>(told.workers_capable);
        advice.push_back(
            "one more worker like those that can run it would make the wait about " +
            seconds(told.expected_wait_s.value_or(0) * workers / (workers + 1))
        );
    }
    if (told.expected_load_s > 0.2 * told.expected_run_s && told.expected_load_s > 1) {
        advice.push_back(
            "its models are loaded nowhere: loading takes about " + seconds(told.expected_load_s)
        );
    }
    if (reasons.empty()) {
        reasons.push_back("it is next");
    }
}

std::optional<Explanation> Scheduler::Impl::explain(const JobId& job, Time now) {
    if (!order_.contains(job)) {
        return std::nullopt;
    }
    Explanation told;
    const Order::Place place = order_.place(job, &told.ahead_by_tenant);
    const JobKeys keys = order_.keys_of(job);
    told.priority = keys.priority;
    told.grounds = keys.grounds;
    told.fairness_key = keys.fairness_key;
    const auto own = told.ahead_by_tenant.find(keys.tenant);
    const bool has_own = own != told.ahead_by_tenant.end();
    told.own_tenant_ahead = has_own ? own->second.jobs : 0;
    told.other_tenants_ahead = told.ahead_by_tenant.size() - (has_own ? 1 : 0);
    keep_largest(told.ahead_by_tenant);
    told.position = *position(job, now);
    told.wait_class = place.wait_class;
    told.waited_s = static_cast<double>((now - place.queued_at).count()) / 1000.0;
    told.target_s = static_cast<double>(wait_target(place.wait_class).count()) / 1000.0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(place.wait_class); ++i) {
        told.ahead_by_class[i] = order_.in_turn(static_cast<WaitClass>(i));
    }
    told.ahead_by_class[static_cast<std::size_t>(place.wait_class)] = {place.ahead, place.ahead_s};
    told.running = machines_.running(now);
    told.tenant_at_limit = place.tenant_at_limit;
    judge_workers(place.profile, told, now);
    told.expected_wait_s = expected_wait(job, now);
    if (told.workers_capable > 0) {
        const Numbers& best = told.workers.front().numbers;
        told.expected_run_s = best.run_s;
        told.expected_load_s = best.load_s;
    }
    const auto asked = wake_of_.find(place.group);
    if (order_.group(place.group).blocked && asked != wake_of_.end()) {
        told.waits_for = asked->second.waits_for;
    }
    give_reasons(place, told);
    return told;
}

}  // namespace comfyd::scheduler
