// From the placement of a job on a worker to the outcome of the attempt.
#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/crypto.hpp"
#include "base/log.hpp"
#include "jobs/attempt.hpp"
#include "jobs/dispatcher.hpp"

namespace comfyd::jobs {
namespace {

double random_fraction() {
    std::uint32_t bits = 0;
    random_bytes(&bits, sizeof bits);
    return static_cast<double>(bits) / 4294967296.0;
}

}  // namespace

void Dispatcher::launch(const scheduler::Decision& decision) {
    const auto worker = confirm(decision);
    if (!worker) {
        scheduler_.add(decision.job, decision.keys);
        put_riders_back(decision);
        return;
    }
    std::shared_ptr<RunGroup> group;
    SharedRun shared;
    if (may_share(decision, *worker)) {
        shared.prompt_id = Uuid::make(clock_.now()).to_string();
        group = worker->make_group(shared.prompt_id, 1 + decision.riders.size());
    }
    auto first = make_attempt(decision, worker);
    first->jobs_together = group ? first->jobs_together : 1;
    launch(std::move(first), group, shared);
    if (!group) {
        put_riders_back(decision);
        if (!decision.riders.empty()) {
            // What it takes alone counts now.
            scheduler_.finished(decision.job, 0, clock_.now());
            scheduler_.running(decision.job, decision.worker, decision.keys, clock_.now());
        }
        return;
    }
    log::debug("placed together", {{"job", decision.job}, {"riders", decision.riders.size()}});
    for (const scheduler::Decision::Rider& rider : decision.riders) {
        scheduler::Decision own = decision;
        own.job = rider.job;
        own.keys = rider.keys;
        shared.place += 1;
        launch(make_attempt(own, worker), group, shared);
    }
}

void Dispatcher::launch(
    std::shared_ptr<Attempt> attempt, std::shared_ptr<RunGroup> group, SharedRun shared
) {
    queued_by_rank_[rank_of(attempt->keys)].fetch_sub(1, std::memory_order_relaxed);
    if (group) {
        attempt->group = std::move(group);
        attempt->shared = std::move(shared);
    }
    attempts_[attempt->id] = attempt;
    tasks_.spawn("attempt", run_attempt(std::move(attempt), false));
}

Task<std::optional<Result<Accepted>>> Dispatcher::accept_at_once(NewJob& job) {
    if (stopping_ || pump_paused_ || scheduler_.size() > 0) {
        co_return std::nullopt;
    }
    const Job& queued = job.change.job;
    auto keys = make_keys(queued, known_profile(job.spec.profile, job.spec.requirement));
    keys.content = content_of(job.spec);
    scheduler_.add(queued.id, std::move(keys));
    const auto decision = scheduler_.next(clock_.now());
    const std::shared_ptr<Worker> worker = decision ? confirm(*decision) : nullptr;
    if (!worker) {
        scheduler_.remove(queued.id);
        co_return std::nullopt;
    }
    auto attempt = make_attempt(*decision, worker);
    auto started = start_job(queued, *attempt, queued.sequence + 1);
    COMFYD_ASSERT(started.has_value());
    job.then = *started;
    attempt->job = started->job;
    attempt->sequence = started->event.sequence;
    attempt->spec = job.spec;
    auto accepted = co_await ledger_.accept(std::move(job));
    if (!accepted || !accepted->created || stopping_) {
        give_up_place(*attempt);
        pump();
        co_return accepted;  // when stopping, the next start finds the job running and re-attaches
    }
    attempt->begun = true;
    if (!attempt->spec->secret_extra_data.empty()) {
        secrets_[attempt->id] = std::move(attempt->spec->secret_extra_data);
    }
    attempts_[attempt->id] = attempt;
    remember_deadline(attempt->job);
    announce(attempt->job, true);
    committed(*started);
    tasks_.spawn("attempt", run_attempt(std::move(attempt), false));
    co_return accepted;
}

void Dispatcher::reattach(
    Job job,
    scheduler::ProfilePtr profile,
    std::shared_ptr<RunGroup> group,
    std::optional<SharedRun> shared
) {
    auto worker = fleet_.find(job.worker);
    auto attempt = std::make_shared<Attempt>(core_, hub_, clock_, job.id, std::move(worker));
    attempt->group = std::move(group);
    attempt->shared = std::move(shared);
    attempt->keys = make_keys(job, std::move(profile));
    attempt->placed_at = std::chrono::steady_clock::now();
    if (attempt->worker) {
        // Those of a shared run count already, as one.
        scheduler_.running(job.id, job.worker, attempt->keys, clock_.now());
        attempt->holds_place = true;
        workers_[job.worker].attempts.push_back(job.id);
    }
    attempt->sequence = next_sequence_block(job.sequence);
    if (job.cancel_requested) {
        attempt->stop.stop(Code::cancelled);
    }
    lead_running(job);
    attempt->job = std::move(job);
    attempt->begun = true;
    attempts_[attempt->id] = attempt;
    tasks_.spawn("attempt", run_attempt(std::move(attempt), true));
}

Task<> Dispatcher::run_attempt(std::shared_ptr<Attempt> attempt, bool is_reattached) {
    auto assignment = co_await begin(attempt, is_reattached);
    if (!assignment) {
        give_up_place(*attempt);
        if (attempt->group) {
            attempt->group->leave(attempt->shared->place);
        }
        attempt->gone = true;
        attempts_.erase(attempt->id);
        attempt->change_done.notify();
        if (assignment.error().code == Code::not_found ||
            assignment.error().code == Code::conflict) {
            // The job ended while it was on its way here; there is nothing to run.
            log::debug("placed job is no longer waiting", {{"job", attempt->id}});
            leave_run(attempt->id, nullptr);
            pump();
            co_return;
        }
        // Storage trouble: the job goes back to where it was, after a rest instead of spinning.
        log::warning(
            "a job could not be started",
            {{"job", attempt->id}, {"error", assignment.error().message}}
        );
        pump_paused_ = true;
        co_await sleep_for(kStoragePause);
        pump_paused_ = false;
        if (stopping_) {
            co_return;
        }
        if (attempt->begun) {
            reattach(attempt->job, attempt->keys.profile);
        } else {
            add_ready(attempt->id, attempt->keys);
        }
        pump();
        co_return;
    }
    Result<AttemptResult> outcome = fail(
        Code::worker_lost, "the worker '" + attempt->job.worker + "' is no longer part of the fleet"
    );
    if (attempt->worker) {
        attempt->is_on_worker = true;
        outcome = co_await attempt->worker->run(std::move(*assignment), *attempt, attempt->stop);
        attempt->is_ending = true;
        learn(*attempt, outcome);
        give_up_place(*attempt);
        pump();
    }
    co_await conclude(attempt, std::move(outcome));
    attempts_.erase(attempt->id);
    if (attempt->job.state == State::running) {
        leave_run(attempt->id, nullptr);  // its end could not be stored
    }
    pump();
}

Task<Result<Assignment>> Dispatcher::begin(std::shared_ptr<Attempt> attempt, bool is_reattached) {
    if (!attempt->spec) {
        auto spec = co_await ledger_.find_spec(attempt->id);
        if (!spec) {
            co_return fail(std::move(spec.error()));
        }
        if (!*spec) {
            co_return fail(Code::not_found, "the job's workflow is gone");
        }
        attempt->spec = std::move(*spec);
    }
    if (!attempt->begun) {
        auto found = co_await ledger_.find(attempt->id);
        if (!found) {
            co_return fail(std::move(found.error()));
        }
        if (!*found) {
            co_return fail(Code::not_found, "the job is gone");
        }
        attempt->job = std::move(**found);
        attempt->sequence = attempt->job.sequence;
        if (!attempt->job.reuse_key.empty()) {
            auto answered = co_await answer_from_store(attempt);
            if (!answered) {
                co_return fail(std::move(answered.error()));
            }
            if (*answered) {
                co_return fail(Code::conflict, "the job was answered with stored outputs");
            }
        }
        auto started = co_await change_attempt(
            attempt,
            [this, attempt](const Job& job, std::uint64_t sequence) {
                return start_job(job, *attempt, sequence);
            }
        );
        if (!started) {
            co_return fail(std::move(started.error()));
        }
        attempt->begun = true;
        attempt->change_done.notify();
    }
    Assignment assignment;
    assignment.job = attempt->id;
    assignment.attempt = attempt->job.attempt;
    assignment.prompt_id = prompt_id(attempt->id, attempt->job.attempt);
    assignment.tenant = attempt->job.tenant;
    assignment.workflow = std::move(attempt->spec->workflow);
    assignment.extra_data = std::move(attempt->spec->extra_data);
    if (const auto secret = secrets_.find(attempt->id); secret != secrets_.end()) {
        for (const auto& entry : secret->second) {
            assignment.extra_data[entry.key()] = entry.value();
        }
    }
    assignment.targets = std::move(attempt->spec->targets);
    assignment.timeout = attempt->job.timeout;
    assignment.reattach = is_reattached;
    if (attempt->group) {
        assignment.group = attempt->group;
        assignment.place = attempt->shared->place;
    }
    follow_progress(*attempt);
    attempt->spec.reset();
    co_return assignment;
}

Task<> Dispatcher::conclude(std::shared_ptr<Attempt> attempt, Result<AttemptResult> outcome) {
    if (outcome) {
        auto result = std::make_shared<AttemptResult>(std::move(*outcome));
        co_await settle(attempt, [this, result](const Job& job, std::uint64_t sequence) {
            return complete(job, result->outputs, result->ui_outputs, sequence, clock_.now());
        });
        co_return;
    }
    const Error& error = outcome.error();
    if (error.code == Code::shutting_down) {
        co_return;  // the next start re-attaches
    }
    if (error.code == Code::cancelled && attempt->job.cancel_requested) {
        co_await settle(attempt, [this](const Job& job, std::uint64_t sequence) {
            return confirm_cancel(job, sequence, clock_.now());
        });
        co_return;
    }
    if (error.code == Code::deadline_exceeded) {
        co_await settle(attempt, [this](const Job& job, std::uint64_t sequence) {
            return expire(job, sequence, clock_.now());
        });
        co_return;
    }
    Failure failure = Failure::from(error);
    if (failure.details.contains(kEndedWithProcess)) {
        const bool again = co_await has_ended_with_process(attempt->id);
        if (again) {
            failure.code = Code::node_execution_error;
            failure.message =
                "the engine's process ended twice while it ran this job, so it is not tried again. "
                "Its "
                "workflow may ask for more than this machine has: make it smaller, or give it to "
                "a ComfyUI worker";
        }
    }
    log::info(
        "attempt failed",
        {{"job", attempt->id},
         {"attempt", attempt->job.attempt},
         {"worker", attempt->job.worker},
         {"code", to_string(failure.code)},
         {"error", failure.message}}
    );
    const Millis delay = retry_delay(attempt->job.attempt, random_fraction());
    co_await settle(
        attempt,
        [this, failure, delay](const Job& job, std::uint64_t sequence) -> Result<Change> {
            const Time now = clock_.now();
            if (job.cancel_requested) {
                return confirm_cancel(job, sequence, now);
            }
            if (may_retry(job, failure)) {
                return retry_later(job, failure, now + delay, sequence, now);
            }
            return fail_job(job, failure, sequence, now);
        }
    );
}

Task<bool> Dispatcher::has_ended_with_process(JobId id) {
    auto events = co_await ledger_.events(id, 0);
    co_return events&& std::ranges::any_of(*events, [](const Event& event) {
        const json::value* error = json::find(event.data, "error");
        return event.type == EventType::retrying && error != nullptr && error->is_object() &&
               Failure::from_json(error->get_object()).details.contains(kEndedWithProcess);
    });
}

// Commits the end of an attempt. A full or locked disk must not lose a finished picture: it is
// tried until it works or the process stops (then the job is still `running` in the ledger, and the
// next start finds the result on the worker).
Task<> Dispatcher::settle(std::shared_ptr<Attempt> attempt, Step step) {
    const Step counted = [step, used = attempt->usage](const Job& job, std::uint64_t sequence) {
        auto change = step(job, sequence);
        if (change && used) {
            add_usage(*change, *used);
        }
        return change;
    };
    for (;;) {
        auto done = co_await change_attempt(attempt, counted);
        if (done) {
            break;
        }
        if (done.error().code == Code::conflict) {
            log::error(
                "the end of an attempt does not fit the job",
                {{"job", attempt->id}, {"error", done.error().message}}
            );
            co_return;
        }
        log::warning(
            "the end of a job could not be stored yet",
            {{"job", attempt->id}, {"error", done.error().message}}
        );
        const bool goes_on = co_await sleep_for(kStoragePause);
        if (!goes_on) {
            co_return;
        }
    }
    if (attempt->job.state == State::retry_waiting) {
        put_back(attempt->job, attempt->keys.profile);
    }
}

// One change of an attempt's job at a time: a cancel may come while its end is being committed.
Task<Result<>> Dispatcher::change_attempt(std::shared_ptr<Attempt> attempt, Step step) {
    while (attempt->changing) {
        co_await attempt->change_done.wait();
    }
    auto change = step(attempt->job, attempt->sequence + 1);
    if (!change) {
        co_return fail(std::move(change.error()));
    }
    attempt->changing = true;
    auto stored = co_await ledger_.commit(*change);
    attempt->changing = false;
    attempt->change_done.notify();
    if (!stored) {
        co_return fail(std::move(stored.error()));
    }
    attempt->job = change->job;
    attempt->sequence = std::max(attempt->sequence, change->event.sequence);
    if (change->job.state == State::completed) {
        for (auto& output : attempt->outputs) {
            hub_.publish(std::move(output));
        }
    }
    committed(*change);
    co_return Result<>();
}

}  // namespace comfyd::jobs
