#include "cluster/job_json.hpp"

#include <utility>

#include "cluster/members.hpp"

namespace comfyd::cluster {
namespace {

// What is at its default is left out: most jobs use little of what there is.
void put_text(json::object& into, const char* key, const std::string& text) {
    if (!text.empty()) {
        into[key] = text;
    }
}

void put_time(json::object& into, const char* key, const std::optional<Time>& time) {
    if (time) {
        into[key] = to_unix_ms(*time);
    }
}

void put_flag(json::object& into, const char* key, bool flag) {
    if (flag) {
        into[key] = true;
    }
}

void put_object(json::object& into, const char* key, const json::object& object) {
    if (!object.empty()) {
        into[key] = object;
    }
}

json::object object_or_none(const json::object& from, std::string_view key) {
    const json::object* found = object_in(from, key);
    return found != nullptr ? *found : json::object();
}

void read_results(const json::object& from, jobs::Job& job) {
    if (const json::array* outputs = list_in(from, "outputs")) {
        for (const json::value& output : *outputs) {
            if (output.is_object()) {
                job.outputs.push_back(jobs::Output::from_json(output.get_object()));
            }
        }
    }
    job.ui_outputs = object_or_none(from, "ui_outputs");
    if (const json::object* failure = object_in(from, "failure")) {
        job.failure = jobs::Failure::from_json(*failure);
    }
    if (const json::object* usage = object_in(from, "usage")) {
        job.usage = jobs::Usage::from_json(*usage);
    }
    job.reuse_key = text_in(from, "reuse_key");
    job.reused_from = id_in<JobTag>(from, "reused_from");
}

}  // namespace

json::object to_json(const jobs::Job& job) {
    json::object made{
        {"id", job.id.to_string()},
        {"tenant", job.tenant},
        {"dialect", job.dialect},
        {"state", to_string(job.state)},
        {"priority", job.priority},
        {"created_at", to_unix_ms(job.created_at)},
        {"timeout_ms", job.timeout.count()},
        {"attempt", job.attempt},
        {"max_attempts", job.max_attempts},
        {"sequence", job.sequence},
        {"revision", job.revision},
        {"node_count", job.node_count},
    };
    put_flag(made, "batch", job.batch);
    put_text(made, "fairness_key", job.fairness_key);
    put_time(made, "started_at", job.started_at);
    put_time(made, "finished_at", job.finished_at);
    put_time(made, "not_before", job.not_before);
    put_time(made, "deadline", job.deadline);
    put_text(made, "worker", job.worker);
    if (job.shared) {
        made["shared_prompt"] = job.shared->prompt.to_string();
        made["shared_place"] = job.shared->place;
    }
    put_flag(made, "cancel_requested", job.cancel_requested);
    put_text(made, "workflow_id", job.workflow_id);
    put_object(made, "metadata", job.metadata);
    put_object(made, "dialect_data", job.dialect_data);
    put_flag(made, "has_webhook", job.has_webhook);
    if (!job.outputs.empty()) {
        json::array outputs;
        for (const jobs::Output& output : job.outputs) {
            outputs.push_back(output.to_json());
        }
        made["outputs"] = std::move(outputs);
    }
    put_object(made, "ui_outputs", job.ui_outputs);
    if (job.failure) {
        made["failure"] = job.failure->to_json();
    }
    if (job.usage) {
        made["usage"] = job.usage->to_json();
    }
    put_text(made, "reuse_key", job.reuse_key);
    if (job.reused_from) {
        made["reused_from"] = job.reused_from->to_string();
    }
    return made;
}

Result<jobs::Job> job_from_json(const json::object& from) {
    const auto id = id_in<JobTag>(from, "id");
    const auto state = jobs::parse_state(text_in(from, "state"));
    if (!id || !state) {
        return fail(Code::protocol_error, "what a node says of a job has no id or state");
    }
    jobs::Job job;
    job.id = *id;
    job.state = *state;
    job.tenant = text_in(from, "tenant");
    job.dialect = text_in(from, "dialect");
    job.priority = small_in(from, "priority", job.priority);
    job.batch = flag_in(from, "batch");
    job.fairness_key = text_in(from, "fairness_key");
    job.created_at = time_in(from, "created_at").value_or(Time());
    job.started_at = time_in(from, "started_at");
    job.finished_at = time_in(from, "finished_at");
    job.not_before = time_in(from, "not_before");
    job.deadline = time_in(from, "deadline");
    job.timeout = Millis(number_in(from, "timeout_ms").value_or(job.timeout.count()));
    job.attempt = small_in(from, "attempt", 0);
    job.max_attempts = small_in(from, "max_attempts", job.max_attempts);
    job.worker = text_in(from, "worker");
    if (const auto prompt = id_in<PromptTag>(from, "shared_prompt")) {
        job.shared =
            jobs::BatchPlace{*prompt, static_cast<std::size_t>(count_in(from, "shared_place"))};
    }
    job.cancel_requested = flag_in(from, "cancel_requested");
    job.sequence = count_in(from, "sequence");
    job.revision = small_in(from, "revision", 0);
    job.workflow_id = text_in(from, "workflow_id");
    job.metadata = object_or_none(from, "metadata");
    job.dialect_data = object_or_none(from, "dialect_data");
    job.has_webhook = flag_in(from, "has_webhook");
    job.node_count = small_in(from, "node_count", 0);
    read_results(from, job);
    return job;
}

json::object to_json(const jobs::Event& event) {
    json::object made{
        {"job", event.job.to_string()},
        {"sequence", event.sequence},
        {"type", to_string(event.type)},
        {"at", to_unix_ms(event.at)},
        {"state", to_string(event.state)},
    };
    put_object(made, "data", event.data);
    put_text(made, "preview_type", event.preview_type);
    return made;
}

Result<jobs::Event> event_from_json(const json::object& from) {
    const auto job = id_in<JobTag>(from, "job");
    const auto type = jobs::parse_event_type(text_in(from, "type"));
    const auto state = jobs::parse_state(text_in(from, "state"));
    if (!job || !type || !state) {
        return fail(Code::protocol_error, "what a node says of an event has no job, type or state");
    }
    jobs::Event event;
    event.job = *job;
    event.sequence = count_in(from, "sequence");
    event.type = *type;
    event.at = time_in(from, "at").value_or(Time());
    event.state = *state;
    event.data = object_or_none(from, "data");
    event.preview_type = text_in(from, "preview_type");
    return event;
}

}  // namespace comfyd::cluster
