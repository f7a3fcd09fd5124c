// The queue: what waits, what is placed next, what is known of a job. dispatcher_attempts.cpp
// follows jobs on workers, dispatcher_waiting.cpp changes those that wait, dispatcher_estimates.cpp
// says how long they will take.
#include "jobs/dispatcher.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "jobs/attempt.hpp"

namespace comfyd::jobs {
Dispatcher::Dispatcher(
    Executor core,
    Clock& clock,
    Ledger& ledger,
    Fleet& fleet,
    events::Hub& hub,
    scheduler::Options options
)
    : core_(core),
      clock_(clock),
      ledger_(ledger),
      fleet_(fleet),
      hub_(hub),
      tasks_(core),
      time_changed_(core),
      scheduler_(predictor_, options) {}

Dispatcher::~Dispatcher() = default;

void Dispatcher::start() {
    fleet_.on_change([this](const std::set<std::string>& workers) {
        for (const std::string& id : workers) {
            const auto known = workers_.find(id);
            const auto worker = known != workers_.end() && known->second.worker
                                    ? known->second.worker
                                    : fleet_.find(id);
            if (worker) {
                update_worker(worker);
            }
        }
        pump();
    });
    update_workers();
    tasks_.spawn("job alarms", watch_time());
    pump();
}

Task<Result<>> Dispatcher::recover() {
    constexpr int kPage = 1000;
    update_workers();
    co_await recall_usage();
    std::optional<JobId> after;
    std::size_t queued = 0;
    std::size_t reattached = 0;
    std::vector<FoundAgain> shared_runs;
    for (;;) {
        auto page = co_await ledger_.unfinished(after, kPage);
        if (!page) {
            co_return fail(std::move(page.error()));
        }
        for (Unfinished& entry : *page) {
            Job& job = entry.job;
            after = job.id;
            remember_deadline(job);
            announce(job, false);
            if (job.state == State::running) {
                ++reattached;
                auto profile = known_profile(entry.profile, entry.requirement);
                auto shared = co_await shared_run_of(job.id);
                if (shared) {
                    shared_runs.push_back({std::move(job), std::move(profile), std::move(*shared)});
                } else {
                    reattach(std::move(job), std::move(profile));
                }
            } else {
                ++queued;
                put_back(job, known_profile(entry.profile, entry.requirement));
            }
        }
        if (page->size() < static_cast<std::size_t>(kPage)) {
            break;
        }
    }
    reattach_groups(std::move(shared_runs));
    if (queued + reattached > 0) {
        log::info("unfinished jobs are back", {{"queued", queued}, {"running", reattached}});
    }
    co_return Result<>();
}

Task<> Dispatcher::stop(Millis grace) {
    stopping_ = true;
    const auto give_up = std::chrono::steady_clock::now() + grace;
    while (!attempts_.empty() && std::chrono::steady_clock::now() < give_up) {
        const bool goes_on = co_await sleep_for(Millis(20));
        if (!goes_on) {
            break;
        }
    }
    for (auto& [id, attempt] : attempts_) {
        attempt->stop.stop(Code::shutting_down);
    }
    time_changed_.notify();
    tasks_.cancel();
    co_await tasks_.join();
    hub_.end_all(Code::shutting_down);
}

void Dispatcher::enqueue(
    const Job& job,
    scheduler::ProfilePtr profile,
    json::object secret_extra_data,
    std::uint64_t content
) {
    if (!secret_extra_data.empty()) {
        secrets_[job.id] = std::move(secret_extra_data);
    }
    remember_deadline(job);
    announce(job, true);
    put_back(job, std::move(profile), content);
}

void Dispatcher::announce(const Job& job, bool is_new) {
    if (hub_.observer() != nullptr) {
        hub_.observer()->on_job(job, is_new);
    }
}

std::shared_ptr<Worker> Dispatcher::worker_of(const JobId& id) const {
    const auto found = attempts_.find(id);
    return found == attempts_.end() || found->second->is_ending ? nullptr : found->second->worker;
}

void Dispatcher::add_ready(const JobId& id, scheduler::JobKeys keys) {
    queued_by_rank_[rank_of(keys)].fetch_add(1, std::memory_order_relaxed);
    scheduler_.add(id, std::move(keys));
}

void Dispatcher::remove_ready(const JobId& id) {
    if (scheduler_.contains(id)) {
        const std::size_t rank = rank_of(scheduler_.keys_of(id));
        queued_by_rank_[rank].fetch_sub(1, std::memory_order_relaxed);
        scheduler_.remove(id);
    }
}

std::size_t Dispatcher::queued_at_least(int rank) const {
    std::size_t count = 0;
    for (auto r = static_cast<std::size_t>(rank); r < queued_by_rank_.size(); ++r) {
        count += queued_by_rank_[r].load(std::memory_order_relaxed);
    }
    return count;
}

std::array<std::size_t, scheduler::kWaitClasses> Dispatcher::queued_by_class() const {
    std::array<std::size_t, scheduler::kWaitClasses> counts{};
    for (std::size_t i = 0; i < counts.size(); ++i) {
        counts[i] = scheduler_.waiting(static_cast<scheduler::WaitClass>(i)).jobs;
    }
    return counts;
}

void Dispatcher::set_tenants(const std::map<std::string, TenantOptions>& tenants, bool classify) {
    for (const auto& [name, options] : tenants) {
        scheduler_.set_tenant(name, options.terms);
    }
    if (classify) {
        tenants_.emplace(tenants);
    }
}

// What tenants with a quota have used in the hours before this start.
Task<> Dispatcher::recall_usage() {
    const Time now = clock_.now();
    const auto names = tenants_ ? tenants_->with_quota() : std::vector<std::string>();
    for (const std::string& name : names) {
        StatsQuery query{name, now - std::chrono::hours(23), now, StatsGroup::hour};
        auto past = co_await ledger_.stats(std::move(query));
        if (!past) {
            log::warning(
                "what a tenant has used is not known",
                {{"tenant", name}, {"error", past.error().message}}
            );
            continue;
        }
        for (const Stats::Group& hour : past->groups) {
            if (const auto begins = parse_rfc3339(hour.key)) {
                tenants_->add_used(name, *begins, hour.totals.gpu);
            }
        }
    }
}

scheduler::JobKeys Dispatcher::make_keys(const Job& job, scheduler::ProfilePtr profile) const {
    scheduler::JobKeys keys;
    keys.priority = job.priority;
    keys.batch = job.batch;
    keys.tenant = job.tenant;
    keys.fairness_key = job.fairness_key;
    if (tenants_) {
        auto known = scheduler_.circumstances(profile);
        tenants_->describe(job.tenant, clock_.now(), known);
        keys.grounds = scheduler::grounds_of(known);
        keys.priority = scheduler::priority_of(job.priority, keys.grounds);
    }
    keys.profile = std::move(profile);
    keys.queued_at = job.created_at;
    if (job.failure && !job.worker.empty()) {
        keys.avoid.push_back(job.worker);
    }
    return keys;
}

void Dispatcher::put_back(const Job& job, scheduler::ProfilePtr profile, std::uint64_t content) {
    if (job.state == State::retry_waiting) {
        const Time due = job.not_before.value_or(clock_.now());
        waiting_[job.id] = Waiting{due, make_keys(job, std::move(profile))};
        alarms_.emplace(due, job.id);
        time_changed_.notify();
    } else if (!scheduler_.contains(job.id)) {
        auto keys = make_keys(job, std::move(profile));
        keys.content = content;
        queue_up(job, std::move(keys));
    }
}

void Dispatcher::remember_deadline(const Job& job) {
    if (job.deadline) {
        deadlines_[job.id] = *job.deadline;
        alarms_.emplace(*job.deadline, job.id);
        time_changed_.notify();
    }
}

void Dispatcher::forget(const JobId& id) {
    if (const auto deadline = deadlines_.find(id); deadline != deadlines_.end()) {
        // Deadlines may be days away: nothing of an ended job waits for them.
        const auto [first, last] = alarms_.equal_range(deadline->second);
        const auto alarm =
            std::find_if(first, last, [&](const auto& entry) { return entry.second == id; });
        if (alarm != last) {
            alarms_.erase(alarm);
        }
        deadlines_.erase(deadline);
    }
    secrets_.erase(id);
}

void Dispatcher::pump() {
    if (stopping_ || pump_paused_) {
        return;
    }
    while (auto decision = scheduler_.next(clock_.now())) {
        launch(*decision);
    }
    if (const auto wake = scheduler_.wake_at(); wake && wake != wake_at_) {
        time_changed_.notify();
    }
    wake_at_ = scheduler_.wake_at();
}

void Dispatcher::committed(const Change& change) {
    if (hub_.observer() != nullptr) {
        hub_.observer()->on_change(change.job, change.event);
    }
    hub_.publish(std::make_shared<Event>(change.event));
    if (change.job.has_webhook && webhook_) {
        webhook_(change.event);
    }
    if (change.used && used_) {
        used_(change.job.worker, *change.used);
    }
    if (change.used && tenants_) {
        tenants_->add_used(change.job.tenant, change.event.at, change.used->gpu);
    }
    if (!is_terminal(change.job.state)) {
        return;
    }
    forget(change.job.id);
    if (change.job.state == State::completed && !change.job.reused_from) {
        const double ms =
            static_cast<double>(change.job.execution_time().value_or(Millis(0)).count());
        mean_execution_ms_ = mean_execution_ms_ == 0 ? ms : 0.9 * mean_execution_ms_ + 0.1 * ms;
    }
    if (finished_) {
        finished_(change.job);
    }
    if (!change.job.reuse_key.empty()) {
        leave_run(change.job.id, &change.job);
    }
}

std::optional<scheduler::Explanation> Dispatcher::explain(const JobId& id) const {
    return scheduler_.explain(id, clock_.now());
}

std::vector<events::EventPtr> Dispatcher::latest(const JobId& id) const {
    std::vector<events::EventPtr> latest;
    if (const auto found = attempts_.find(id); found != attempts_.end()) {
        if (found->second->progress) {
            latest.push_back(found->second->progress_event());
        }
        if (found->second->preview_event) {
            latest.push_back(found->second->preview_event);
        }
    }
    return latest;
}

}  // namespace comfyd::jobs
