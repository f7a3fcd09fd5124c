#include "jobs/attempt_end.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "jobs/attempt.hpp"

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

Task<Result<AttemptResult>> AttemptEnd::finish(
    std::shared_ptr<Attempt> attempt, AttemptResult result
) {
    auto finished =
        co_await finish_(attempt->job, std::move(result.outputs), attempt->stop.told.get_token());
    if (!finished) {
        // Only a stop ends it; the outputs are on the worker for whoever comes next.
        const Code why = attempt->stop.reason.value_or(finished.error().code);
        co_return fail(why, std::move(finished.error().message));
    }
    result.outputs = std::move(*finished);
    // They are told of after the end was stored, with all that is known of them by then.
    for (const auto& event : attempt->outputs) {
        json::value& told = event->data["output"];
        const auto same = std::ranges::find_if(result.outputs, [&told](const Output& output) {
            return told.is_object() && Output::from_json(told.get_object()).asset == output.asset;
        });
        if (same != result.outputs.end()) {
            told = same->to_json();
        }
    }
    co_return result;
}

Task<> AttemptEnd::conclude(std::shared_ptr<Attempt> attempt, Result<AttemptResult> outcome) {
    if (outcome && finish_ && !outcome->outputs.empty()) {
        outcome = co_await finish(attempt, std::move(*outcome));
    }
    if (outcome) {
        auto result = std::make_shared<AttemptResult>(std::move(*outcome));
        co_await settle(attempt, [this, result](const Job& job, std::uint64_t sequence) {
            return complete(job, result->outputs, result->ui_outputs, sequence, clock_.now());
        });
        co_return;
    }
    const Error& error = outcome.error();
    const bool was_asked = attempt->stop.reason == error.code;
    if (error.code == Code::shutting_down && (was_asked || is_stopping_)) {
        co_return;  // the next start re-attaches
    }
    if (error.code == Code::lead_lost) {
        co_return;  // whoever leads now does
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
    co_await conclude_failure(attempt, Failure::from(error));
}

Task<> AttemptEnd::conclude_failure(std::shared_ptr<Attempt> attempt, Failure failure) {
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
                "Its workflow may ask for more than this machine has: make it smaller, or give it "
                "to a ComfyUI worker";
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

Task<bool> AttemptEnd::has_ended_with_process(JobId id) {
    auto events = co_await ledger_.events(id, 0);
    co_return events&& std::ranges::any_of(*events, [](const Event& event) {
        const json::value* error = json::find(event.data, "error");
        return event.type == EventType::retrying && error != nullptr && error->is_object() &&
               Failure::from_json(error->get_object()).details.contains(kEndedWithProcess);
    });
}

// A full or locked disk must not lose a finished picture: it is tried until it works or the process
// stops (then the job is still `running` in the ledger, and the next start finds the result on the
// worker).
Task<> AttemptEnd::settle(std::shared_ptr<Attempt> attempt, Changes::Step step) {
    const Changes::Step counted = [step,
                                   used = attempt->usage](const Job& job, std::uint64_t sequence) {
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
        if (done.error().code == Code::lead_lost) {
            co_return;  // whoever leads now finds on the worker how it ended
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
        whereabouts_.put_back(attempt->job, attempt->keys.profile);
    }
}

}  // namespace comfyd::jobs
