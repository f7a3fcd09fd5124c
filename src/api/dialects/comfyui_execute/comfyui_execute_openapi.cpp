// What /openapi.json says about the execute API.
#include <string>

#include "api/dialects/comfyui_execute/comfyui_execute.hpp"
#include "api/dialects/literal.hpp"

namespace comfyd::api::comfyui_execute {
namespace {

json::object operation(std::string_view text) {
    json::object operation = literal(text);
    operation["tags"] = json::array{"comfyui execute"};
    operation["responses"].get_object()["default"] = literal(R"json({
        "description": "What went wrong, and what to do.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ComfyuiError"}}}
    })json");
    return operation;
}

}  // namespace

json::object operation_execute() {
    return operation(R"json({
        "operationId": "comfyuiExecute",
        "summary": "Submit a workflow",
        "description": "Answers as soon as the execution is stored safely. The same Idempotency-Key and content answers with the same execution again.",
        "parameters": [
            {"name": "X-Webhook-URL", "in": "header", "description": "Told when the execution has ended.",
             "schema": {"type": "string", "format": "uri"}},
            {"name": "Idempotency-Key", "in": "header", "schema": {"type": "string", "maxLength": 255}}
        ],
        "requestBody": {
            "required": true,
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ComfyuiExecuteRequest"}}}
        },
        "responses": {
            "202": {
                "description": "Accepted.",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ComfyuiAccepted"}}}
            },
            "400": {
                "description": "The request or its workflow is not valid.",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ComfyuiError"}}}
            }
        }
    })json");
}

json::object operation_get() {
    return operation(R"json({
        "operationId": "comfyuiGetExecution",
        "summary": "Status, progress and result of an execution",
        "responses": {
            "200": {
                "description": "The execution as it is now.",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ComfyuiExecution"}}}
            }
        }
    })json");
}

json::object operation_list() {
    return operation(R"json({
        "operationId": "comfyuiListExecutions",
        "summary": "List executions, newest first",
        "parameters": [
            {"name": "status", "in": "query", "description": "One status, or several with commas.",
             "schema": {"type": "string"}, "example": "queued,processing"},
            {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 50}},
            {"name": "cursor", "in": "query", "schema": {"type": "string"}}
        ],
        "responses": {
            "200": {
                "description": "A page of executions.",
                "content": {"application/json": {"schema": {
                    "type": "object",
                    "properties": {
                        "executions": {"type": "array", "items": {"$ref": "#/components/schemas/ComfyuiExecution"}},
                        "count": {"type": "integer"},
                        "next_cursor": {"type": "string", "nullable": true}
                    }
                }}}
            }
        }
    })json");
}

json::object operation_cancel() {
    return operation(R"json({
        "operationId": "comfyuiCancelExecution",
        "summary": "Cancel an execution",
        "description": "Changes nothing when it has ended already.",
        "responses": {
            "200": {
                "description": "The execution as it is now.",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ComfyuiExecution"}}}
            }
        }
    })json");
}

