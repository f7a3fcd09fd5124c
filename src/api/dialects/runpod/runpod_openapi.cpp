// What /openapi.json says about the RunPod-compatible API.
#include <string>

#include "api/dialects/literal.hpp"
#include "api/dialects/runpod/runpod.hpp"

namespace comfyd::api::runpod {
namespace {

json::object answer(std::string_view id, std::string_view summary, std::string_view schema) {
    json::object made = literal(R"json({
        "tags": ["runpod"],
        "responses": {
            "200": {"description": "Success."},
            "default": {
                "description": "What went wrong, and what to do.",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/RunPodError"}}}
            }
        }
    })json");
    made["operationId"] = id;
    made["summary"] = summary;
    made["responses"].get_object()["200"].get_object()["content"] = json::object{
        {"application/json", {{"schema", {{"$ref", "#/components/schemas/" + std::string(schema)}}}}
        },
    };
    return made;
}

void add_request(json::object& operation) {
    operation["requestBody"] = literal(R"json({
        "required": true,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/RunPodRequest"}}}
    })json");
}

}  // namespace

json::object operation_run() {
    json::object made = answer("runpodRun", "Queue a job; the body has at most 10 MB", "RunPodJob");
    add_request(made);
    return made;
}

json::object operation_runsync() {
    json::object made = answer(
        "runpodRunSync",
        "Run a job and wait for its result; the body has at most 20 MB",
        "RunPodJob"
    );
    made["description"] =
        "When the wait is over first, the answer is the job as it is then; it goes on, and "
        "status/{id} tells of it. A client that goes away does not cancel its job.";
    made["parameters"] = json::array{literal(R"json({
        "name": "wait", "in": "query", "description": "Milliseconds to wait for the result.",
        "schema": {"type": "integer", "minimum": 1000, "maximum": 300000, "default": 90000}
    })json")};
    add_request(made);
    return made;
}

json::object operation_status() {
    return answer("runpodStatus", "A job, with its output when completed", "RunPodJob");
}

json::object operation_stream() {
    json::object made =
        answer("runpodStream", "What is new of a job since the last call", "RunPodStream");
    made["description"] =
        "Progress while it runs and one chunk per file after its end; a chunk is given once.";
    return made;
}

json::object operation_cancel() {
    return answer(
        "runpodCancel", "Cancel a job; a running one is interrupted on its worker", "RunPodJob"
    );
}

json::object operation_retry() {
    return answer("runpodRetry", "Run a job that is FAILED or TIMED_OUT again", "RunPodJob");
}

json::object operation_purge() {
    return answer(
        "runpodPurgeQueue", "Cancel the caller's waiting jobs of the endpoint", "RunPodPurge"
    );
}

json::object operation_health() {
    json::object made = answer("runpodHealth", "Jobs and workers of the endpoint", "RunPodHealth");
    made["description"] =
        "Counts the caller's jobs of the endpoint, ended ones of the last 24 hours, at most 10,000 "
        "of each kind. Workers serve all endpoints.";
    return made;
}

