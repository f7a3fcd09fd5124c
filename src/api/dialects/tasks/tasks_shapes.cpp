// Decoding and encoding of the tasks API.
#include <algorithm>
#include <utility>

#include "api/dialects/or_null.hpp"
#include "api/dialects/tasks/tasks.hpp"
#include "api/workflow_source.hpp"
#include "net/http.hpp"
#include "workflow/rules/check.hpp"

namespace comfyd::api::tasks {
namespace {

using jobs::State;

constexpr std::size_t kWorkflowIdBytesMax = 255;
constexpr int kMaxRetriesDefault = 3;

std::string error_text(const jobs::Job& job) {
    if (job.state != State::failed && job.state != State::expired) {
        return {};
    }
    if (!job.failure || job.failure->message.empty()) {
        return job.state == State::expired ? "the deadline passed before the task could finish"
                                           : "the task failed for an unknown reason";
    }
    return job.failure->message;
}

// Values of parameters never look like nodes.
bool is_workflow(const json::object& payload) {
    return payload.contains("nodes") || &workflow::unwrap(payload) != &payload ||
           std::ranges::any_of(payload, [](const auto& member) {
               const json::object* node = member.value().if_object();
               return node != nullptr && (node->contains("class_type") || node->contains("inputs"));
           });
}

// What ComfyUI itself reported per node, and the files with links beside it.
json::value result_of(const jobs::Job& job, const execution::Links& links) {
    const bool has_result =
        job.state == State::completed || (is_terminal(job.state) && !job.outputs.empty());
    if (!has_result) {
        return nullptr;
    }
    json::object result = job.ui_outputs;
    for (auto& member : execution::encode_result(job.outputs, links)) {
        result[member.key()] = std::move(member.value());
    }
    return result;
}

}  // namespace

Result<Decoded> decode_options(const json::object& body) {
    auto workflow_id = json::find_string(body, "workflow_id");
    if (!workflow_id) {
        return fail(std::move(workflow_id.error()));
    }
    if (workflow_id->value_or("").size() > kWorkflowIdBytesMax) {
        return fail(
            Code::invalid_argument,
            "'workflow_id' may have at most " + std::to_string(kWorkflowIdBytesMax) + " bytes",
            {{"field", "workflow_id"}}
        );
    }
    auto decoded = execution::begin_decoding(body, "tasks");
    if (!decoded) {
        return decoded;
    }
    jobs::Spec& spec = decoded->submission.spec;
    spec.workflow_id = workflow_id->value_or("");
    spec.max_attempts = kMaxRetriesDefault + 1;
    return decoded;
}

Result<Decoded> decode_request(json::object body) {
    auto decoded = decode_options(body);
    if (!decoded) {
        return decoded;
    }
    if (auto taken = take_workflow(body, "payload", "payload", decoded->submission); !taken) {
        return fail(std::move(taken.error()));
    }
    return decoded;
}

std::optional<named::Choice> named_workflow(const json::object& body) {
    const json::value* id = json::find(body, "workflow_id");
    const json::value* payload = json::find(body, "payload");
    if (id == nullptr || !id->is_string() || (payload != nullptr && !payload->is_object()) ||
        (payload != nullptr && is_workflow(payload->get_object()))) {
        return std::nullopt;
    }
    return named::parse_reference(id->get_string());
}

std::string_view status_of(State state) {
    switch (state) {
        case State::queued:
        case State::retry_waiting:
            return "pending";
        case State::running:
            return "running";
        case State::completed:
            return "completed";
        case State::failed:
        case State::expired:
            return "failed";
        case State::cancelled:
            return "cancelled";
    }
    return "failed";
}

std::vector<State> states_of(std::string_view status) {
    return execution::states_with(status, status_of);
}

json::object encode_task(const jobs::Job& job, const execution::Links& links) {
    json::object body;
    body["id"] = job.id.to_string();
    body["workflow_id"] = job.workflow_id;
    body["priority"] = job.priority;
    body["status"] = status_of(job.state);
    body["worker_id"] = job.worker;
    body["created_at"] = to_rfc3339(job.created_at);
    body["started_at"] = time_or_null(job.started_at);
    body["completed_at"] = time_or_null(job.finished_at);
    body["result"] = result_of(job, links);
    body["error"] = error_text(job);
    body["retry_count"] = std::max(0, job.attempt - 1);
    body["max_retries"] = std::max(0, job.max_attempts - 1);
    body["metadata"] = job.metadata;
    if (job.reused_from) {
        body["outputs_reused"] = true;
    }
    for (const char* kept : {"workflow_version", "warnings"}) {
        if (const json::value* found = json::find(job.dialect_data, kept)) {
            body[kept] = *found;
        }
    }
    return body;
}

json::object encode_message(json::object message) {
    json::object body;
    for (auto& member : message) {
        if (member.key() == "execution_id") {
            body["task_id"] = std::move(member.value());
        } else if (member.key() == "status" && member.value() == "queued") {
            body["status"] = "pending";
        } else if (member.key() == "status" && member.value() == "processing") {
            body["status"] = "running";
        } else if (member.key() == "error" && member.value().is_object()) {
            const json::value* text = json::find(member.value().get_object(), "message");
            body["error"] = text != nullptr ? *text : json::value("");
            body["error_details"] = std::move(member.value());
        } else {
            body[member.key()] = std::move(member.value());
        }
    }
    return body;
}

json::object encode_error(const Error& error) {
    json::object body{{"error", error.message}, {"code", to_string(error.code)}};
    if (!error.details.empty()) {
        body["details"] = error.details;
    }
    return body;
}

std::string_view worker_status(const jobs::WorkerInfo& worker) {
    switch (worker.status) {
        case jobs::WorkerStatus::draining:
            return worker.current_job ? "running" : "stopped";
        case jobs::WorkerStatus::down:
            return "error";
        default:
            return to_string(worker.status);
    }
}

json::object encode_worker(const jobs::WorkerInfo& worker, bool shows_job) {
    const auto url = net::Url::parse(worker.url);
    const std::string_view status = worker_status(worker);
    json::object body;
    body["id"] = worker.id;
    body["pod_name"] = worker.machine.empty() ? worker.id : worker.machine;
    body["status"] = status;
    body["endpoint"] = worker.url;
    body["port"] = url ? url->port : 0;
    body["current_task_id"] =
        shows_job && worker.current_job ? worker.current_job->to_string() : std::string();
    body["created_at"] = to_rfc3339(worker.created_at);
    body["last_active_at"] = to_rfc3339(worker.last_active_at);
    body["health_status"] = status == "idle" || status == "running";
    body["version"] = worker.version;
    body["pool"] = worker.pool;
    body["region"] = worker.region;
    body["gpu"] = worker.gpu;
    body["vram_total"] = worker.vram_total;
    body["vram_free"] = worker.vram_free;
    body["completed_tasks"] = worker.completed;
    body["failed_tasks"] = worker.failed;
    body["last_error"] = worker.last_error;
    return body;
}

json::object encode_worker_metrics(const std::vector<jobs::WorkerInfo>& workers) {
    const auto count = [&workers](std::string_view status) {
        return std::count_if(
            workers.begin(),
            workers.end(),
            [status](const jobs::WorkerInfo& worker) { return worker_status(worker) == status; }
        );
    };
    return {
        {"total_workers", workers.size()},
        {"idle_workers", count("idle")},
        {"running_workers", count("running")},
        {"starting_workers", count("starting")},
        {"failed_workers", count("error")},
        {"stopped_workers", count("stopped")},
    };
}

json::object encode_queue_metrics(const jobs::StateCounts& counts) {
    return {
        {"pending_tasks", counts.of(State::queued) + counts.of(State::retry_waiting)},
        {"running_tasks", counts.of(State::running)},
        {"completed_tasks", counts.of(State::completed)},
        {"failed_tasks", counts.of(State::failed) + counts.of(State::expired)},
        {"cancelled_tasks", counts.of(State::cancelled)},
    };
}

}  // namespace comfyd::api::tasks