json::object operation_events() {
    return operation(R"json({
        "operationId": "comfyuiStreamEvents",
        "summary": "Events of an execution as Server-Sent Events",
        "description": "First the execution as it is now, then one message per event with its sequence as id, then 'event: close'. Last-Event-ID resumes.",
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

json::object schemas() {
    return literal(R"json({
        "ComfyuiExecuteRequest": {
            "type": "object",
            "required": ["workflow"],
            "properties": {
                "workflow": {
                    "description": "A workflow in API format, as it is or as 'nodes' with the connections in 'links'; as text where a picture that ComfyUI saved, or a JSON file, is to be had (https://…, data:<type>;base64,…, asset:<id>, blake3:<hash>). Where a loader takes a file, it may be an http(s) address, data:<type>;base64,<content>, asset:<id> or blake3:<hash>; addresses are fetched before the answer.",
                    "oneOf": [
                        {"type": "object", "additionalProperties": true, "properties": {
                            "nodes": {"type": "object", "additionalProperties": true},
                            "links": {"type": "array", "items": {},
                                "description": "[from node, output number, to node, input name] each. Not needed when the inputs hold their links."}
                        }},
                        {"type": "string"}
                    ]
                },
                "inputs": {"type": "object", "additionalProperties": true,
                    "description": "Inputs to set, by \"node.input\", where node is an id or a title."},
                "output_config": {"$ref": "#/components/schemas/OutputConfig"},
                "execution_config": {
                    "type": "object",
                    "properties": {
                        "timeout": {"type": "number", "minimum": 1, "maximum": 604800,
                            "description": "Seconds that one attempt may run."},
                        "gpu_memory_fraction": {"type": "number", "minimum": 0, "maximum": 1, "description": "Of its GPU's memory, what the job may take beside others."},
                        "batch_size": {"type": "integer", "minimum": 1, "maximum": 4096},
                        "priority": {"type": "integer", "minimum": 1, "maximum": 10},
                        "class": {"type": "string", "enum": ["batch"], "description": "batch: best effort, after everything that is not. The other classes follow from priority."},
                        "fairness_key": {"type": "string", "maxLength": 128, "description": "One of your own users or projects: they share your part of the GPUs evenly. Also as header X-Comfyd-Fairness-Key."},
                        "pool": {"type": "string", "description": "Only workers of this pool may run it; without it the tenant's pool, or any worker. Also as header X-Comfyd-Pool."},
                        "region": {"type": "string", "maxLength": 64, "description": "Only workers that stand there may run it. Also as header X-Comfyd-Region."},
                        "gpu_requirements": {"type": "object", "description": "The GPU that it must run on.", "properties": {"gpu_type": {"type": "string", "maxLength": 64, "description": "A kind, such as RTX 4090."}, "memory_gb": {"type": "number", "minimum": 0, "maximum": 4096, "description": "At least; workers that share a GPU keep it for the job."}}},
                        "reuse": {"type": "boolean", "description": "Answer with the outputs of an earlier job of yours that did the same, where there is one, and share one run with those that do the same now. Default: as set for the tenant."},
                        "max_retries": {"type": "integer", "minimum": 0, "maximum": 9}
                    }
                },
                "metadata": {"type": "object", "additionalProperties": true}
            },
            "example": {
                "workflow": {
                    "nodes": {
                        "1": {"class_type": "EmptyImage", "inputs": {"width": 64, "height": 64, "batch_size": 1, "color": 255}},
                        "2": {"class_type": "SaveImage", "inputs": {"filename_prefix": "blue"}}
                    },
                    "links": [["1", 0, "2", "images"]]
                },
                "inputs": {"1.width": 128}
            }
        },
        "ComfyuiAccepted": {
            "type": "object",
            "properties": {
                "status": {"type": "string", "enum": ["accepted"]},
                "execution_id": {"type": "string", "format": "uuid"},
                "estimated_duration": {"type": "integer", "nullable": true, "description": "Seconds; null while there is nothing to estimate from."},
                "queue_position": {"type": "integer", "nullable": true, "description": "1 is next, 0 is running."},
                "webhook_url": {"type": "string", "nullable": true},
                "warnings": {"type": "array", "items": {"oneOf": [{"$ref": "#/components/schemas/WorkflowFix"}, {"type": "string"}]},
                    "description": "Members of the request that have no effect; absent where there are none."}
            }
        },
        "ComfyuiExecution": {
            "allOf": [
                {"$ref": "#/components/schemas/ExecutionResponse"},
                {"type": "object", "properties": {"estimated_duration": {"type": "integer", "nullable": true}}}
            ]
        },
        "ComfyuiError": {
            "type": "object",
            "required": ["status", "error_code", "message"],
            "properties": {
                "status": {"type": "string", "enum": ["error"]},
                "error_code": {"type": "string", "example": "INVALID_WORKFLOW"},
                "message": {"type": "string"},
                "details": {
                    "type": "object",
                    "additionalProperties": true,
                    "properties": {
                        "missing_nodes": {"type": "array", "items": {"type": "string"}},
                        "invalid_connections": {"type": "array", "items": {"type": "object"}}
                    }
                }
            }
        }
    })json");
}

}  // namespace comfyd::api::comfyui_execute
