// The queue: what waits, what is placed next, what is known of a job. What was placed is begun in
// dispatcher_launch.cpp and followed in dispatcher_attempts.cpp; dispatcher_waiting.cpp has what is
// asked of jobs and what is due, dispatcher_reuse.cpp those that are answered by another.
#include "jobs/dispatcher.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "base/stall_watch.hpp"
#include "jobs/attempt.hpp"

namespace comfyd::jobs {

scheduler::ProfilePtr known_profile(scheduler::ProfilePtr profile, const std::string& requirement) {
    if (!profile) {
        auto plain = std::make_shared<scheduler::Profile>();
        plain->requirement = requirement;
        profile = std::move(plain);
    }
    return profile;
}

std::uint64_t content_of(const Spec& spec) {
    return std::hash<std::string>{}(spec.workflow);
}

namespace {

void tell_of(Placement& placement, const Fleet& fleet, const std::set<std::string>& workers) {
    for (const std::string& id : workers) {
        const auto known = placement.find(id);
        if (const auto worker = known ? known : fleet.find(id)) {
            placement.update(worker);
        }
    }
}

}  // namespace

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
      alarms_(core, clock),
      placement_(clock, table_, options),
      scheduler_(placement_.scheduler()),
      forecast_(clock, table_, placement_),
      changes_(core, ledger, table_, scheduler_, hub) {
    changes_.on_committed([this](const Change& change) { committed(change); });
    changes_.on_queued([this] { pump(); });
}

Dispatcher::~Dispatcher() = default;

void Dispatcher::update_workers() {
    for (const auto& worker : fleet_.workers()) {
        placement_.update(worker);
    }
}

void Dispatcher::start() {
    fleet_.on_change([this](const std::set<std::string>& workers) {
        tell_of(placement_, fleet_, workers);
        pump();
    });
    update_workers();
    tasks_.spawn(
        "job alarms",
        alarms_.run([this](const JobId& id, Time now) { ring(id, now); }, [this] { pump(); })
    );
    pump();
}

Task<Result<>> Dispatcher::recover() {
    constexpr int kPage = 1000;
    // The scheduler keeps what it was told of a worker, so it hears of changes also while nothing
    // is placed yet. From start() on it is told there.
    const auto is_recovering = std::make_shared<bool>(true);
    fleet_.on_change([this, is_recovering](const std::set<std::string>& workers) {
        if (*is_recovering) {
            tell_of(placement_, fleet_, workers);
        }
    });
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
        const NowDoing doing("bringing jobs back");
        for (Unfinished& entry : *page) {
            Job& job = entry.job;
            after = job.id;
            announce(job, false);
            if (job.state == State::running) {
                ++reattached;
                auto profile = known_profile(entry.profile, entry.requirement);
                if (job.shared) {
                    shared_runs.push_back({std::move(job), std::move(profile)});
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
    *is_recovering = false;
    co_return Result<>();
}

Task<> Dispatcher::stop(Millis grace) {
    stopping_ = true;
    const Time give_up = clock_.now() + grace;
    while (table_.attempt_count() > 0 && clock_.now() < give_up) {
        const bool goes_on = co_await sleep_for(Millis(20));
        if (!goes_on) {
            break;
        }
    }
    for (const auto& attempt : table_.attempts()) {
        attempt->stop.stop(Code::shutting_down);
    }
    tasks_.cancel();
    co_await tasks_.join();
    is_over_ = true;
    hub_.end_all(Code::shutting_down);
}

void Dispatcher::enqueue(
    const Job& job,
    scheduler::ProfilePtr profile,
    json::object secret_extra_data,
    std::uint64_t content
) {
    announce(job, true);
    put_back(job, std::move(profile), content);
    if (!secret_extra_data.empty()) {
        table_.set_secrets(job.id, std::move(secret_extra_data));
    }
}

void Dispatcher::announce(const Job& job, bool is_new) {
    if (hub_.observer() != nullptr) {
        hub_.observer()->on_job(job, is_new);
    }
}

std::shared_ptr<Worker> Dispatcher::worker_of(const JobId& id) const {
    const auto attempt = table_.attempt(id);
    return !attempt || attempt->is_ending ? nullptr : attempt->worker;
}

// Out of what holds it in its place.
void Dispatcher::leave(const JobId& id) {
    if (const auto attempt = table_.attempt(id); attempt && !attempt->begun) {
        placement_.give_up_place(*attempt);
    }
    changes_.unqueue(id);
    in_flight_.drop_follower(id);
}

void Dispatcher::make_ready(const JobId& id, scheduler::JobKeys keys) {
    leave(id);
    table_.put(id, Ready{}, rank_of(keys));
    changes_.queue(id, std::move(keys));
}

void Dispatcher::make_following(const Job& job, scheduler::JobKeys keys) {
    leave(job.id);
    table_.put(job.id, Following{}, rank_of(keys));
    in_flight_.follow(job, std::move(keys));
}

void Dispatcher::make_retry_waiting(const JobId& id, Time not_before, scheduler::JobKeys keys) {
    leave(id);
    const std::size_t rank = rank_of(keys);
    table_.put(id, std::make_unique<RetryWaiting>(not_before, std::move(keys)), rank);
    alarms_.set(not_before, id);
}

void Dispatcher::make_attempting(std::shared_ptr<Attempt> attempt) {
    const JobId id = attempt->id;
    const std::size_t rank = rank_of(attempt->keys);
    leave(id);
    table_.put(id, std::move(attempt), rank);
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
    auto keys = make_keys(job, std::move(profile));
    if (job.state == State::retry_waiting) {
        make_retry_waiting(job.id, job.not_before.value_or(clock_.now()), std::move(keys));
    } else {
        keys.content = content;
        queue_up(job, std::move(keys));
    }
    remember_deadline(job);
}

void Dispatcher::remember_deadline(const Job& job) {
    if (job.deadline && table_.deadline(job.id) != job.deadline) {
        table_.set_deadline(job.id, *job.deadline);
        alarms_.set(*job.deadline, job.id);
    }
}

void Dispatcher::forget(const JobId& id) {
    if (const auto deadline = table_.deadline(id)) {
        alarms_.clear(*deadline, id);
    }
    leave(id);
    table_.remove(id);
}

void Dispatcher::pump() {
    if (stopping_ || alarms_.is_resting()) {
        return;
    }
    const NowDoing doing("placing jobs");
    while (auto decision = scheduler_.next(clock_.now())) {
        launch(*decision);
    }
    alarms_.set_queue(scheduler_.wake_at());
}

void Dispatcher::committed(const Change& change) {
    const NowDoing doing("telling of a change");
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
        forecast_.note_run(change.job);
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

Dispatcher::Live Dispatcher::outlook(const Job& job, scheduler::ProfilePtr profile) {
    scheduler_.add(job.id, make_keys(job, std::move(profile)));
    Live expected = forecast_.live(job.id);
    scheduler_.remove(job.id);
    return expected;
}

std::vector<events::EventPtr> Dispatcher::latest(const JobId& id) const {
    std::vector<events::EventPtr> latest;
    if (const auto attempt = table_.attempt(id)) {
        if (attempt->progress) {
            latest.push_back(attempt->progress_event());
        }
        if (attempt->preview_event) {
            latest.push_back(attempt->preview_event);
        }
    }
    return latest;
}

}  // namespace comfyd::jobs
