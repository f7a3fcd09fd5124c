// What /openapi.json says about the workflows API.
#include <string>
#include <utility>

#include "api/dialects/literal.hpp"
#include "api/dialects/openapi_parts.hpp"
#include "api/dialects/workflows/workflows.hpp"

namespace comfyd::api::workflows {
namespace {

json::object operation(const Version& version, std::string_view id, std::string_view text) {
    json::object made = openapi::operation(
        std::string(id) + (version.deprecated ? "V1" : "V2"),
        version.deprecated ? "workflows v1" : "workflows v2",
        text
    );
    if (version.deprecated) {
        made["deprecated"] = true;
    }
    return made;
}

constexpr std::string_view kExecution = R"json({
    "responses": {
        "200": ["The execution as it is now.", "ExecutionResponse"]
    }
})json";

json::object execution_operation(
    const Version& version, std::string_view id, std::string_view summary
) {
    json::object made = operation(version, id, kExecution);
    made["summary"] = summary;
    return made;
}

}  // namespace

json::object operation_execute(const Version& version) {
    return operation(version, "executeWorkflow", R"json({
        "summary": "Submit a workflow",
        "description": "Answers as soon as the execution is stored safely. With an Idempotency-Key the same request can be sent again: it answers with the same execution and the header Idempotency-Replayed. The same key with other content is refused. The body may also be a picture that ComfyUI saved, or a form with such a file; with a picture alone the options (priority, timeout, deadline, max_retries, callback_url, webhook_url, pool, auto_fix) stand in the query.",
        "parameters": ["Idempotency-Key", "X-Webhook-URL", "X-Comfyd-Pool", "X-Comfyd-Region", "wait"],
        "requestBody": {"workflow": "ExecutionRequest"},
        "responses": {
            "200": ["Ended, while the request waited.", "ExecutionResponse"],
            "202": {
                "description": "Accepted.",
                "headers": {
                    "Location": {"schema": {"type": "string"}},
                    "Idempotency-Replayed": {"schema": {"type": "string", "enum": ["true"]}},
                    "X-API-Version": {"schema": {"type": "string"}}
                },
                "schema": "ExecutionResponse"
            },
            "400": ["The request or its workflow is not valid; details names every finding."],
            "422": ["The Idempotency-Key was used for another request."],
            "429": ["The queue is full. Retry-After says when to try again."]
        }
    })json");
}

json::object operation_get(const Version& version) {
    return execution_operation(
        version, "getExecution", "Status, progress and result of an execution"
    );
}

json::object operation_list(const Version& version) {
    return operation(version, "listExecutions", R"json({
        "summary": "List executions, newest first",
        "parameters": [
            {"name": "status", "in": "query", "description": "One status, or several with commas.",
             "schema": {"type": "string"}, "example": "queued,processing"},
            {"name": "workflow_id", "in": "query", "description": "Those of this named workflow.", "schema": {"type": "string"}},
            "limit",
            "cursor"
        ],
        "responses": {
            "200": ["A page of executions.", "ExecutionList"]
        }
    })json");
}

json::object operation_cancel(const Version& version) {
    json::object made = execution_operation(version, "cancelExecution", "Cancel an execution");
    made["description"] =
        "A waiting execution is cancelled at once; a running one is interrupted on its worker. "
        "Cancelling an "
        "execution that has ended changes nothing. The record stays readable.";
    return made;
}

json::object operation_delete(const Version& version) {
    json::object made =
        execution_operation(version, "deleteExecution", "Delete an execution, or cancel it");
    made["description"] =
        "An execution that has ended is removed with its outputs and answered as it was; one whose "
        "webhook is still to be delivered is removed after its time. An execution that has not "
        "ended is cancelled and stays readable.";
    return made;
}

