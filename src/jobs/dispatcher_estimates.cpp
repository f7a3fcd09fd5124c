// How long jobs will wait and run, for those who ask and for those who are told of an attempt.
#include <algorithm>
#include <cmath>
#include <utility>

#include "jobs/attempt.hpp"
#include "jobs/dispatcher.hpp"

namespace comfyd::jobs {
namespace {

bool says_how_long(const scheduler::ProfilePtr& profile) {
    return profile && (!profile->shape.empty() || profile->heuristic_seconds > 0);
}

}  // namespace

int Dispatcher::whole_seconds(double seconds) {
    constexpr double kLongest = 1e9;  // fits an int
    return static_cast<int>(std::ceil(std::min(seconds, kLongest)));
}

std::optional<scheduler::Expectation> Dispatcher::expect_run(const Attempt& attempt) const {
    const auto known = attempt.worker ? workers_.find(attempt.worker->id()) : workers_.end();
    scheduler::Expectation whole;
    if (known != workers_.end() && says_how_long(attempt.keys.profile)) {
        const scheduler::Profile& profile = *attempt.keys.profile;
        const std::string& gpu_type = known->second.gpu_type;
        whole = predictor_.expect_run(profile, gpu_type);
        whole.seconds = predictor_.batch_seconds(profile, gpu_type, attempt.jobs_together) *
                        scheduler_.sharing(attempt.worker->id());
        whole.seconds += attempt.expected_load_s;
        return whole;
    }
    if (mean_execution_ms_ > 0) {
        whole.seconds = mean_execution_ms_ / 1000;
        return whole;
    }
    return std::nullopt;
}

// By what such runs take, and by how far this one is.
std::optional<scheduler::Expectation> Dispatcher::estimate_rest(const Attempt& attempt) const {
    const double elapsed_s =
        std::chrono::duration<double>(clock_.now() - *attempt.job.started_at).count();
    const double progress = attempt.progress ? attempt.progress->value : 0;
    auto whole = expect_run(attempt);
    if (!whole && progress > 0.05) {
        whole.emplace().seconds = elapsed_s / progress;
    }
    if (!whole) {
        return std::nullopt;
    }
    return scheduler::remaining_time(*whole, elapsed_s, progress);
}

std::optional<int> Dispatcher::seconds_left(const Attempt& attempt) const {
    const auto left = estimate_rest(attempt);
    return left ? std::optional(whole_seconds(left->seconds)) : std::nullopt;
}

double Dispatcher::expected_run_s(const scheduler::ProfilePtr& profile) const {
    if (says_how_long(profile) && !workers_.empty()) {
        return predictor_.run_seconds(*profile, workers_.begin()->second.gpu_type);
    }
    return mean_execution_ms_ / 1000;
}

Dispatcher::Live Dispatcher::live(const JobId& id) const {
    Live live;
    if (const auto found = table_.attempt(id)) {
        const Attempt& attempt = *found;
        live.progress = attempt.progress;
        if (!attempt.job.started_at) {
            return live;
        }
        if (const auto left = estimate_rest(attempt)) {
            live.estimated_remaining_s = whole_seconds(left->seconds);
            live.estimate_confidence = left->confidence();
        }
        return live;
    }
    const auto position = scheduler_.position(id, clock_.now());
    if (!position) {
        return live;
    }
    live.queue_position = static_cast<int>(*position);
    const double run_s = expected_run_s(scheduler_.keys_of(id).profile);
    const auto expected_wait = scheduler_.expected_wait(id, clock_.now());
    if (expected_wait && *expected_wait > 0) {
        live.estimated_wait_s = whole_seconds(*expected_wait);
        live.estimated_remaining_s = whole_seconds(*expected_wait + run_s);
    } else if (run_s > 0) {
        // Nothing is known of what those ahead take: as long as this one.
        const auto workers = std::max<std::size_t>(1, workers_.size());
        const double wait_s =
            run_s * (static_cast<double>(*position) - 1) / static_cast<double>(workers);
        live.estimated_wait_s = whole_seconds(wait_s);
        live.estimated_remaining_s = whole_seconds(wait_s + run_s);
    } else if (expected_wait && *position == 1) {
        live.estimated_wait_s = 0;  // whatever it takes then
    }
    return live;
}

Dispatcher::Live Dispatcher::outlook(const Job& job, scheduler::ProfilePtr profile) {
    scheduler_.add(job.id, make_keys(job, std::move(profile)));
    Live expected = live(job.id);
    scheduler_.remove(job.id);
    return expected;
}

Result<Change> Dispatcher::start_job(const Job& job, const Attempt& attempt, std::uint64_t sequence)
    const {
    const Time now = clock_.now();
    if (job.deadline && *job.deadline <= now) {
        return expire(job, sequence, now);
    }
    auto started = jobs::start(job, attempt.worker->id(), sequence, now, attempt.shared);
    if (const auto expected = expect_run(attempt); started && expected) {
        started->event.data["estimated_duration_seconds"] = whole_seconds(expected->seconds);
    }
    return started;
}

// REQUIRES: attempt.spec.
void Dispatcher::follow_progress(Attempt& attempt) {
    attempt.seconds_left = [this, &attempt] { return seconds_left(attempt); };
    auto& webhook = attempt.spec->webhook;
    if (progress_told_ && webhook && webhook->wants(webhook_event_name(EventType::progress))) {
        attempt.progress_told = [this, &attempt, webhook = std::move(*webhook)](const Event& event
                                ) { progress_told_(attempt.job, webhook, event); };
    }
}

}  // namespace comfyd::jobs