json::object schemas() {
    return literal(R"json({
        "RunPodRequest": {
            "type": "object",
            "required": ["input"],
            "properties": {
                "input": {
                    "type": "object",
                    "properties": {
                        "workflow": {"oneOf": [{"type": "object", "additionalProperties": true}, {"type": "string"}],
                            "description": "A workflow in ComfyUI's API format: node id -> {class_type, inputs}; as text where a picture that ComfyUI saved, or a JSON file, is to be had (https://…, data:<type>;base64,…, asset:<id>, blake3:<hash>), or the name of a stored workflow. Where a loader takes a file, it may be an http(s) address, data:<type>;base64,<content>, asset:<id> or blake3:<hash>; addresses are fetched before the answer."},
                        "workflow_id": {"type": "string", "example": "portrait@3",
                            "description": "A stored workflow in the place of 'workflow': its name, with a version or label where wanted."},
                        "params": {"type": "object", "additionalProperties": true,
                            "description": "Values of the stored workflow's parameters."},
                        "images": {"type": "array", "maxItems": 100,
                            "description": "Pictures for the nodes that load them by name.",
                            "items": {
                                "type": "object",
                                "required": ["name", "image"],
                                "properties": {
                                    "name": {"type": "string", "maxLength": 255},
                                    "image": {"type": "string", "description": "Base64, a data URL with base64, an http(s) address, asset:<id> or blake3:<hash>."}
                                }
                            }},
                        "return": {"type": "string", "enum": ["base64", "url"], "default": "base64",
                            "description": "How results come. Those that are too large for the answer always come as links."},
                        "comfy_org_api_key": {"type": "string", "description": "For API nodes; not stored."}
                    }
                },
                "webhook": {"type": "string", "format": "uri", "description": "Is sent the RunPodJob at its end."},
                "s3Config": {
                    "type": "object",
                    "description": "A bucket of your own: outputs are brought there as <job id>/<file name>, and the answer holds signed links to them. The keys are stored sealed until the job is forgotten, and shown to nobody.",
                    "required": ["bucketName", "accessId", "accessSecret"],
                    "properties": {
                        "bucketName": {"type": "string", "minLength": 3, "maxLength": 63},
                        "accessId": {"type": "string"},
                        "accessSecret": {"type": "string", "format": "password"},
                        "endpointUrl": {"type": "string", "format": "uri", "description": "https://host of the service; left out: AWS."}
                    }
                },
                "policy": {
                    "type": "object",
                    "properties": {
                        "executionTimeout": {"type": "integer", "minimum": 5000, "maximum": 604800000, "default": 600000,
                            "description": "Milliseconds that one attempt may run."},
                        "ttl": {"type": "integer", "minimum": 10000, "maximum": 604800000, "default": 86400000,
                            "description": "Milliseconds from now by which the job must have ended."},
                        "lowPriority": {"type": "boolean", "default": false},
                        "class": {"type": "string", "enum": ["batch"], "description": "batch: best effort, after everything that is not. The other classes follow from priority."},
                        "fairness_key": {"type": "string", "maxLength": 128, "description": "One of your own users or projects: they share your part of the GPUs evenly. Also as header X-Comfyd-Fairness-Key."},
                        "pool": {"type": "string", "description": "Only workers of this pool may run it; without it the tenant's pool, or any worker. Also as header X-Comfyd-Pool."},
                        "region": {"type": "string", "maxLength": 64, "description": "Only workers that stand there may run it. Also as header X-Comfyd-Region."},
                        "gpu_requirements": {"type": "object", "description": "The GPU that it must run on.", "properties": {"gpu_type": {"type": "string", "maxLength": 64, "description": "A kind, such as RTX 4090."}, "memory_gb": {"type": "number", "minimum": 0, "maximum": 4096, "description": "At least; workers that share a GPU keep it for the job."}}},
                        "gpu_memory_fraction": {"type": "number", "minimum": 0, "maximum": 1, "description": "Of its GPU's memory, what the job may take beside others."},
                        "reuse": {"type": "boolean", "description": "Answer with the outputs of an earlier job of yours that did the same, where there is one, and share one run with those that do the same now. Default: as set for the tenant."}
                    }
                }
            },
            "example": {"input": {"workflow": {
                "1": {"class_type": "EmptyImage", "inputs": {"width": 64, "height": 64, "batch_size": 1, "color": 16711680}},
                "2": {"class_type": "SaveImage", "inputs": {"images": ["1", 0], "filename_prefix": "red"}}
            }}}
        },
        "RunPodJob": {
            "type": "object",
            "required": ["id", "status"],
            "properties": {
                "id": {"type": "string", "format": "uuid"},
                "status": {"type": "string",
                    "enum": ["IN_QUEUE", "IN_PROGRESS", "COMPLETED", "FAILED", "CANCELLED", "TIMED_OUT"]},
                "delayTime": {"type": "integer", "description": "Milliseconds in the queue."},
                "executionTime": {"type": "integer", "description": "Milliseconds on the worker."},
                "workerId": {"type": "string"},
                "queuePosition": {"type": "integer"},
                "progress": {"type": "object", "additionalProperties": true},
                "output": {"$ref": "#/components/schemas/RunPodOutput"},
                "error": {"type": "string"},
                "errorDetails": {"type": "object", "additionalProperties": true}
            }
        },
        "RunPodFile": {
            "type": "object",
            "required": ["filename", "type", "data"],
            "properties": {
                "filename": {"type": "string"},
                "type": {"type": "string", "enum": ["base64", "s3_url"], "description": "s3_url: data is a signed link."},
                "data": {"type": "string"},
                "content_type": {"type": "string"}
            }
        },
        "RunPodOutput": {
            "type": "object",
            "properties": {
                "images": {"type": "array", "items": {"$ref": "#/components/schemas/RunPodFile"}},
                "files": {"type": "array", "items": {"$ref": "#/components/schemas/RunPodFile"},
                    "description": "What is no image: video, audio, text."},
                "errors": {"type": "array", "items": {"type": "string"}},
                "status": {"type": "string", "enum": ["success_no_images"]}
            }
        },
        "RunPodStream": {
            "type": "object",
            "required": ["id", "status", "stream"],
            "properties": {
                "id": {"type": "string", "format": "uuid"},
                "status": {"type": "string"},
                "stream": {"type": "array", "items": {
                    "type": "object",
                    "properties": {
                        "output": {"type": "object", "additionalProperties": true},
                        "metrics": {"type": "object", "additionalProperties": true}
                    }
                }}
            }
        },
        "RunPodPurge": {
            "type": "object",
            "properties": {"removed": {"type": "integer"}, "status": {"type": "string"}}
        },
        "RunPodHealth": {
            "type": "object",
            "properties": {
                "jobs": {"type": "object", "properties": {
                    "completed": {"type": "integer"}, "failed": {"type": "integer"},
                    "inProgress": {"type": "integer"}, "inQueue": {"type": "integer"},
                    "retried": {"type": "integer"}
                }},
                "workers": {"type": "object", "properties": {
                    "idle": {"type": "integer"}, "initializing": {"type": "integer"},
                    "ready": {"type": "integer"}, "running": {"type": "integer"},
                    "throttled": {"type": "integer"}, "unhealthy": {"type": "integer"}
                }}
            }
        },
        "RunPodError": {
            "type": "object",
            "required": ["error"],
            "properties": {
                "error": {"type": "string"},
                "code": {"type": "string"},
                "details": {"type": "object", "additionalProperties": true}
            }
        }
    })json");
}

}  // namespace comfyd::api::runpod