json::object operation_retry(const Version& version) {
    return operation(version, "retryExecution", R"json({
        "summary": "Run a failed or cancelled execution again",
        "responses": {
            "202": ["The execution as it is now.", "ExecutionResponse"],
            "409": ["The execution has not ended, or it has completed."]
        }
    })json");
}

json::object operation_metrics(const Version& version) {
    return operation(version, "getExecutionMetrics", R"json({
        "summary": "Durations, resources, counts and cost of an execution",
        "description": "What was not measured is null. Times and costs of failed attempts count; they stand there once the execution has ended.",
        "responses": {
            "200": ["The metrics.", "ExecutionMetrics"]
        }
    })json");
}

json::object operation_explain(const Version& version) {
    return operation(version, "explainExecution", R"json({
        "summary": "Why an execution waits",
        "description": "Its place in the queue and what is ahead, which workers could run it and why the others could not, when it is expected to start, and what would change that. While it does not wait, only `reasons`.",
        "responses": {
            "200": {
                "description": "The explanation.",
                "content": {"application/json": {"schema": {
                    "type": "object",
                    "required": ["execution_id", "state", "reasons", "advice"],
                    "properties": {
                        "execution_id": {"type": "string"},
                        "state": {"type": "string"},
                        "priority": {"type": "integer", "description": "As asked for."},
                        "effective_priority": {"type": "integer", "minimum": 1, "maximum": 10, "description": "By which it waits."},
                        "priority_score": {"type": "number", "description": "The priority asked for times all factors, before it is cut to a whole number from 1 to 10."},
                        "priority_factors": {"type": "array", "description": "Only where priorities are weighed (scheduler.classify).", "items": {
                            "type": "object",
                            "properties": {
                                "name": {"type": "string", "enum": ["tier", "execution_time_estimate", "resource_requirements", "cache_availability", "user_quota_remaining"]},
                                "multiplier": {"type": "number"},
                                "weight": {"type": "number", "minimum": -1, "maximum": 1, "description": "A fifth of it is what the factor changes. Of the tier: 0."},
                                "reason": {"type": "string"}
                            }
                        }},
                        "fairness_key": {"type": "string"},
                        "queue_position": {"type": "integer", "description": "1 is next."},
                        "class": {"type": "string", "enum": ["high", "medium", "low", "batch"]},
                        "waited_seconds": {"type": "number"},
                        "wait_target_seconds": {"type": "number"},
                        "expected_wait_seconds": {"type": "number", "nullable": true, "description": "null: no worker can run it now; reasons say why."},
                        "expected_load_seconds": {"type": "number"},
                        "expected_run_seconds": {"type": "number"},
                        "ahead": {"type": "object"},
                        "running": {"type": "object"},
                        "tenant_at_limit": {"type": "boolean"},
                        "workers_capable": {"type": "integer"},
                        "workers": {"type": "array", "items": {"type": "object"}},
                        "waits_for_worker": {"type": "string", "description": "A busy worker that has its models, where waiting for it is quicker than loading them elsewhere."},
                        "reasons": {"type": "array", "items": {"type": "string"}},
                        "advice": {"type": "array", "items": {"type": "string"}}
                    }
                }}}
            }
        }
    })json");
}

json::object operation_events(const Version& version) {
    return operation(version, "streamExecutionEvents", R"json({
        "summary": "Events of an execution as Server-Sent Events",
        "description": "First the execution as it is now, then one message per event (ExecutionEvent) with its sequence as id, then 'event: close'. A client that comes back with Last-Event-ID gets what it has missed and no state.",
        "parameters": [
            {"name": "Last-Event-ID", "in": "header", "schema": {"type": "integer", "minimum": 0}}
        ],
        "responses": {
            "200": {
                "description": "The stream.",
                "content": {"text/event-stream": {"schema": {"$ref": "#/components/schemas/ExecutionEvent"}}}
            }
        }
    })json");
}

