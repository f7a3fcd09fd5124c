// What /prompt_sync reads and answers.
#include <algorithm>
#include <utility>

#include "api/dialects/literal.hpp"
#include "api/dialects/native/names.hpp"
#include "api/dialects/output_media.hpp"
#include "api/dialects/prompt_sync/prompt_sync.hpp"
#include "comfy/members.hpp"

namespace comfyd::api::prompt_sync {
namespace {

const jobs::Output* find_output(
    const jobs::Job& job, std::string_view node, const json::object& file
) {
    const auto found =
        std::find_if(job.outputs.begin(), job.outputs.end(), [&](const jobs::Output& one) {
            return one.node_id == node && one.name == comfy::text_of(file, "filename") &&
                   one.subfolder == comfy::text_of(file, "subfolder") &&
                   one.folder == comfy::text_of(file, "type");
        });
    return found == job.outputs.end() ? nullptr : &*found;
}

void add_links(
    const jobs::Job& job, std::string_view node, json::object& ui, const execution::Links& links
) {
    for (auto& [key, entry] : ui) {
        json::array* list = entry.if_array();
        if (list == nullptr) {
            continue;
        }
        for (json::value& element : *list) {
            json::object* file = element.if_object();
            const jobs::Output* output = file == nullptr ? nullptr : find_output(job, node, *file);
            if (output != nullptr) {
                (*file)["url"] = links(output->asset).url;
                add_media(*output, links, *file);
            }
        }
    }
}

}  // namespace

Trouble trouble_of(const jobs::Job& job) {
    Trouble trouble;
    trouble.prompt_id = job.id.to_string();
    if (job.state == jobs::State::cancelled) {
        trouble.error = Error(Code::cancelled, "the prompt was cancelled by somebody else");
        return trouble;
    }
    jobs::Failure failure = job.failure.value_or(jobs::Failure{});
    if (job.state == jobs::State::expired) {
        failure.code = Code::deadline_exceeded;
    }
    if (const json::object* known = comfy::object_of(failure.details, "node_errors")) {
        trouble.node_errors = *known;
    } else if (!failure.node_id.empty()) {
        trouble.node_errors[failure.node_id] = {
            {"errors", {json::object{{"message", failure.message}}}}
        };
    }
    if (failure.message.empty()) {
        failure.message = "the prompt failed for an unknown reason";
    }
    // A worker's own words may begin with the node.
    const bool is_named =
        failure.node_id.empty() || failure.message.starts_with("node " + failure.node_id + " ");
    const std::string where =
        is_named ? std::string() : "node " + failure.node_id + " (" + failure.class_type + "): ";
    trouble.error = Error(failure.code, where + failure.message);
    return trouble;
}

json::object encode_outputs(const jobs::Job& job, const execution::Links& links) {
    json::object outputs = job.ui_outputs;
    for (auto& [node, ui] : outputs) {
        if (json::object* lists = ui.if_object()) {
            add_links(job, {node.data(), node.size()}, *lists, links);
        }
    }
    return native::renamed_outputs(std::move(outputs), job.id);
}

json::object encode_result(
    const jobs::Job& job, const json::object& node_errors, const execution::Links& links
) {
    return comfy::prompt_sync::encode_result(
        job.id.to_string(),
        job.finished_at.value_or(job.created_at) - job.created_at,
        encode_outputs(job, links),
        node_errors
    );
}

json::object operation() {
    return literal(R"json({
        "operationId": "promptSync",
        "summary": "Run a ComfyUI prompt and wait for its result",
        "description": "A client that closes its connection before the answer waits no longer: on_timeout says what becomes of its prompt then, too.",
        "tags": ["comfyui"],
        "parameters": [
            {"name": "timeout", "in": "query", "description": "Seconds; wins over the member of the body.",
             "schema": {"type": "number", "minimum": 0.1, "maximum": 86400, "default": 300}}
        ],
        "requestBody": {
            "required": true,
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/PromptSyncRequest"}}}
        },
        "responses": {
            "200": {
                "description": "The result.",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/PromptSyncResult"}}}
            },
            "400": {"description": "A node failed.",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/PromptSyncError"}}}},
            "408": {"description": "No result in time; on_timeout says what becomes of the prompt.",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/PromptSyncError"}}}},
            "413": {"description": "The pictures are too large for base64; outputs has their links.",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/PromptSyncError"}}}},
            "422": {"description": "The request or its prompt is not valid.",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/PromptSyncError"}}}},
            "503": {"description": "There is no worker.",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/PromptSyncError"}}}},
            "default": {"description": "What went wrong, and what to do.",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/PromptSyncError"}}}}
        }
    })json");
}

json::object schemas() {
    return literal(R"json({
        "PromptSyncRequest": {
            "type": "object",
            "required": ["prompt"],
            "properties": {
                "prompt": {"type": "object", "additionalProperties": true,
                    "description": "A workflow in ComfyUI's API format: node id -> {class_type, inputs}."},
                "client_id": {"type": "string", "description": "Whose socket hears of the prompt."},
                "return_image_base64": {"type": "boolean", "default": false},
                "timeout": {"type": "number", "minimum": 0.1, "maximum": 86400, "default": 300},
                "on_timeout": {"type": "string", "enum": ["cancel", "continue"], "default": "cancel"},
                "priority": {"type": "integer", "minimum": 1, "maximum": 10, "default": 5},
                "class": {"type": "string", "enum": ["batch"], "description": "batch: best effort, after everything that is not. The other classes follow from priority."},
                "fairness_key": {"type": "string", "maxLength": 128, "description": "One of your own users or projects: they share your part of the GPUs evenly. Also as header X-Comfyd-Fairness-Key."},
                "pool": {"type": "string", "description": "Only workers of this pool may run it; without it the tenant's pool, or any worker. Also as header X-Comfyd-Pool."},
                "region": {"type": "string", "maxLength": 64, "description": "Only workers that stand there may run it. Also as header X-Comfyd-Region."},
                "gpu_requirements": {"type": "object", "description": "The GPU that it must run on.", "properties": {"gpu_type": {"type": "string", "maxLength": 64, "description": "A kind, such as RTX 4090."}, "memory_gb": {"type": "number", "minimum": 0, "maximum": 4096, "description": "At least; workers that share a GPU keep it for the job."}}},
                "gpu_memory_fraction": {"type": "number", "minimum": 0, "maximum": 1, "description": "Of its GPU's memory, what the job may take beside others."},
                "reuse": {"type": "boolean", "description": "Answer with the outputs of an earlier job of yours that did the same, where there is one, and share one run with those that do the same now. Default: as set for the tenant."},
                "extra_data": {"type": "object", "additionalProperties": true}
            },
            "example": {"prompt": {
                "1": {"class_type": "EmptyImage", "inputs": {"width": 64, "height": 64, "batch_size": 1, "color": 16711680}},
                "2": {"class_type": "SaveImage", "inputs": {"images": ["1", 0], "filename_prefix": "red"}}
            }}
        },
        "PromptSyncResult": {
            "type": "object",
            "properties": {
                "prompt_id": {"type": "string", "format": "uuid"},
                "status": {"type": "string", "enum": ["success"]},
                "execution_time": {"type": "number", "description": "Seconds, with the wait for a worker."},
                "outputs": {"type": "object", "additionalProperties": true,
                    "description": "What ComfyUI reported per node id; files have a url."},
                "node_errors": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}},
                "images": {"type": "object", "description": "Per node id, where return_image_base64 was set.",
                    "additionalProperties": {"type": "array", "items": {
                        "type": "object",
                        "properties": {
                            "filename": {"type": "string"}, "subfolder": {"type": "string"},
                            "type": {"type": "string"}, "data": {"type": "string", "description": "Base64."}
                        }
                    }}}
            }
        },
        "PromptSyncError": {
            "type": "object",
            "required": ["status", "error", "detail"],
            "properties": {
                "status": {"type": "string", "enum": ["error", "timeout"]},
                "error": {"type": "string"},
                "code": {"type": "string"},
                "detail": {"type": "string"},
                "prompt_id": {"type": "string", "format": "uuid", "nullable": true},
                "node_errors": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}},
                    "description": "Per node id, what is wrong with it."},
                "outputs": {"type": "object", "additionalProperties": true},
                "timestamp": {"type": "string", "format": "date-time"}
            }
        }
    })json");
}

}  // namespace comfyd::api::prompt_sync
