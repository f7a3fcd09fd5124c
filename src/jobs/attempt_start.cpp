#include "jobs/attempt_start.hpp"

#include "jobs/attempt.hpp"

namespace comfyd::jobs {

Task<Result<Assignment>> AttemptStart::begin(std::shared_ptr<Attempt> attempt, bool is_reattached) {
    if (!attempt->spec) {
        auto read = co_await read_spec(attempt);
        if (!read) {
            co_return fail(std::move(read.error()));
        }
    }
    if (!attempt->begun) {
        auto stored = co_await store_start(attempt);
        if (!stored) {
            co_return fail(std::move(stored.error()));
        }
    }
    Assignment assignment = make_assignment(*attempt, is_reattached);
    follow_progress(*attempt);
    attempt->spec.reset();
    co_return assignment;
}

Task<Result<>> AttemptStart::read_spec(std::shared_ptr<Attempt> attempt) {
    auto spec = co_await ledger_.find_spec(attempt->id);
    if (!spec) {
        co_return fail(std::move(spec.error()));
    }
    if (!*spec) {
        co_return fail(Code::not_found, "the job's workflow is gone");
    }
    attempt->spec = std::move(*spec);
    co_return Result<>();
}

Task<Result<>> AttemptStart::store_start(std::shared_ptr<Attempt> attempt) {
    if (!attempt->spec->reuse_key.empty()) {
        auto answered = co_await answers_.answer_from_store(
            attempt->id, attempt->spec->tenant, attempt->spec->reuse_key
        );
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
    co_return Result<>();
}

Result<Change> AttemptStart::start_job(
    const Job& job, const Attempt& attempt, std::uint64_t sequence
) const {
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

// Takes what it needs of attempt.spec.
Assignment AttemptStart::make_assignment(Attempt& attempt, bool is_reattached) const {
    Assignment assignment;
    assignment.job = attempt.id;
    assignment.attempt = attempt.job.attempt;
    assignment.prompt = prompt_id(attempt.id, attempt.job.attempt);
    assignment.tenant = attempt.job.tenant;
    assignment.workflow = std::move(attempt.spec->workflow);
    assignment.extra_data = std::move(attempt.spec->extra_data);
    if (const json::object* secrets = table_.secrets(attempt.id)) {
        for (const auto& entry : *secrets) {
            assignment.extra_data[entry.key()] = entry.value();
        }
    }
    assignment.targets = std::move(attempt.spec->targets);
    assignment.timeout = attempt.job.timeout;
    assignment.reattach = is_reattached;
    if (!is_reattached) {
        assignment.expected = forecast_.known_run(attempt);
    }
    if (attempt.group) {
        assignment.group = attempt.group;
        assignment.place = attempt.shared->place;
    }
    return assignment;
}

// REQUIRES: attempt.spec.
void AttemptStart::follow_progress(Attempt& attempt) {
    attempt.seconds_left = [this, &attempt] { return forecast_.seconds_left(attempt); };
    if (!progress_told_) {
        return;
    }
    auto webhook = std::exchange(attempt.spec->webhook, std::nullopt);
    if (webhook && !webhook->wants(webhook_event_name(EventType::progress))) {
        webhook.reset();
    }
    const bool do_others_want = is_progress_wanted_ && is_progress_wanted_(attempt.job);
    if (webhook || do_others_want) {
        attempt.progress_told = [this, &attempt, webhook = std::move(webhook)](const Event& event) {
            progress_told_(attempt.job, webhook ? &*webhook : nullptr, event);
        };
    }
}

}  // namespace comfyd::jobs
