// From the placement of a job on a worker to the outcome of the attempt.
#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/log.hpp"
#include "jobs/attempt.hpp"
#include "jobs/dispatcher.hpp"

namespace comfyd::jobs {
namespace {

// Spreads the retries of jobs that failed together, by the random part of their ids.
double spread_of(const JobId& id, int attempt) {
    const auto mixed =
        std::hash<JobId>()(id) + 0x9E3779B97F4A7C15ULL * static_cast<unsigned>(attempt);
    return static_cast<double>(mixed >> 32) / 4294967296.0;
}

// How a stop ends a run. A worker that says so without being asked has ended it in a way of its
// own.
bool is_stop(Code code) {
    return code == Code::cancelled || code == Code::deadline_exceeded ||
           code == Code::shutting_down;
}

}  // namespace

Task<std::optional<Result<Accepted>>> Dispatcher::accept_at_once(NewJob& job) {
    const Job& queued = job.change.job;
    const bool is_late = queued.deadline && *queued.deadline <= clock_.now();
    if (stopping_ || alarms_.is_resting() || scheduler_.size() > 0 || is_late) {
        co_return std::nullopt;
    }
    auto keys = make_keys(queued, known_profile(job.spec.profile, job.spec.requirement));
    keys.content = content_of(job.spec);
    scheduler_.add(queued.id, std::move(keys));
    const auto decision = scheduler_.next(clock_.now());
    const std::shared_ptr<Worker> worker = decision ? placement_.confirm(*decision) : nullptr;
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
    changes_.hold(attempt->id);  // it can be found as soon as it is stored
    auto accepted = co_await ledger_.accept(std::move(job));
    if (!accepted || !accepted->created || stopping_) {
        placement_.give_up_place(*attempt);
        changes_.release(attempt->id);
        pump();
        co_return accepted;  // when stopping, the next start finds the job running and re-attaches
    }
    attempt->begun = true;
    make_attempting(attempt);
    if (!attempt->spec->secret_extra_data.empty()) {
        table_.set_secrets(attempt->id, std::move(attempt->spec->secret_extra_data));
    }
    remember_deadline(attempt->job);
    announce(attempt->job, true);
    committed(*started);
    changes_.release(attempt->id);
    tasks_.spawn("attempt", run_attempt(std::move(attempt), false));
    co_return accepted;
}

void Dispatcher::reattach(Job job, scheduler::ProfilePtr profile, std::shared_ptr<RunGroup> group) {
    auto worker = fleet_.find(job.worker);
    auto attempt = std::make_shared<Attempt>(core_, hub_, clock_, job.id, std::move(worker));
    if (group) {
        attempt->group = std::move(group);
        attempt->shared = job.shared;
    }
    attempt->keys = make_keys(job, std::move(profile));
    if (attempt->worker) {
        // Those of a shared run count already, as one.
        scheduler_.running(job.id, job.worker, attempt->keys, clock_.now());
        placement_.take_place(*attempt);
    }
    attempt->sequence = next_sequence_block(job.sequence);
    if (job.cancel_requested) {
        attempt->stop.stop(Code::cancelled);
    }
    lead_running(job);
    attempt->job = std::move(job);
    attempt->begun = true;
    make_attempting(attempt);
    remember_deadline(attempt->job);
    tasks_.spawn("attempt", run_attempt(std::move(attempt), true));
}

Task<> Dispatcher::run_attempt(std::shared_ptr<Attempt> attempt, bool is_reattached) {
    auto assignment = co_await begin(attempt, is_reattached);
    while (!assignment && attempt->begun && assignment.error().code != Code::not_found) {
        const bool goes_on = co_await sleep_for(Alarms::kStoragePause);
        if (!goes_on) {
            co_return;
        }
        assignment = co_await begin(attempt, is_reattached);
    }
    if (!assignment && !attempt->begun) {
        give_back(attempt, assignment.error());
        co_return;
    }
    Result<AttemptResult> outcome = fail(
        Code::worker_lost, "the worker '" + attempt->job.worker + "' is no longer part of the fleet"
    );
    if (!assignment) {
        outcome = fail(std::move(assignment.error()));
        if (attempt->group) {
            attempt->group->leave(attempt->shared->place);
        }
    } else if (attempt->worker) {
        attempt->is_on_worker = true;
        outcome = co_await attempt->worker->run(std::move(*assignment), *attempt, attempt->stop);
        attempt->is_ending = true;
        placement_.learn(*attempt, outcome);
    }
    placement_.give_up_place(*attempt);
    pump();
    co_await conclude(attempt, std::move(outcome));
    if (table_.attempt(attempt->id) == attempt) {
        forget(attempt->id);  // its end could not be stored: the next start finds it running
        leave_run(attempt->id, nullptr);
    }
    pump();
}

void Dispatcher::give_back(const std::shared_ptr<Attempt>& attempt, const Error& why) {
    placement_.give_up_place(*attempt);
    if (attempt->group) {
        attempt->group->leave(attempt->shared->place);
    }
    const bool is_over = why.code == Code::not_found || why.code == Code::conflict;
    if (table_.attempt(attempt->id) == attempt && is_over) {
        log::debug("placed job is no longer waiting", {{"job", attempt->id}});
        forget(attempt->id);
        leave_run(attempt->id, nullptr);
    } else if (table_.attempt(attempt->id) == attempt) {
        // Storage trouble: the job goes back to where it was, after a rest instead of spinning.
        log::warning("a job could not be started", {{"job", attempt->id}, {"error", why.message}});
        alarms_.rest();
        make_ready(attempt->id, attempt->keys);
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
        if (!attempt->spec->reuse_key.empty()) {
            auto answered = co_await answer_from_store(attempt);
            if (!answered) {
                co_return fail(std::move(answered.error()));
            }
            if (*answered) {
                co_return fail(Code::conflict, "the job was answered with stored outputs");
            }
        }
        auto started = co_await changes_.make(
            attempt->id,
            [this, attempt](const Job& job, std::uint64_t sequence) -> Result<Change> {
                if (table_.attempt(attempt->id) != attempt) {
                    return fail(Code::conflict, "the job has ended on its way to the worker");
                }
                return start_job(job, *attempt, sequence);
            }
        );
        if (!started) {
            co_return fail(std::move(started.error()));
        }
        if (started->state != State::running) {
            co_return fail(Code::conflict, "the job's deadline passed on its way to the worker");
        }
    }
    Assignment assignment;
    assignment.job = attempt->id;
    assignment.attempt = attempt->job.attempt;
    assignment.prompt_id = prompt_id(attempt->id, attempt->job.attempt);
    assignment.tenant = attempt->job.tenant;
    assignment.workflow = std::move(attempt->spec->workflow);
    assignment.extra_data = std::move(attempt->spec->extra_data);
    if (const json::object* secrets = table_.secrets(attempt->id)) {
        for (const auto& entry : *secrets) {
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

Result<Change> Dispatcher::start_job(const Job& job, const Attempt& attempt, std::uint64_t sequence)
    const {
    const Time now = clock_.now();
    if (job.deadline && *job.deadline <= now) {
        return expire(job, sequence, now);
    }
    auto started = jobs::start(job, attempt.worker->id(), sequence, now, attempt.shared);
    if (const auto expected = forecast_.expect_run(attempt); started && expected) {
        started->event.data["estimated_duration_seconds"] = whole_seconds(expected->seconds);
    }
    return started;
}

// REQUIRES: attempt.spec.
void Dispatcher::follow_progress(Attempt& attempt) {
    attempt.seconds_left = [this, &attempt] { return forecast_.seconds_left(attempt); };
    auto& webhook = attempt.spec->webhook;
    if (progress_told_ && webhook && webhook->wants(webhook_event_name(EventType::progress))) {
        attempt.progress_told = [this, &attempt, webhook = std::move(*webhook)](const Event& event
                                ) { progress_told_(attempt.job, webhook, event); };
    }
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
    const bool was_asked = attempt->stop.reason == error.code;
    if (error.code == Code::shutting_down && (was_asked || stopping_)) {
        co_return;  // the next start re-attaches
    }
    if (error.code == Code::cancelled && attempt->job.cancel_requested) {
        co_await settle(attempt, [this](const Job& job, std::uint64_t sequence) {
            return confirm_cancel(job, sequence, clock_.now());
        });
        co_return;
    }
    if (error.code == Code::deadline_exceeded && was_asked) {
        co_await settle(attempt, [this](const Job& job, std::uint64_t sequence) {
            return expire(job, sequence, clock_.now());
        });
        co_return;
    }
    Failure failure = Failure::from(error);
    if (is_stop(failure.code)) {
        failure.code = Code::protocol_error;
        failure.message = "the worker stopped the job without being asked: " + failure.message;
    }
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
    const Millis delay =
        retry_delay(attempt->job.attempt, spread_of(attempt->id, attempt->job.attempt));
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
        auto done = co_await changes_.make(attempt->id, counted);
        if (done) {
            break;
        }
        if (done.error().code == Code::conflict || done.error().code == Code::not_found) {
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
        const bool goes_on = co_await sleep_for(Alarms::kStoragePause);
        if (!goes_on) {
            co_return;
        }
    }
    if (attempt->job.state == State::retry_waiting) {
        put_back(attempt->job, attempt->keys.profile);
    }
}

}  // namespace comfyd::jobs
