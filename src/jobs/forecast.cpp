#include "jobs/forecast.hpp"

#include <algorithm>
#include <cmath>

#include "jobs/attempt.hpp"

namespace comfyd::jobs {
namespace {

bool says_how_long(const scheduler::ProfilePtr& profile) {
    return profile && (!profile->shape.empty() || profile->heuristic_seconds > 0);
}

}  // namespace

int whole_seconds(double seconds) {
    constexpr double kLongest = 1e9;  // fits an int
    return static_cast<int>(std::ceil(std::min(seconds, kLongest)));
}

std::optional<scheduler::Expectation> Forecast::expect_run(const Attempt& attempt) const {
    const std::string* gpu_type =
        attempt.worker ? placement_.gpu_type(attempt.worker->id()) : nullptr;
    scheduler::Expectation whole;
    if (gpu_type != nullptr && says_how_long(attempt.keys.profile)) {
        const scheduler::Predictor& predictor = placement_.predictor();
        const scheduler::Profile& profile = *attempt.keys.profile;
        whole = predictor.expect_run(profile, *gpu_type);
        whole.seconds = predictor.batch_seconds(profile, *gpu_type, attempt.jobs_together) *
                        placement_.scheduler().sharing(attempt.worker->id());
        whole.seconds += attempt.expected_load_s;
        return whole;
    }
    if (mean_execution_ms_ > 0) {
        whole.seconds = mean_execution_ms_ / 1000;
        return whole;
    }
    return std::nullopt;
}

std::optional<Millis> Forecast::known_run(const Attempt& attempt) const {
    const std::string* gpu_type =
        attempt.worker ? placement_.gpu_type(attempt.worker->id()) : nullptr;
    const bool is_alone = attempt.jobs_together == 1 && attempt.expected_load_s <= 0;
    if (gpu_type == nullptr || !is_alone || !attempt.keys.profile ||
        !placement_.predictor().knows_runs(*attempt.keys.profile, *gpu_type)) {
        return std::nullopt;
    }
    constexpr double kLongest = 1e9;
    const double seconds = placement_.predictor().run_seconds(*attempt.keys.profile, *gpu_type);
    return std::chrono::round<Millis>(std::chrono::duration<double>(std::min(seconds, kLongest)));
}

// By what such runs take, and by how far this one is.
std::optional<scheduler::Expectation> Forecast::estimate_rest(const Attempt& attempt) const {
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

std::optional<int> Forecast::seconds_left(const Attempt& attempt) const {
    const auto left = estimate_rest(attempt);
    return left ? std::optional(whole_seconds(left->seconds)) : std::nullopt;
}

double Forecast::expected_run_s(const scheduler::ProfilePtr& profile) const {
    if (const std::string* gpu_type = placement_.usual_gpu_type();
        gpu_type != nullptr && says_how_long(profile)) {
        return placement_.predictor().run_seconds(*profile, *gpu_type);
    }
    return mean_execution_ms_ / 1000;
}

Forecast::Live Forecast::live(const JobId& id) const {
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
    const scheduler::Scheduler& scheduler = placement_.scheduler();
    const auto position = scheduler.position(id, clock_.now());
    if (!position) {
        return live;
    }
    live.queue_position = static_cast<int>(*position);
    const double run_s = expected_run_s(scheduler.keys_of(id).profile);
    const auto expected_wait = scheduler.expected_wait(id, clock_.now());
    if (expected_wait && *expected_wait > 0) {
        live.estimated_wait_s = whole_seconds(*expected_wait);
        live.estimated_remaining_s = whole_seconds(*expected_wait + run_s);
    } else if (run_s > 0) {
        // Nothing is known of what those ahead take: as long as this one.
        const auto workers = std::max<std::size_t>(1, placement_.worker_count());
        const double wait_s =
            run_s * (static_cast<double>(*position) - 1) / static_cast<double>(workers);
        live.estimated_wait_s = whole_seconds(wait_s);
        live.estimated_remaining_s = whole_seconds(wait_s + run_s);
    } else if (expected_wait && *position == 1) {
        live.estimated_wait_s = 0;  // whatever it takes then
    }
    return live;
}

void Forecast::note_run(const Job& job) {
    const double ms = static_cast<double>(job.execution_time().value_or(Millis(0)).count());
    mean_execution_ms_ = mean_execution_ms_ == 0 ? ms : 0.9 * mean_execution_ms_ + 0.1 * ms;
}

}  // namespace comfyd::jobs
