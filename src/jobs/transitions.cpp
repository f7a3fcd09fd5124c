// The state machine: every way in which a job can change.
#include <utility>

#include "jobs/doctor.hpp"
#include "jobs/give_back.hpp"
#include "jobs/job.hpp"

namespace comfyd::jobs {
namespace {

tl::unexpected<Error> not_allowed(const Job& job, std::string_view what) {
    return fail(
        Code::conflict,
        "job " + job.id.to_string() + " is " + std::string(to_string(job.state)) +
            " and cannot be " + std::string(what),
        {{"state", to_string(job.state)}}
    );
}

// `job` already holds the new state; counts the change and describes it.
Change changed(Job job, EventType type, json::object data, std::uint64_t sequence, Time now) {
    job.revision += 1;
    job.sequence = sequence;
    Event event;
    event.job = job.id;
    event.sequence = sequence;
    event.type = type;
    event.at = now;
    event.state = job.state;
    event.data = std::move(data);
    return Change{std::move(job), std::move(event)};
}

Job ended(Job job, State state, Time now) {
    job.state = state;
    job.finished_at = now;
    job.not_before.reset();
    job.cancel_requested = false;
    return job;
}

void keep_as_asked(Job& job, Time now) {
    const json::value* asked = json::find(job.dialect_data, "keep");
    if (asked == nullptr || !asked->is_object()) {
        return;
    }
    const Keeping keeping = Keeping::from_json(asked->get_object());
    each_file(job.outputs, [&keeping, now](Output& file) {
        file.store = keeping.store;
        file.retention = keeping.retention;
        file.expires_at = keeping.life ? std::optional(now + *keeping.life) : std::nullopt;
        file.moves_at =
            keeping.moves_after ? std::optional(now + *keeping.moves_after) : std::nullopt;
    });
}

json::array listed(const std::vector<Output>& outputs) {
    json::array all;
    for (const Output& output : outputs) {
        all.emplace_back(output.to_json());
    }
    return all;
}

}  // namespace

Change make_job(JobId id, const Spec& spec, Time now) {
    Job job;
    job.id = id;
    job.tenant = spec.tenant;
    job.dialect = spec.dialect;
    job.domain = spec.domain;
    job.priority = spec.priority;
    job.batch = spec.batch;
    job.fairness_key = spec.fairness_key;
    job.created_at = now;
    job.deadline = spec.deadline;
    job.timeout = spec.timeout;
    job.max_attempts = spec.max_attempts;
    job.workflow_id = spec.workflow_id;
    job.metadata = spec.metadata;
    job.dialect_data = spec.dialect_data;
    job.has_webhook = spec.webhook.has_value();
    job.node_count = spec.node_count;
    job.reuse_key = spec.reuse_key;
    json::object data{{"priority", spec.priority}};
    if (spec.batch) {
        data["class"] = "batch";
    }
    if (!spec.fairness_key.empty()) {
        data["fairness_key"] = spec.fairness_key;
    }
    return changed(std::move(job), EventType::queued, std::move(data), 1, now);
}

std::optional<Event> warn(Change& accepted, const Spec& spec) {
    if (spec.warnings.empty()) {
        return std::nullopt;
    }
    Event event = accepted.event;
    event.type = EventType::warning;
    event.sequence = ++accepted.job.sequence;
    event.data = {{"warnings", spec.warnings}};
    return event;
}

json::object BatchPlace::to_json() const {
    return {{"prompt_id", prompt.to_string()}, {"place", static_cast<std::int64_t>(place)}};
}

Result<Change> start(
    const Job& job,
    std::string worker,
    std::uint64_t sequence,
    Time now,
    const std::optional<BatchPlace>& shared
) {
    if (job.state != State::queued) {
        return not_allowed(job, "started");
    }
    Job next = job;
    next.state = State::running;
    next.attempt += 1;
    next.worker = std::move(worker);
    next.shared = shared;
    next.started_at = now;
    next.failure.reset();
    json::object data{{"worker", next.worker}, {"attempt", next.attempt}};
    if (shared) {
        data["shared_run"] = shared->to_json();
    }
    return changed(std::move(next), EventType::started, std::move(data), sequence, now);
}

Result<Change> complete(
    const Job& job,
    std::vector<Output> outputs,
    json::object ui_outputs,
    std::uint64_t sequence,
    Time now
) {
    if (job.state != State::running) {
        return not_allowed(job, "completed");
    }
    Job next = ended(job, State::completed, now);
    next.outputs = std::move(outputs);
    next.ui_outputs = std::move(ui_outputs);
    next.failure.reset();
    keep_as_asked(next, now);
    json::object data{{"outputs", listed(next.outputs)}};
    if (!next.outputs.empty() && !next.outputs.front().store.empty()) {
        data["storage"] = "pending";  // they are here, and are brought to their store from now on
    }
    return changed(std::move(next), EventType::completed, std::move(data), sequence, now);
}

Result<Change> complete_from(const Job& job, const Job& source, std::uint64_t sequence, Time now) {
    if (job.state != State::queued || source.state != State::completed) {
        return not_allowed(job, "answered with stored outputs");
    }
    Job next = ended(job, State::completed, now);
    next.outputs = source.outputs;
    each_file(next.outputs, [now](Output& file) {
        file.asset = AssetId::make(now);
        file.store.clear();
        file.retention.clear();
        file.expires_at.reset();
    });
    keep_as_asked(next, now);
    next.ui_outputs = source.ui_outputs;
    next.started_at.reset();  // of an attempt before, if any; what it ends with did not run
    next.failure.reset();
    next.reused_from = source.reused_from.value_or(source.id);
    if (!next.usage) {
        next.usage.emplace();  // it is known to have used nothing
    }
    json::object data{
        {"outputs", listed(next.outputs)},
        {"outputs_reused", true},
        {"reused_from", next.reused_from->to_string()}
    };
    return changed(std::move(next), EventType::completed, std::move(data), sequence, now);
}

Result<Change> fail_job(const Job& job, Failure failure, std::uint64_t sequence, Time now) {
    if (is_terminal(job.state)) {
        return not_allowed(job, "failed");
    }
    Job next = ended(job, State::failed, now);
    json::object data{{"error", failure.to_json()}};
    next.failure = std::move(failure);
    return changed(std::move(next), EventType::failed, std::move(data), sequence, now);
}

Result<Change> retry_later(
    const Job& job, Failure failure, Time not_before, std::uint64_t sequence, Time now
) {
    if (job.state != State::running || job.attempt >= job.max_attempts || job.cancel_requested) {
        return not_allowed(job, "tried again");
    }
    Job next = job;
    next.state = State::retry_waiting;
    next.not_before = not_before;
    json::object data{
        {"error", failure.to_json()}, {"attempt", job.attempt}, {"retry_at", to_rfc3339(not_before)}
    };
    next.failure = std::move(failure);
    return changed(std::move(next), EventType::retrying, std::move(data), sequence, now);
}

Result<Change> give_back(const Job& job, Failure failure, std::uint64_t sequence, Time now) {
    Job spared = job;
    // The number of the attempt stays used, because it names a prompt that the worker may know.
    spared.max_attempts += 1;
    return retry_later(spared, std::move(failure), now, sequence, now);
}

Result<Change> requeue(const Job& job, std::uint64_t sequence, Time now) {
    if (job.state != State::retry_waiting) {
        return not_allowed(job, "queued again");
    }
    Job next = job;
    next.state = State::queued;
    next.not_before.reset();
    json::object data{{"priority", next.priority}, {"attempt", next.attempt}};
    return changed(std::move(next), EventType::queued, std::move(data), sequence, now);
}

Result<Change> request_cancel(const Job& job, std::uint64_t sequence, Time now) {
    if (job.state == State::running) {
        if (job.cancel_requested) {
            return not_allowed(job, "cancelled twice");
        }
        Job next = job;
        next.cancel_requested = true;
        return changed(std::move(next), EventType::cancelling, {}, sequence, now);
    }
    if (is_terminal(job.state)) {
        return not_allowed(job, "cancelled");
    }
    return changed(ended(job, State::cancelled, now), EventType::cancelled, {}, sequence, now);
}

Result<Change> confirm_cancel(const Job& job, std::uint64_t sequence, Time now) {
    if (job.state != State::running || !job.cancel_requested) {
        return not_allowed(job, "cancelled");
    }
    return changed(ended(job, State::cancelled, now), EventType::cancelled, {}, sequence, now);
}

Result<Change> expire(const Job& job, std::uint64_t sequence, Time now) {
    if (is_terminal(job.state)) {
        return not_allowed(job, "expired");
    }
    Failure failure;
    failure.code = Code::deadline_exceeded;
    failure.message = job.deadline ? "the deadline " + to_rfc3339(*job.deadline) +
                                         " passed before the job could finish"
                                   : "the deadline passed before the job could finish";
    Job next = ended(job, State::expired, now);
    json::object data{{"error", failure.to_json()}};
    next.failure = std::move(failure);
    return changed(std::move(next), EventType::expired, std::move(data), sequence, now);
}

Result<Change> revive(const Job& job, std::uint64_t sequence, Time now) {
    if (!is_terminal(job.state) || job.state == State::completed) {
        return not_allowed(job, "retried");
    }
    Job next = job;
    next.state = State::queued;
    next.finished_at.reset();
    next.started_at.reset();
    next.failure.reset();
    next.outputs.clear();  // what it had finished before it failed
    next.ui_outputs.clear();
    // Attempt numbers go on, because each names a prompt that a worker may still know.
    next.max_attempts = next.attempt + std::max(1, job.max_attempts);
    if (next.deadline && *next.deadline <= now) {
        next.deadline.reset();
    }
    json::object data{{"priority", next.priority}, {"attempt", next.attempt}};
    return changed(std::move(next), EventType::queued, std::move(data), sequence, now);
}

void keep_finished(Change& ended, std::vector<Output> outputs, json::object ui_outputs) {
    Job& job = ended.job;
    job.outputs = std::move(outputs);
    job.ui_outputs = std::move(ui_outputs);
    keep_as_asked(job, ended.event.at);
    if (!job.outputs.empty()) {
        ended.event.data["outputs"] = listed(job.outputs);
    }
}

void add_usage(Change& change, Usage used) {
    if (!change.job.usage) {
        change.job.usage.emplace();
    }
    change.job.usage->add(used);
    change.used = std::move(used);
}

}  // namespace comfyd::jobs
