// What /openapi.json says about the workflows API.
#include <string>
#include <utility>

#include "api/dialects/literal.hpp"
#include "api/dialects/workflows.hpp"

namespace comfyd::api::workflows {
namespace {

json::object operation(const Version& version, std::string_view id, std::string_view text) {
    json::object operation = literal(text);
    const std::string suffix = version.deprecated ? "V1" : "V2";
    operation["operationId"] = std::string(id) + suffix;
    operation["tags"] = json::array{version.deprecated ? "workflows v1" : "workflows v2"};
    if (version.deprecated) {
        operation["deprecated"] = true;
    }
    operation["responses"].get_object()["default"] = literal(R"json({
        "description": "What went wrong, and what to do.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ExecutionErrorResponse"}}}
    })json");
    return operation;
}

constexpr std::string_view kExecution = R"json({
    "responses": {
        "200": {
            "description": "The execution as it is now.",
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ExecutionResponse"}}}
        }
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
        "description": "Answers as soon as the execution is stored safely. With an Idempotency-Key the same request can be sent again: it answers with the same execution and the header Idempotency-Replayed. The same key with other content is refused.",
        "parameters": [
            {"name": "Idempotency-Key", "in": "header", "schema": {"type": "string", "maxLength": 255}},
            {"name": "X-Webhook-URL", "in": "header", "schema": {"type": "string", "format": "uri"}},
            {"name": "wait", "in": "query", "description": "Seconds to wait for the end.",
             "schema": {"type": "integer", "minimum": 0, "maximum": 300, "default": 0}}
        ],
        "requestBody": {
            "required": true,
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ExecutionRequest"}}}
        },
        "responses": {
            "200": {
                "description": "Ended, while the request waited.",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ExecutionResponse"}}}
            },
            "202": {
                "description": "Accepted.",
                "headers": {
                    "Location": {"schema": {"type": "string"}},
                    "Idempotency-Replayed": {"schema": {"type": "string", "enum": ["true"]}},
                    "X-API-Version": {"schema": {"type": "string"}}
                },
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ExecutionResponse"}}}
            },
            "400": {
                "description": "The request or its workflow is not valid; details names every finding.",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ExecutionErrorResponse"}}}
            },
            "422": {
                "description": "The Idempotency-Key was used for another request.",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ExecutionErrorResponse"}}}
            },
            "429": {
                "description": "The queue is full. Retry-After says when to try again.",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ExecutionErrorResponse"}}}
            }
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
            {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 50}},
            {"name": "cursor", "in": "query", "description": "next_cursor of the page before.", "schema": {"type": "string"}}
        ],
        "responses": {
            "200": {
                "description": "A page of executions.",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ExecutionList"}}}
            }
        }
    })json");
}

json::object operation_cancel(const Version& version, std::string_view id) {
    json::object made =
        execution_operation(version, std::string(id) + "Execution", "Cancel an execution");
    made["description"] =
        "A waiting execution is cancelled at once; a running one is interrupted on its worker. "
        "Cancelling an "
        "execution that has ended changes nothing. The record stays readable.";
    return made;
}

json::object operation_retry(const Version& version) {
    json::object made =
        execution_operation(version, "retryExecution", "Run a failed or cancelled execution again");
    json::object& responses = made["responses"].get_object();
    json::value success = responses.at("200");  // a copy: adding a member moves the others
    responses.erase("200");
    responses["202"] = std::move(success);
    responses["409"] = literal(R"json({
        "description": "The execution has not ended, or it has completed.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ExecutionErrorResponse"}}}
    })json");
    return made;
}

json::object operation_metrics(const Version& version) {
    return operation(version, "getExecutionMetrics", R"json({
        "summary": "Durations, resources, counts and cost of an execution",
        "description": "What was not measured is null. Times and costs of failed attempts count; they stand there once the execution has ended.",
        "responses": {
            "200": {
                "description": "The metrics.",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ExecutionMetrics"}}}
            }
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
                        "priority": {"type": "integer"},
                        "queue_position": {"type": "integer", "description": "1 is next."},
                        "class": {"type": "string", "enum": ["high", "medium", "low", "batch"]},
                        "waited_seconds": {"type": "number"},
                        "wait_target_seconds": {"type": "number"},
                        "expected_wait_seconds": {"type": "number"},
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
            "426": {
                "description": "The request is no WebSocket handshake.",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ExecutionErrorResponse"}}}
            }
        }
    })json");
}

json::object schemas() {
    return literal(R"json({
        "ExecutionRequest": {
            "type": "object",
            "required": ["workflow"],
            "properties": {
                "workflow": {"type": "object", "additionalProperties": true,
                    "description": "A workflow in ComfyUI's API format: node id -> {class_type, inputs}. Where a loader takes a file, it may be an http(s) address, data:<type>;base64,<content>, asset:<id> or blake3:<hash>; addresses are fetched before the answer."},
                "input_params": {"type": "object", "additionalProperties": true,
                    "description": "Inputs to set: by \"node.input\", where node is an id or a title; by the title of a node with one value; by a parameter that the workflow declares; or by prompt, negative_prompt, seed (\"random\" chooses one), steps, cfg, denoise, sampler, scheduler, width, height, batch_size, image, checkpoint or lora, which are found from the sampler. A name that means nothing is refused with those that do.",
                    "example": {"prompt": "a lighthouse at dawn", "3.seed": 7}},
                "auto_fix": {"type": "boolean", "default": false,
                    "description": "Put right what is plainly a slip: a sampler written wrong, a number beyond its limits, a missing input that has a default. What was done is told in warnings."},
                "output_config": {"type": "object", "additionalProperties": true},
                "callback_url": {"type": "string", "format": "uri"},
                "webhook_config": {"$ref": "#/components/schemas/ExecutionWebhookConfig"},
                "execution_config": {"type": "object", "description": "Wins over the same members of the request.",
                    "properties": {
                        "timeout": {"type": "number"},
                        "priority": {"type": "integer", "minimum": 1, "maximum": 10},
                        "max_retries": {"type": "integer", "minimum": 0, "maximum": 9},
                        "deadline": {"type": "string", "format": "date-time"}
                    }},
                "priority": {"type": "integer", "minimum": 1, "maximum": 10, "default": 5},
                "timeout": {"type": "number", "minimum": 1, "maximum": 604800, "default": 1800,
                    "description": "Seconds that one attempt may run."},
                "deadline": {"type": "string", "format": "date-time"},
                "max_retries": {"type": "integer", "minimum": 0, "maximum": 9, "default": 2},
                "metadata": {"type": "object", "additionalProperties": true,
                    "description": "Handed back as it came; at most 16 KiB."}
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
                "method": {"type": "string", "enum": ["POST"]}
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
                "url_expires_at": {"type": "string", "format": "date-time"}
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
                "unbound_inputs": {"type": "array", "items": {"type": "string"},
                    "description": "Names of inputs that had no effect: none, since such names are refused."},
                "chosen_parameters": {"type": "object", "additionalProperties": true,
                    "description": "Values that were chosen here, such as the seed where \"random\" was asked for."},
                "warnings": {"type": "array", "items": {"$ref": "#/components/schemas/WorkflowFix"},
                    "description": "What auto_fix put right."},
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
                "error": {"$ref": "#/components/schemas/ExecutionError"},
                "worker": {"type": "string"},
                "attempt": {"type": "integer"},
                "retry_at": {"type": "string", "format": "date-time"}
            }
        }
    })json");
}

}  // namespace comfyd::api::workflows