json::object operation_socket(const Version& version) {
    return operation(version, "openExecutionSocket", R"json({
        "summary": "Events of an execution over a WebSocket",
        "description": "First {\"type\":\"state\"} with the execution, then ExecutionEvent messages; the connection closes with 1000 after the last one. {\"type\":\"cancel\"} cancels the execution, {\"type\":\"ping\"} is answered with {\"type\":\"pong\"}.",
        "parameters": [
            {"name": "since", "in": "query", "description": "Resume after this sequence, without the state.",
             "schema": {"type": "integer", "minimum": 0}},
            {"name": "previews", "in": "query", "description": "1: preview pictures as binary frames (big-endian 1, then 1 for JPEG or 2 for PNG, then the bytes).",
             "schema": {"type": "string", "enum": ["0", "1"]}}
        ],
        "responses": {
            "101": {"description": "The WebSocket is open."},
            "426": ["The request is no WebSocket handshake."]
        }
    })json");
}

json::object schemas() {
    json::object made = literal(R"json({
        "ExecutionRequest": {
            "type": "object",
            "required": ["workflow"],
            "properties": {
                "input_params": {"type": "object", "additionalProperties": true,
                    "description": "Inputs to set: by \"node.input\", where node is an id or a title; by the title of a node with one value; by a parameter that the workflow declares; or by prompt, negative_prompt, seed (\"random\" chooses one), steps, cfg, denoise, sampler, scheduler, width, height, batch_size, image, checkpoint or lora, which are found from the sampler. A name that means nothing is refused with those that do.",
                    "example": {"prompt": "a lighthouse at dawn", "3.seed": 7}}
            },
            "example": {
                "workflow": {
                    "1": {"class_type": "EmptyImage", "inputs": {"width": 64, "height": 64, "batch_size": 1, "color": 16711680}},
                    "2": {"class_type": "SaveImage", "inputs": {"images": ["1", 0], "filename_prefix": "red"}}
                }
            }
        },
        "ExecutionWebhookConfig": {
            "type": "object",
            "required": ["url"],
            "properties": {
                "url": {"type": "string", "format": "uri"},
                "secret": {"type": "string", "maxLength": 256, "description": "Signs every delivery."},
                "headers": {"type": "object", "additionalProperties": {"type": "string"}},
                "events": {"type": "array", "items": {"type": "string", "enum": ["execution.queued",
                    "execution.started", "execution.progress", "execution.completed", "execution.failed",
                    "execution.cancelled", "execution.warning"]}},
                "max_retries": {"type": "integer", "minimum": 0, "maximum": 100,
                    "description": "Attempts after the first; without it repeated for a day."},
                "retry_delay": {"type": "number", "minimum": 0.001, "maximum": 3600, "default": 1,
                    "description": "Seconds before the first retry; doubled for each further one."},
                "timeout": {"type": "number", "minimum": 0.1, "maximum": 300, "default": 15,
                    "description": "Seconds for one attempt."},
                "verify_ssl": {"type": "boolean", "default": true,
                    "description": "False only where the operator allows it."},
                "method": {"type": "string", "enum": ["POST", "PUT", "PATCH"], "default": "POST"}
            }
        },
        "ExecutionOutput": {
            "type": "object",
            "properties": {
                "node_id": {"type": "string"},
                "name": {"type": "string"},
                "type": {"type": "string", "enum": ["image", "video", "audio", "text", "file", "latent"]},
                "content_type": {"type": "string"},
                "size_bytes": {"type": "integer"},
                "asset_id": {"type": "string", "format": "uuid"},
                "hash": {"type": "string"},
                "url": {"type": "string", "format": "uri"},
                "url_expires_at": {"type": "string", "format": "date-time"},
                "media": {"$ref": "#/components/schemas/OutputMedia"},
                "thumbnails": {"type": "array", "items": {"$ref": "#/components/schemas/OutputVariant"}},
                "variants": {"type": "array", "items": {"$ref": "#/components/schemas/OutputVariant"}}
            }
        },
        "ExecutionResult": {
            "type": "object",
            "properties": {
                "outputs": {"type": "array", "items": {"$ref": "#/components/schemas/ExecutionOutput"}},
                "images": {"type": "array", "items": {"type": "string", "format": "uri"}}
            }
        },
        "ExecutionError": {
            "type": "object",
            "required": ["category", "code", "message"],
            "properties": {
                "category": {"type": "string", "enum": ["validation_error", "resource_error", "execution_error",
                    "timeout_error", "system_error"]},
                "code": {"type": "string"},
                "message": {"type": "string"},
                "details": {"type": "object", "additionalProperties": true},
                "retry_after": {"type": "integer", "nullable": true, "description": "Seconds."},
                "timestamp": {"type": "string", "format": "date-time"},
                "type": {"type": "string", "description": "The code, for errors of a run."},
                "node_id": {"type": "string", "nullable": true},
                "class_type": {"type": "string", "nullable": true},
                "traceback": {"type": "string", "nullable": true}
            }
        },
        "ExecutionErrorResponse": {
            "type": "object",
            "required": ["error"],
            "properties": {"error": {"$ref": "#/components/schemas/ExecutionError"}}
        },
        "ExecutionResponse": {
            "type": "object",
            "required": ["execution_id", "status", "submitted_at"],
            "properties": {
                "execution_id": {"type": "string", "format": "uuid"},
                "status": {"type": "string", "enum": ["queued", "processing", "completed", "failed", "cancelled"]},
                "submitted_at": {"type": "string", "format": "date-time"},
                "started_at": {"type": "string", "format": "date-time", "nullable": true},
                "completed_at": {"type": "string", "format": "date-time", "nullable": true},
                "progress": {"type": "number", "minimum": 0, "maximum": 1, "nullable": true},
                "estimated_remaining": {"type": "integer", "nullable": true, "description": "Seconds."},
                "estimate_confidence": {"type": "number", "minimum": 0, "maximum": 1,
                    "description": "Of estimated_remaining, while the workflow runs."},
                "result": {"nullable": true, "allOf": [{"$ref": "#/components/schemas/ExecutionResult"}]},
                "error": {"nullable": true, "allOf": [{"$ref": "#/components/schemas/ExecutionError"}]},
                "webhook_delivered": {"type": "boolean"},
                "queue_position": {"type": "integer", "nullable": true, "description": "1 is next."},
                "priority": {"type": "integer"},
                "metadata": {"type": "object", "additionalProperties": true},
                "retry_count": {"type": "integer"},
                "worker": {"type": "string", "nullable": true},
                "cancel_requested": {"type": "boolean"},
                "outputs_reused": {"type": "boolean", "description": "True where the outputs are those of another job; absent otherwise."},
                "reused_from": {"type": "string", "format": "uuid", "description": "That job."},
                "not_reusable": {"type": "object", "additionalProperties": true,
                    "description": "Where 'reuse' was asked for and cannot be: node_id, class_type and reason."},
                "unbound_inputs": {"type": "array", "items": {"type": "string"},
                    "description": "Names of inputs that had no effect: none, since such names are refused."},
                "chosen_parameters": {"type": "object", "additionalProperties": true,
                    "description": "Values that were chosen here, such as the seed where \"random\" was asked for."},
                "warnings": {"type": "array", "items": {"oneOf": [{"$ref": "#/components/schemas/WorkflowFix"}, {"type": "string"}]},
                    "description": "What auto_fix put right, and members of the request that have no effect (NOT_DONE)."},
                "workflow_id": {"type": "string", "description": "The named workflow that ran, where one did."},
                "workflow_version": {"type": "integer"}
            }
        },
        "ExecutionList": {
            "type": "object",
            "properties": {
                "executions": {"type": "array", "items": {"$ref": "#/components/schemas/ExecutionResponse"}},
                "count": {"type": "integer"},
                "next_cursor": {"type": "string", "nullable": true}
            }
        },
        "ExecutionMetrics": {
            "type": "object",
            "properties": {
                "execution_id": {"type": "string", "format": "uuid"},
                "timing": {"type": "object", "description": "Seconds.", "properties": {
                    "queue_time": {"type": "number", "nullable": true},
                    "model_load_time": {"type": "number", "nullable": true, "description": "Of the time on the worker, until models were where they are needed."},
                    "inference_time": {"type": "number", "nullable": true, "description": "The rest of the time on the worker."},
                    "total_time": {"type": "number", "nullable": true}}},
                "resources": {"type": "object", "properties": {
                    "gpu_memory_peak_gb": {"type": "number", "nullable": true, "description": "GiB in use on the worker's GPU, the most that was seen."},
                    "gpu_utilization_percent": {"type": "number", "nullable": true},
                    "cpu_usage_percent": {"type": "number", "nullable": true},
                    "system_memory_gb": {"type": "number", "nullable": true, "description": "GiB in use on the machine, the most that was seen."}}},
                "workflow": {"type": "object", "properties": {
                    "node_count": {"type": "integer"},
                    "image_count": {"type": "integer", "nullable": true},
                    "model_count": {"type": "integer", "nullable": true}}},
                "quality": {"type": "object", "properties": {
                    "success": {"type": "boolean", "nullable": true},
                    "error_category": {"type": "string", "nullable": true},
                    "retry_count": {"type": "integer"}}},
                "cost": {"type": "object", "properties": {
                    "estimate_usd": {"type": "number", "nullable": true, "description": "GPU-seconds times the worker's price, times 1 + GiB of GPU memory / 24 * 0.5."}}}
            }
        },
        "ExecutionEvent": {
            "type": "object",
            "required": ["type", "execution_id", "sequence", "timestamp", "status"],
            "properties": {
                "type": {"type": "string", "enum": ["status_change", "progress", "output", "completed", "error"]},
                "execution_id": {"type": "string", "format": "uuid"},
                "sequence": {"type": "integer", "description": "Rises strictly; numbers may be left out."},
                "timestamp": {"type": "string", "format": "date-time"},
                "status": {"type": "string", "enum": ["queued", "processing", "completed", "failed", "cancelled"]},
                "message": {"type": "string"},
                "progress": {"type": "number", "minimum": 0, "maximum": 1},
                "nodes_done": {"type": "integer"},
                "nodes_total": {"type": "integer"},
                "current_node": {"type": "string", "nullable": true},
                "current_node_class": {"type": "string", "nullable": true},
                "step": {"type": "integer", "nullable": true},
                "steps": {"type": "integer", "nullable": true},
                "output": {"$ref": "#/components/schemas/ExecutionOutput"},
                "result": {"$ref": "#/components/schemas/ExecutionResult"},
                "execution_time": {"type": "number", "nullable": true, "description": "Seconds."},
                "outputs_reused": {"type": "boolean"},
                "reused_from": {"type": "string", "format": "uuid"},
                "error": {"$ref": "#/components/schemas/ExecutionError"},
                "worker": {"type": "string"},
                "attempt": {"type": "integer"},
                "retry_at": {"type": "string", "format": "date-time"}
            }
        }
    })json");
    json::object& request = made["ExecutionRequest"].at("properties").as_object();
    request["workflow"] = openapi::workflow_property(
        "A workflow in ComfyUI's API format: node id -> {class_type, inputs}; or as the editor "
        "saves it. Where a loader takes a file, it may be an http(s) address, "
        "data:<type>;base64,<content>, asset:<id> or blake3:<hash>, or a list of those; addresses "
        "are fetched before the answer."
    );
    for (const auto& option : openapi::execution_options()) {
        request[option.key()] = option.value();
    }
    return made;
}

}  // namespace comfyd::api::workflows
