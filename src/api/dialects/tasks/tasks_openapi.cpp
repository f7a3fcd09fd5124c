// What /openapi.json says about the tasks API.
#include <string>

#include "api/dialects/literal.hpp"
#include "api/dialects/tasks/tasks.hpp"

namespace comfyd::api::tasks {
namespace {

json::object operation(std::string_view tag, std::string_view text) {
    json::object operation = literal(text);
    operation["tags"] = json::array{tag};
    operation["responses"].get_object()["default"] = literal(R"json({
        "description": "What went wrong, and what to do.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/TaskError"}}}
    })json");
    return operation;
}

// An operation that answers 200 with one schema.
json::object answer(
    std::string_view tag, std::string_view id, std::string_view summary, std::string_view schema
) {
    json::object made =
        operation(tag, R"json({"responses": {"200": {"description": "Success."}}})json");
    made["operationId"] = id;
    made["summary"] = summary;
    json::object& success = made["responses"].get_object()["200"].get_object();
    success["content"] = json::object{
        {"application/json",
         json::object{
             {"schema", json::object{{"$ref", "#/components/schemas/" + std::string(schema)}}}
         }},
    };
    return made;
}

}  // namespace

json::object operation_submit() {
    return operation("tasks", R"json({
        "operationId": "submitTask",
        "summary": "Submit a task",
        "parameters": [
            {"name": "Idempotency-Key", "in": "header", "schema": {"type": "string", "maxLength": 255}},
            {"name": "X-Webhook-URL", "in": "header", "schema": {"type": "string", "format": "uri"}}
        ],
        "requestBody": {
            "required": true,
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/TaskRequest"}}}
        },
        "responses": {
            "201": {
                "description": "Stored; it waits for a worker.",
                "headers": {"Location": {"schema": {"type": "string"}}},
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Task"}}}
            },
            "400": {
                "description": "The request or its payload is not valid.",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/TaskError"}}}
            }
        }
    })json");
}

json::object operation_get() {
    return answer(
        "tasks", "getTask", "A task with its payload, and its result when completed", "Task"
    );
}

json::object operation_list() {
    json::object made =
        answer("tasks", "listTasks", "List tasks, newest first, without payload", "TaskList");
    made["parameters"] = json::parse(R"json([
        {"name": "status", "in": "query", "description": "One status, or several with commas.",
         "schema": {"type": "string"}, "example": "pending,running"},
        {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 50}},
        {"name": "cursor", "in": "query", "description": "next_cursor of the page before.", "schema": {"type": "string"}}
    ])json")
                             .value();
    return made;
}

json::object operation_cancel() {
    json::object made = answer("tasks", "cancelTask", "Cancel a task", "Task");
    made["description"] =
        "A waiting task is cancelled at once; a running one is interrupted on its worker. The "
        "record stays readable.";
    return made;
}

json::object operation_delete() {
    json::object made = answer("tasks", "deleteTask", "Delete a task, or cancel it", "Task");
    made["description"] =
        "A task that has ended is removed with its outputs and answered as it was; one whose "
        "callback is still to be delivered is removed after its time. A task that has not ended is "
        "cancelled and stays readable.";
    return made;
}

json::object operation_events() {
    return operation("tasks", R"json({
        "operationId": "streamTaskEvents",
        "summary": "Events of a task as Server-Sent Events",
        "description": "First the task as it is now, then one TaskEvent per event with its sequence as id, then 'event: close'. Last-Event-ID resumes.",
        "parameters": [
            {"name": "Last-Event-ID", "in": "header", "schema": {"type": "integer", "minimum": 0}}
        ],
        "responses": {
            "200": {
                "description": "The stream.",
                "content": {"text/event-stream": {"schema": {"$ref": "#/components/schemas/TaskEvent"}}}
            }
        }
    })json");
}

json::object operation_workers() {
    return answer("workers", "listWorkers", "List workers", "WorkerList");
}
json::object operation_worker() {
    return answer("workers", "getWorker", "One worker", "Worker");
}
json::object operation_worker_metrics() {
    return answer(
        "workers", "getWorkerMetrics", "How many workers are in which state", "WorkerMetrics"
    );
}
json::object operation_queue_metrics() {
    return answer(
        "tasks",
        "getQueueMetrics",
        "How many tasks of the caller are in which state",
        "QueueMetrics"
    );
}
json::object operation_health() {
    json::object made =
        answer("health", "getServiceHealth", "Healthy while a worker is up", "ServiceHealth");
    made["responses"].get_object()["503"] = literal(R"json({
        "description": "Unhealthy; error says why.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ServiceHealth"}}}
    })json");
    return made;
}
json::object operation_ready() {
    json::object made = answer(
        "health",
        "getServiceReady",
        "Ready while a worker takes jobs; jobs are queued all the same (see /readyz)",
        "ServiceHealth"
    );
    made["responses"].get_object()["503"] = literal(R"json({
        "description": "Not ready; error says why.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/TaskError"}}}
    })json");
    return made;
}

