#include "jobs/dispatcher.hpp"

#include <utility>

#include "base/assert.hpp"
#include "base/log.hpp"
#include "base/on_executor.hpp"
#include "base/stall_watch.hpp"
#include "jobs/attempt.hpp"

namespace comfyd::jobs {
namespace {

void tell_of(Placement& placement, const Fleet& fleet, const std::set<std::string>& workers) {
    for (const std::string& id : workers) {
        if (const auto worker = fleet.find(id)) {
            placement.update(worker);
        } else {
            placement.remove(id);
        }
    }
}

}  // namespace

Dispatcher::Dispatcher(
    const Parts& parts, scheduler::Options options, const FailurePolicy& failures
)
    : core_(parts.core),
      clock_(parts.clock),
      ledger_(parts.ledger),
      fleet_(parts.fleet),
      tasks_(core_),
      publisher_(parts.hub),
      alarms_(core_, clock_, parts.pace != nullptr ? *parts.pace : parts.clock),
      table_(parts.backlog),
      placement_(clock_, table_, parts.predictor, options),
      scheduler_(placement_.scheduler()),
      forecast_(clock_, table_, placement_),
      ranking_(clock_, scheduler_),
      changes_(core_, ledger_, table_, scheduler_, parts.hub),
      whereabouts_(clock_, table_, changes_, placement_, alarms_, ranking_),
      answers_(clock_, ledger_, table_, changes_, whereabouts_, tasks_, stopping_),
      starts_(clock_, ledger_, table_, changes_, forecast_, answers_),
      ends_(clock_, ledger_, changes_, whereabouts_, stopping_, failures),
      attempts_({
          .core = core_,
          .clock = clock_,
          .hub = parts.hub,
          .tasks = tasks_,
          .table = table_,
          .placement = placement_,
          .alarms = alarms_,
          .ranking = ranking_,
          .whereabouts = whereabouts_,
          .answers = answers_,
          .start = starts_,
          .end = ends_,
          .look_at_queue = [this] { pump(); },
      }),
      batches_(clock_, fleet_, placement_, ranking_, attempts_),
      dues_(clock_, table_, changes_, whereabouts_, alarms_, tasks_, stopping_),
      preparing_({
          clock_,
          fleet_,
          parts.hub,
          table_,
          changes_,
          tasks_,
          stopping_,
          [this](const JobId& id) { return scheduler_.expected_wait(id, clock_.now()); },
      }),
      warming_({clock_, ledger_, fleet_, scheduler_, tasks_, stopping_}) {
    changes_.on_committed([this](const Change& change) { committed(change); });
    whereabouts_.on_waiting([this](const Job& job, const Requirement& needed) {
        preparing_.add(job, needed);
    });
    whereabouts_.on_ready([this] { preparing_.look(); });
    changes_.on_queued([this] { pump(); });
    answers_.on_queued([this] { pump(); });
    dues_.on_queued([this] { pump(); });
    if (parts.shared != nullptr) {
        newcomers_.emplace(Newcomers::Parts{
            core_,
            clock_,
            *parts.shared,
            parts.domain,
            [this](const JobId& id) { return knows(id); },
            [this](Unfinished job) {
                take_in(job.job, known_profile(job.profile, job.requirement));
                if (!job.secrets.empty()) {
                    table_.set_secrets(job.job.id, std::move(job.secrets));
                }
                pump();
            },
            [this](Wish wish) { return fulfil(std::move(wish)); }
        });
    }
    fleet_.on_change([on_fleet = std::weak_ptr(on_fleet_)](const std::set<std::string>& workers) {
        if (const auto known = on_fleet.lock(); known && *known) {
            (*known)(workers);
        }
    });
}

Dispatcher::~Dispatcher() = default;

void Dispatcher::update_workers() {
    for (const auto& worker : fleet_.workers()) {
        placement_.update(worker);
    }
}

void Dispatcher::start() {
    COMFYD_ON(core_);
    *on_fleet_ = [this](const std::set<std::string>& workers) {
        tell_of(placement_, fleet_, workers);
        for (const std::string& worker : workers) {
            if (fleet_.find(worker) == nullptr) {
                preparing_.forget(worker);
            }
        }
        pump();
        preparing_.look();
    };
    update_workers();
    tasks_.spawn(
        "job alarms",
        alarms_.run([this](const JobId& id, Time now) { dues_.ring(id, now); }, [this] { pump(); })
    );
    if (newcomers_) {
        tasks_.spawn("newcomers", newcomers_->run());
    }
    pump();
}

void Dispatcher::set_tenants(const std::map<std::string, TenantOptions>& tenants, bool classify) {
    ranking_.set_tenants(tenants, classify);
    pump();
}

Task<Result<>> Dispatcher::recover() {
    COMFYD_ON(core_);
    // The scheduler keeps what it was told of a worker, so it hears of changes also while nothing
    // is placed yet.
    *on_fleet_ = [this](const std::set<std::string>& workers) {
        tell_of(placement_, fleet_, workers);
    };
    update_workers();
    co_await ranking_.recall_usage(ledger_);
    std::optional<JobId> after;
    std::size_t queued = 0;
    std::size_t reattached = 0;
    std::vector<Batches::FoundAgain> batched;
    for (;;) {
        auto page = co_await read_back(after);
        if (!page) {
            co_return fail(std::move(page.error()));
        }
        if (page->empty()) {
            break;
        }
        const NowDoing doing("bringing jobs back");
        for (Unfinished& entry : *page) {
            Job& job = entry.job;
            after = job.id;
            publisher_.tell_arrival(job, events::Arrived::How::restored);
            if (job.state == State::running) {
                ++reattached;
                auto profile = known_profile(entry.profile, entry.requirement);
                if (job.shared) {
                    batched.push_back({std::move(job), std::move(profile)});
                } else {
                    auto worker = fleet_.find(job.worker);
                    attempts_.reattach(std::move(job), std::move(profile), std::move(worker));
                }
            } else {
                ++queued;
                whereabouts_.put_back(job, known_profile(entry.profile, entry.requirement));
            }
            if (!entry.secrets.empty() && table_.contains(*after)) {
                table_.set_secrets(*after, std::move(entry.secrets));
            }
        }
    }
    batches_.reattach(std::move(batched));
    if (queued + reattached > 0) {
        log::info("unfinished jobs are back", {{"queued", queued}, {"running", reattached}});
    }
    co_return Result<>();
}

Task<Result<std::vector<Unfinished>>> Dispatcher::read_back(std::optional<JobId> after) {
    constexpr int kPage = 1000;
    return newcomers_ ? newcomers_->read_back() : ledger_.unfinished(after, kPage);
}

Task<> Dispatcher::stop(Millis grace) {
    COMFYD_ON(core_);
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
}

void Dispatcher::enqueue(
    const Job& job,
    scheduler::ProfilePtr profile,
    json::object secret_extra_data,
    std::uint64_t content,
    events::Arrived::How how
) {
    // One that this node accepted may have been found in the ledger before it came here.
    const bool has_ended = newcomers_ && newcomers_->has_just_ended(job);
    if (!has_ended && !knows(job.id)) {
        take_in(job, std::move(profile), content, how);
    }
    if (!secret_extra_data.empty() && table_.contains(job.id)) {
        table_.set_secrets(job.id, std::move(secret_extra_data));
    }
}

void Dispatcher::take_in(
    const Job& job, scheduler::ProfilePtr profile, std::uint64_t content, events::Arrived::How how
) {
    publisher_.tell_arrival(job, how);
    whereabouts_.put_back(job, std::move(profile), content);
}

bool Dispatcher::knows(const JobId& id) const {
    return table_.contains(id) || changes_.is_held(id);
}

void Dispatcher::look_for_newcomers() {
    if (newcomers_) {
        newcomers_->look();
    }
}

// Whether it could be done says the job; a wish is not told of it.
Task<> Dispatcher::fulfil(Wish wish) {
    if (wish.kind == Wish::Kind::cancel && wish.job) {
        co_await cancel(*wish.job);
    } else if (wish.kind == Wish::Kind::cancel_waiting && wish.job) {
        co_await cancel_waiting(*wish.job);
    } else if (wish_) {
        wish_(wish);
    }
}

Task<std::optional<Result<Accepted>>> Dispatcher::accept_at_once(NewJob& job) {
    COMFYD_ON(core_);
    const Job& queued = job.change.job;
    const bool is_late = queued.deadline && *queued.deadline <= clock_.now();
    // Where an id was given, it may have been submitted before: the ledger refuses it then.
    const bool is_known = changes_.is_held(queued.id) || table_.attempt(queued.id);
    if (stopping_ || alarms_.is_resting() || scheduler_.size() > 0 || is_late || is_known) {
        co_return std::nullopt;
    }
    auto keys = ranking_.keys_of(queued, known_profile(job.spec.profile, job.spec.requirement));
    keys.content = content_of(job.spec);
    scheduler_.add(queued.id, std::move(keys));
    const auto decision = scheduler_.next(clock_.now());
    const std::shared_ptr<Worker> worker = decision ? placement_.confirm(*decision) : nullptr;
    if (!worker) {
        scheduler_.remove(queued.id);
        co_return std::nullopt;
    }
    warming_.placed(decision->worker, *decision->keys.profile);
    auto attempt = attempts_.make(*decision, worker);
    auto started = starts_.start_job(queued, *attempt, queued.sequence + 1);
    COMFYD_ASSERT(started.has_value());
    job.then = *started;
    attempt->job = started->job;
    attempt->sequence = started->event.sequence;
    attempt->spec = job.spec;
    changes_.hold(attempt->id);  // it can be found as soon as it is stored
    auto accepted = co_await ledger_.accept(std::move(job));
    if (!accepted || !accepted->created || stopping_) {
        placement_.give_up_place(*attempt);
        changes_.release(attempt->id);
        pump();
        co_return accepted;  // when stopping, the next start finds the job running and re-attaches
    }
    attempt->begun = true;
    whereabouts_.make_attempting(attempt);
    if (!attempt->spec->secret_extra_data.empty()) {
        table_.set_secrets(attempt->id, std::move(attempt->spec->secret_extra_data));
    }
    whereabouts_.remember_deadline(attempt->job);
    publisher_.tell_arrival(attempt->job, events::Arrived::How::accepted);
    committed(*started);
    changes_.release(attempt->id);
    attempts_.follow(std::move(attempt));
    co_return accepted;
}

void Dispatcher::accepted_with_outputs(const Job& queued, const Change& completed) {
    publisher_.tell_arrival(queued, events::Arrived::How::accepted);
    committed(completed);
}

Task<Result<>> Dispatcher::cancel(JobId id) {
    COMFYD_ON(core_);
    auto changed = co_await changes_.make(id, [this](const Job& job, std::uint64_t sequence) {
        return request_cancel(job, sequence, clock_.now());
    });
    if (!changed) {
        co_return fail(std::move(changed.error()));
    }
    if (const auto attempt = table_.attempt(id); attempt && changed->cancel_requested) {
        attempt->stop.stop(Code::cancelled);
    }
    co_return Result<>();
}

Task<Result<>> Dispatcher::cancel_waiting(JobId id) {
    COMFYD_ON(core_);
    auto changed = co_await changes_.make(
        id,
        [this](const Job& job, std::uint64_t sequence) -> Result<Change> {
            if (job.state == State::running) {
                return fail(Code::conflict, "the job is on a worker already");
            }
            return request_cancel(job, sequence, clock_.now());
        }
    );
    co_return changed ? Result<>() : fail(std::move(changed.error()));
}

Task<Result<>> Dispatcher::retry(JobId id) {
    COMFYD_ON(core_);
    auto spec = co_await ledger_.find_spec(id);
    if (!spec || !*spec) {
        co_return spec ? fail(Code::not_found, "no job has this id")
                       : fail(std::move(spec.error()));
    }
    auto revived = co_await changes_.make(id, [this](const Job& job, std::uint64_t sequence) {
        return revive(job, sequence, clock_.now());
    });
    if (!revived) {
        co_return fail(std::move(revived.error()));
    }
    enqueue(
        *revived,
        known_profile((*spec)->profile, (*spec)->requirement),
        {},
        content_of(**spec),
        events::Arrived::How::retried
    );
    start_waiting();
    co_return Result<>();
}

Task<bool> Dispatcher::free_idle_workers(bool models, bool results) {
    COMFYD_ON(core_);
    bool all = true;
    for (const auto& worker : fleet_.workers()) {
        if (worker->info().status != WorkerStatus::idle) {
            continue;
        }
        auto freed = co_await worker->free_memory(models, results);
        if (freed && (models || results)) {
            scheduler_.forget_models(worker->id());
        }
        if (!freed) {
            all = false;
            log::info(
                "a worker did not give memory back",
                {{"worker", worker->id()}, {"error", freed.error().message}}
            );
        }
    }
    co_return all;
}

std::shared_ptr<Worker> Dispatcher::worker_of(const JobId& id) const {
    const auto attempt = table_.attempt(id);
    return !attempt || attempt->is_ending ? nullptr : attempt->worker;
}

std::array<std::size_t, scheduler::kWaitClasses> Dispatcher::queued_by_class() const {
    std::array<std::size_t, scheduler::kWaitClasses> counts{};
    for (std::size_t i = 0; i < counts.size(); ++i) {
        counts[i] = scheduler_.waiting(static_cast<scheduler::WaitClass>(i)).jobs;
    }
    return counts;
}

void Dispatcher::pump() {
    COMFYD_ON(core_);
    if (stopping_ || alarms_.is_resting()) {
        return;
    }
    const NowDoing doing("placing jobs");
    while (auto decision = scheduler_.next(clock_.now())) {
        warming_.placed(decision->worker, *decision->keys.profile);
        batches_.launch(*decision);
    }
    alarms_.set_queue(scheduler_.wake_at());
}

void Dispatcher::committed(const Change& change) {
    COMFYD_ON(core_);
    const NowDoing doing("telling of a change");
    publisher_.tell_change(change);
    if (changed_) {
        changed_(change.job, change.event);
    }
    if (change.event.type == EventType::started) {
        ends_.note_start();
    }
    const bool has_failed =
        change.event.type == EventType::retrying || change.event.type == EventType::failed;
    if (has_failed && change.job.failure && attempt_failed_) {
        attempt_failed_(change.job, cause_of(*change.job.failure));
    }
    if (change.used && used_) {
        used_(change.job, *change.used);
    }
    if (change.used) {
        ranking_.add_used(change.job, change.event.at, *change.used);
    }
    if (!is_terminal(change.job.state)) {
        return;
    }
    const auto attempt = table_.attempt(change.job.id);
    if (attempt && change.job.state == State::completed) {
        warming_.completed(change.job.id, attempt->keys.profile);
    }
    whereabouts_.forget(change.job.id);
    preparing_.remove(change.job.id);
    if (newcomers_) {
        newcomers_->note_end(change.job);
    }
    if (change.job.state == State::completed && !change.job.reused_from) {
        forecast_.note_run(change.job);
    }
    if (finished_) {
        finished_(change.job);
    }
    if (!change.job.reuse_key.empty()) {
        answers_.run_ended(change.job.id, &change.job);
    }
}

Dispatcher::Live Dispatcher::live(const JobId& id) const {
    Live live = forecast_.live(id);
    if (auto prepared = preparing_.progress(id)) {
        live.progress = std::move(prepared);
    }
    return live;
}

std::optional<scheduler::Explanation> Dispatcher::explain(const JobId& id) const {
    auto explanation = scheduler_.explain(id, clock_.now());
    if (explanation) {
        const auto profile = scheduler_.keys_of(id).profile;
        const auto machine = profile->requirement.machine();
        if (const auto worker = warming_.worker_loading(*profile)) {
            explanation->reasons.push_back(*worker + " loads the models of such jobs ahead");
        }
        for (std::string& why : fleet_.hindrances(machine.pool)) {
            explanation->reasons.push_back(std::move(why));
        }
        for (std::string& why : preparing_.reasons(id)) {
            explanation->reasons.push_back(std::move(why));
        }
    }
    return explanation;
}

Dispatcher::Live Dispatcher::outlook(const Job& job, scheduler::ProfilePtr profile) {
    COMFYD_ON(core_);
    scheduler_.add(job.id, ranking_.keys_of(job, std::move(profile)));
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
