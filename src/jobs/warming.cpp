#include "jobs/warming.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"

namespace comfyd::jobs {
namespace {

constexpr double kPatience = 4;  // times what a load is expected to take
constexpr std::chrono::seconds kPatienceLeast{60};

Millis patience_for(const scheduler::Prewarmer::Order& order) {
    constexpr double kLongest_s = 3'600;
    const double seconds = std::min(kPatience * order.load_s, kLongest_s);
    return kPatienceLeast + Millis(static_cast<std::int64_t>(1'000 * seconds));
}

std::string_view outcome_of(const Result<>& result) {
    if (result) {
        return "loaded";
    }
    return result.error().code == Code::cancelled           ? "called_back"
           : result.error().code == Code::execution_timeout ? "timeout"
                                                            : "failed";
}

}  // namespace

void Warming::set(const PrewarmOptions& options) {
    is_on_ = options.is_on;
    prewarmer_.pin(options.pinned);
    if (is_on_ && !p_.is_stopping && !std::exchange(is_looking_, true)) {
        p_.tasks.spawn("prewarming", keep_looking());
    }
}

void Warming::remember(PastKinds kinds) {
    prewarmer_.set_rates(std::move(kinds.rates));
    samples_ = std::move(kinds.samples);
}

void Warming::completed(const JobId& job, const scheduler::ProfilePtr& profile) {
    const std::string kind = scheduler::kind_of(*profile);
    if (!kind.empty()) {
        prewarmer_.arrived(profile, p_.clock.now());
        samples_[kind] = job;
        if (samples_.size() > 2 * scheduler::KindRates::kKindsMax) {
            std::erase_if(samples_, [this](const auto& sample) {
                return !prewarmer_.knows(sample.first);
            });
        }
    }
}

void Warming::placed(const std::string& worker, const scheduler::Profile& profile) {
    const auto kind = at_work_.find(worker);
    if (kind == at_work_.end()) {
        return;
    }
    has_job_.insert(worker);
    const auto known = p_.fleet.find(worker);
    if (known && kind->second != scheduler::kind_of(profile)) {
        known->stop_warming();
    }
}

std::optional<std::string> Warming::worker_loading(const scheduler::Profile& profile) const {
    const auto found = std::ranges::find(
        at_work_, scheduler::kind_of(profile), [](const auto& entry) { return entry.second; }
    );
    return found == at_work_.end() ? std::nullopt : std::optional(found->first);
}

Task<> Warming::keep_looking() {
    const auto can_warm = [this](const std::string& id) {
        const auto worker = p_.fleet.find(id);
        return worker && worker->warms() && worker->available();
    };
    bool goes_on = true;
    while (goes_on && is_on_ && !p_.is_stopping) {
        for (auto& order : prewarmer_.look(p_.scheduler, p_.clock.now(), can_warm)) {
            at_work_[order.worker] = scheduler::kind_of(*order.profile);
            p_.tasks.spawn("a worker loads models ahead", warm(std::move(order)));
        }
        goes_on = co_await sleep_for(scheduler::Prewarmer::kLook);
    }
    is_looking_ = false;
}

Task<> Warming::warm(scheduler::Prewarmer::Order order) {
    const std::string kind = at_work_.at(order.worker);
    const Time begun = p_.clock.now();
    auto result = co_await bring(order, kind);
    const bool stop = co_await is_cancelled();
    at_work_.erase(order.worker);
    const bool has_job = has_job_.erase(order.worker) > 0;
    if (stop || p_.is_stopping) {
        co_return;
    }
    log::info(
        "a worker loaded models ahead of jobs",
        {{"worker", order.worker},
         {"outcome", outcome_of(result)},
         {"first", order.profile->models.front().name},
         {"ms", (p_.clock.now() - begun).count()},
         {"error", result ? "" : result.error().message}}
    );
    const bool has_failed = !result && !has_job;
    if (has_failed) {
        p_.scheduler.forget_models(order.worker);
    }
    prewarmer_.ended(order.worker, has_failed, p_.clock.now());
    if (on_ended_) {
        on_ended_(outcome_of(result));
    }
}

Task<Result<>> Warming::bring(const scheduler::Prewarmer::Order& order, std::string kind) {
    const auto sample = samples_.find(kind);
    if (sample == samples_.end()) {
        prewarmer_.forget(kind);
        co_return fail(Code::not_found, "no job of this kind is known");
    }
    auto spec = co_await p_.ledger.find_spec(sample->second);
    if (!spec) {
        co_return fail(std::move(spec.error()));
    }
    const auto worker = p_.fleet.find(order.worker);
    if (!*spec || !worker) {
        samples_.erase(kind);
        prewarmer_.forget(kind);
        co_return fail(Code::not_found, "the job of this kind, or the worker, is gone");
    }
    auto brought = co_await worker->warm(std::move((*spec)->workflow), patience_for(order));
    if (!brought && brought.error().code == Code::not_found) {
        prewarmer_.forget(kind);  // such workflows load nothing that is known
    }
    co_return brought;
}

}  // namespace comfyd::jobs
