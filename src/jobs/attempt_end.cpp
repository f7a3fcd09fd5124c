#include "jobs/attempt_end.hpp"

#include <algorithm>
#include <utility>

#include "base/foreign_text.hpp"
#include "base/log.hpp"
#include "jobs/attempt.hpp"
#include "jobs/give_back.hpp"

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
        co_await expire_job(attempt);
        co_return;
    }
    if (error.details.contains(kGivenBack)) {
        co_await conclude_given_back(attempt, Failure::from(error));
        co_return;
    }
    co_await conclude_failure(attempt, Failure::from(error));
}

Task<> AttemptEnd::conclude_given_back(std::shared_ptr<Attempt> attempt, Failure failure) {
    log::info("job given back", {{"job", attempt->id}, {"worker", attempt->job.worker}});
    co_await settle(
        attempt,
        [this, failure = std::move(failure)](const Job& job, std::uint64_t sequence) {
            const Time now = clock_.now();
            return job.cancel_requested ? confirm_cancel(job, sequence, now)
                                        : give_back(job, failure, sequence, now);
        }
    );
}

Task<> AttemptEnd::expire_job(std::shared_ptr<Attempt> attempt) {
    auto kept = std::make_shared<AttemptResult>();
    *kept = co_await finish_kept(attempt);
    co_await settle(attempt, [this, kept](const Job& job, std::uint64_t sequence) {
        auto change = expire(job, sequence, clock_.now());
        if (change) {
            keep_finished(*change, kept->outputs, kept->ui_outputs);
        }
        return change;
    });
}

Task<AttemptResult> AttemptEnd::finish_kept(std::shared_ptr<Attempt> attempt) {
    AttemptResult kept = std::exchange(attempt->kept, {});
    if (finish_ && !kept.outputs.empty()) {
        auto finished = co_await finish(attempt, std::move(kept));
        kept = finished ? std::move(*finished) : AttemptResult();
    }
    co_return kept;
}

Task<> AttemptEnd::conclude_failure(std::shared_ptr<Attempt> attempt, Failure failure) {
    if (is_stop(failure.code)) {
        failure.code = Code::protocol_error;
        failure.message = "the worker stopped the job without being asked: " + failure.message;
    }
    auto before = co_await attempts_before(attempt);
    if (!before) {
        co_return;  // the next start, or whoever leads now, finds the job running
    }
    const int number = attempt->job.attempt;
    auto verdict = std::make_shared<Verdict>(judge_failure(
        attempt->job, std::move(failure), *before, policy_, spread_of(attempt->id, number)
    ));
    log::info(
        "attempt failed",
        {{"job", attempt->id},
         {"attempt", number},
         {"worker", attempt->job.worker},
         {"code", to_string(verdict->failure.code)},
         {"cause", to_string(cause_of(verdict->failure))},
         {"error", log::foreign(verdict->failure.message)}}
    );
    auto kept = std::make_shared<AttemptResult>();
    if (!verdict->retries) {
        *kept = co_await finish_kept(attempt);
    } else if (verdict->is_costly) {
        verdict->delay = std::max(verdict->delay, budget_.take(clock_.now()));
    }
    co_await settle(
        attempt,
        [this, verdict, kept](const Job& job, std::uint64_t sequence) -> Result<Change> {
            const Time now = clock_.now();
            if (job.cancel_requested) {
                return confirm_cancel(job, sequence, now);
            }
            if (verdict->retries) {
                auto again =
                    retry_later(job, verdict->failure, now + verdict->delay, sequence, now);
                if (again) {
                    again->job.timeout = verdict->timeout;
                }
                return again;
            }
            auto failed = fail_job(job, verdict->failure, sequence, now);
            if (failed) {
                keep_finished(*failed, kept->outputs, kept->ui_outputs);
            }
            return failed;
        }
    );
}

Task<std::optional<std::vector<PastAttempt>>> AttemptEnd::attempts_before(
    std::shared_ptr<Attempt> attempt
) {
    std::vector<PastAttempt> before;
    if (attempt->job.attempt <= 1) {
        co_return before;
    }
    for (;;) {
        auto events = co_await ledger_.events(attempt->id, 0);
        if (events) {
            before = past_attempts(*events);
            break;
        }
        if (events.error().code == Code::lead_lost) {
            co_return std::nullopt;
        }
        log::warning(
            "the attempts of a job could not be read yet",
            {{"job", attempt->id}, {"error", events.error().message}}
        );
        const bool goes_on = co_await sleep_for(Alarms::kStoragePause);
        if (!goes_on) {
            co_return std::nullopt;
        }
    }
    std::erase_if(before, [&attempt](const PastAttempt& past) {
        return !past.is_of_this_life || past.number >= attempt->job.attempt ||
               (past.failure && past.failure->details.contains(kGivenBack));
    });
    co_return before;
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