json::object schemas() {
    return literal(R"json({
        "TaskRequest": {
            "type": "object",
            "properties": {
                "workflow_id": {"type": "string", "maxLength": 255,
                    "description": "A name for the workflow. Where the payload is no workflow: the stored one that is to run, also as name@version or name@label."},
                "priority": {"type": "integer", "minimum": 1, "maximum": 10, "default": 5},
                "class": {"type": "string", "enum": ["batch"], "description": "batch: best effort, after everything that is not. The other classes follow from priority."},
                "fairness_key": {"type": "string", "maxLength": 128, "description": "One of your own users or projects: they share your part of the GPUs evenly. Also as header X-Comfyd-Fairness-Key."},
                "pool": {"type": "string", "description": "Only workers of this pool may run it; without it the tenant's pool, or any worker. Also as header X-Comfyd-Pool."},
                "region": {"type": "string", "maxLength": 64, "description": "Only workers that stand there may run it. Also as header X-Comfyd-Region."},
                "gpu_requirements": {"type": "object", "description": "The GPU that it must run on.", "properties": {"gpu_type": {"type": "string", "maxLength": 64, "description": "A kind, such as RTX 4090."}, "memory_gb": {"type": "number", "minimum": 0, "maximum": 4096, "description": "At least; workers that share a GPU keep it for the job."}}},
                "gpu_memory_fraction": {"type": "number", "minimum": 0, "maximum": 1, "description": "Of its GPU's memory, what the job may take beside others."},
                "reuse": {"type": "boolean", "description": "Answer with the outputs of an earlier job of yours that did the same, where there is one, and share one run with those that do the same now. Default: as set for the tenant."},
                "payload": {"oneOf": [{"type": "object", "additionalProperties": true}, {"type": "string"}],
                    "description": "A workflow in ComfyUI's API format: node id -> {class_type, inputs}; as text where a picture that ComfyUI saved, or a JSON file, is to be had (https://…, data:<type>;base64,…, asset:<id>, blake3:<hash>); or the values of a named workflow's parameters, which may be left out. Where a loader takes a file, it may be an http(s) address, data:<type>;base64,<content>, asset:<id> or blake3:<hash>; addresses are fetched before the answer."},
                "max_retries": {"type": "integer", "minimum": 0, "maximum": 9, "default": 3},
                "timeout": {"type": "number", "minimum": 1, "maximum": 604800, "default": 1800,
                    "description": "Seconds that one attempt may run."},
                "deadline": {"type": "string", "format": "date-time"},
                "metadata": {"type": "object", "additionalProperties": true},
                "callback_url": {"type": "string", "format": "uri"},
                "webhook_url": {"type": "string", "format": "uri"},
                "webhook_config": {"$ref": "#/components/schemas/ExecutionWebhookConfig"}
            },
            "example": {
                "workflow_id": "red_square",
                "priority": 5,
                "payload": {
                    "1": {"class_type": "EmptyImage", "inputs": {"width": 64, "height": 64, "batch_size": 1, "color": 16711680}},
                    "2": {"class_type": "SaveImage", "inputs": {"images": ["1", 0], "filename_prefix": "red"}}
                }
            }
        },
        "Task": {
            "type": "object",
            "required": ["id", "workflow_id", "status", "created_at"],
            "properties": {
                "id": {"type": "string", "format": "uuid"},
                "workflow_id": {"type": "string"},
                "priority": {"type": "integer"},
                "status": {"type": "string", "enum": ["pending", "running", "completed", "failed", "cancelled"]},
                "payload": {"type": "object", "additionalProperties": true, "description": "Only when one task is asked for."},
                "worker_id": {"type": "string", "description": "Empty before the first attempt."},
                "created_at": {"type": "string", "format": "date-time"},
                "started_at": {"type": "string", "format": "date-time", "nullable": true},
                "completed_at": {"type": "string", "format": "date-time", "nullable": true},
                "result": {"type": "object", "nullable": true, "additionalProperties": true,
                    "description": "What ComfyUI reported per node id, and all files under outputs and images.",
                    "properties": {
                        "outputs": {"type": "array", "items": {"$ref": "#/components/schemas/ExecutionOutput"}},
                        "images": {"type": "array", "items": {"type": "string", "format": "uri"}}
                    }},
                "error": {"type": "string", "description": "Empty unless failed."},
                "retry_count": {"type": "integer"},
                "max_retries": {"type": "integer"},
                "outputs_reused": {"type": "boolean", "description": "True where the result is that of another task; absent otherwise."},
                "metadata": {"type": "object", "additionalProperties": true}
            }
        },
        "TaskList": {
            "type": "object",
            "properties": {
                "tasks": {"type": "array", "items": {"$ref": "#/components/schemas/Task"}},
                "count": {"type": "integer"},
                "next_cursor": {"type": "string", "nullable": true}
            }
        },
        "TaskEvent": {
            "type": "object",
            "required": ["type", "task_id", "sequence", "timestamp", "status"],
            "properties": {
                "type": {"type": "string", "enum": ["status_change", "progress", "output", "completed", "error"]},
                "task_id": {"type": "string", "format": "uuid"},
                "sequence": {"type": "integer"},
                "timestamp": {"type": "string", "format": "date-time"},
                "status": {"type": "string", "enum": ["pending", "running", "completed", "failed", "cancelled"]},
                "message": {"type": "string"},
                "progress": {"type": "number", "minimum": 0, "maximum": 1},
                "output": {"$ref": "#/components/schemas/ExecutionOutput"},
                "result": {"$ref": "#/components/schemas/ExecutionResult"},
                "error": {"type": "string"},
                "error_details": {"$ref": "#/components/schemas/ExecutionError"}
            }
        },
        "TaskError": {
            "type": "object",
            "required": ["error"],
            "properties": {
                "error": {"type": "string"},
                "code": {"type": "string"},
                "details": {"type": "object", "additionalProperties": true}
            }
        },
        "Worker": {
            "type": "object",
            "properties": {
                "id": {"type": "string"},
                "pod_name": {"type": "string", "description": "The name of its machine, where comfyd started it; else its id."},
                "status": {"type": "string", "enum": ["pending", "starting", "running", "idle", "stopped", "error"]},
                "endpoint": {"type": "string"},
                "port": {"type": "integer", "description": "0 for the worker inside the process."},
                "current_task_id": {"type": "string", "description": "Empty when idle or when the task is another tenant's."},
                "created_at": {"type": "string", "format": "date-time"},
                "last_active_at": {"type": "string", "format": "date-time"},
                "health_status": {"type": "boolean"},
                "version": {"type": "string"},
                "pool": {"type": "string", "description": "The pool that it belongs to."},
                "region": {"type": "string", "description": "Where it stands; empty: nobody said."},
                "gpu": {"type": "string"},
                "vram_total": {"type": "integer"},
                "vram_free": {"type": "integer"},
                "completed_tasks": {"type": "integer"},
                "failed_tasks": {"type": "integer"},
                "last_error": {"type": "string"}
            }
        },
        "WorkerList": {
            "type": "object",
            "properties": {
                "workers": {"type": "array", "items": {"$ref": "#/components/schemas/Worker"}},
                "count": {"type": "integer"}
            }
        },
        "WorkerMetrics": {
            "type": "object",
            "properties": {
                "total_workers": {"type": "integer"},
                "idle_workers": {"type": "integer"},
                "running_workers": {"type": "integer"},
                "starting_workers": {"type": "integer"},
                "failed_workers": {"type": "integer"},
                "stopped_workers": {"type": "integer"}
            }
        },
        "QueueMetrics": {
            "type": "object",
            "properties": {
                "pending_tasks": {"type": "integer"},
                "running_tasks": {"type": "integer"},
                "completed_tasks": {"type": "integer"},
                "failed_tasks": {"type": "integer"},
                "cancelled_tasks": {"type": "integer"}
            }
        },
        "ServiceHealth": {
            "type": "object",
            "required": ["status"],
            "properties": {
                "status": {"type": "string", "enum": ["healthy", "unhealthy", "ready"]},
                "error": {"type": "string", "description": "Why it is unhealthy."},
                "version": {"type": "string"},
                "comfyui_server": {"type": "string", "enum": ["connected", "disconnected"],
                    "description": "Whether any worker can be reached."},
                "queue_running": {"type": "integer"},
                "queue_pending": {"type": "integer"},
                "timestamp": {"type": "number", "description": "Seconds since 1970."}
            }
        }
    })json");
}

}  // namespace comfyd::api::tasks
