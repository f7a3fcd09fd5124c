#include "jobs/attempts.hpp"

#include "base/log.hpp"
#include "jobs/attempt.hpp"
#include "jobs/cause.hpp"

namespace comfyd::jobs {

std::shared_ptr<Attempt> Attempts::make(
    const scheduler::Decision& decision, std::shared_ptr<Worker> worker
) {
    auto attempt =
        std::make_shared<Attempt>(p_.core, p_.hub, p_.clock, decision.job, std::move(worker));
    attempt->keys = decision.keys;
    attempt->expected_load_s = decision.numbers.load_s;
    attempt->jobs_together = 1 + static_cast<int>(decision.batched.size());
    p_.placement.take_place(*attempt);
    return attempt;
}

void Attempts::launch(std::shared_ptr<Attempt> attempt) {
    p_.whereabouts.make_attempting(attempt);
    follow(std::move(attempt));
}

void Attempts::follow(std::shared_ptr<Attempt> attempt) {
    p_.tasks.spawn("attempt", run(std::move(attempt), false));
}

std::shared_ptr<Attempt> Attempts::reattach(
    Job job,
    scheduler::ProfilePtr profile,
    std::shared_ptr<Worker> worker,
    std::shared_ptr<Batch> group
) {
    auto attempt = std::make_shared<Attempt>(p_.core, p_.hub, p_.clock, job.id, std::move(worker));
    if (group) {
        attempt->group = std::move(group);
        attempt->shared = job.shared;
    }
    attempt->keys = p_.ranking.keys_of(job, std::move(profile));
    if (attempt->worker) {
        // Those of a shared run count already, as one.
        p_.placement.scheduler().running(job.id, job.worker, attempt->keys, p_.clock.now());
        p_.placement.take_place(*attempt);
        attempt->expected = attempt->worker->expect_attempt();
    }
    attempt->sequence = next_sequence_block(job.sequence);
    if (job.cancel_requested) {
        attempt->stop.stop(Code::cancelled);
    }
    p_.whereabouts.lead_running(job);
    attempt->job = std::move(job);
    attempt->begun = true;
    p_.whereabouts.make_attempting(attempt);
    p_.whereabouts.remember_deadline(attempt->job);
    p_.tasks.spawn("attempt", run(attempt, true));
    return attempt;
}

// Of a job that is `running` already it is tried until the storage is back.
Task<Result<Assignment>> Attempts::begin(std::shared_ptr<Attempt> attempt, bool is_reattached) {
    for (;;) {
        auto assignment = co_await p_.start.begin(attempt, is_reattached);
        if (assignment || !attempt->begun || assignment.error().code == Code::not_found) {
            co_return assignment;
        }
        const bool goes_on = co_await sleep_for(Alarms::kStoragePause);
        if (!goes_on) {
            co_return fail(Code::shutting_down, "comfyd is shutting down");
        }
    }
}

Task<> Attempts::run(std::shared_ptr<Attempt> attempt, bool is_reattached) {
    auto assignment = co_await begin(attempt, is_reattached);
    if (!assignment && assignment.error().code == Code::shutting_down && attempt->begun) {
        co_return;
    }
    if (!assignment && !attempt->begun) {
        give_back(attempt, assignment.error());
        co_return;
    }
    Result<AttemptResult> outcome = fail(
        Code::worker_lost,
        "the worker '" + attempt->job.worker + "' is no longer part of the fleet",
        {{std::string(kCauseKey), to_string(Cause::worker_refused)}}
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
        p_.placement.learn(*attempt, outcome);
    }
    attempt->expected.reset();
    p_.placement.give_up_place(*attempt);
    p_.look_at_queue();
    co_await p_.end.conclude(attempt, std::move(outcome));
    if (p_.table.attempt(attempt->id) == attempt) {
        lose(attempt->id);  // its end could not be stored: the next start finds it running
    }
    p_.look_at_queue();
}

void Attempts::give_back(const std::shared_ptr<Attempt>& attempt, const Error& why) {
    p_.placement.give_up_place(*attempt);
    if (attempt->group) {
        attempt->group->leave(attempt->shared->place);
    }
    const bool is_over = why.code == Code::not_found || why.code == Code::conflict;
    if (p_.table.attempt(attempt->id) == attempt && is_over) {
        log::debug("placed job is no longer waiting", {{"job", attempt->id}});
        lose(attempt->id);
    } else if (p_.table.attempt(attempt->id) == attempt) {
        // Storage trouble: the job goes back to where it was, after a rest instead of spinning.
        log::warning("a job could not be started", {{"job", attempt->id}, {"error", why.message}});
        p_.alarms.rest();
        p_.whereabouts.make_ready(attempt->id, attempt->keys);
    }
    p_.look_at_queue();
}

void Attempts::lose(const JobId& id) {
    p_.whereabouts.forget(id);
    p_.answers.run_ended(id, nullptr);
}

}  // namespace comfyd::jobs
