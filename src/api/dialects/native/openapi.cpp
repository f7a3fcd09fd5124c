#include "api/dialects/native/openapi.hpp"

#include "api/dialects/literal.hpp"

namespace comfyd::api::native {
namespace {

// docs/compatibility.md says more: these routes answer as ComfyUI's do.
const json::object& documented() {
    static const json::object kRoutes = literal(R"json({
        "GET /ws": {"summary": "WebSocket: what happens to prompts, in ComfyUI's messages",
            "parameters": [
                {"name": "clientId", "in": "query", "schema": {"type": "string", "maxLength": 256}},
                {"name": "token", "in": "query", "description": "The API key, for browsers.", "schema": {"type": "string"}}],
            "responses": {
                "101": {"description": "The connection is a WebSocket from here on."},
                "400": {"description": "It does not ask for a WebSocket."}}},
        "GET /prompt": {"summary": "How many prompts of yours wait or run"},
        "POST /prompt": {"summary": "Queue a workflow in API format, or as the editor saves it",
            "requestBody": {"required": true, "content": {"application/json": {"schema": {
                "type": "object",
                "required": ["prompt"],
                "properties": {
                    "prompt": {"type": "object", "additionalProperties": true},
                    "client_id": {"type": "string", "description": "Whose WebSocket is told."},
                    "prompt_id": {"type": "string", "format": "uuid"},
                    "front": {"type": "boolean"},
                    "number": {"type": "number"},
                    "extra_data": {"type": "object", "additionalProperties": true}}}}}},
            "responses": {
                "200": {"description": "prompt_id, number and node_errors."},
                "400": {"description": "What is wrong, node by node: error and node_errors."}}},
        "GET /queue": {"summary": "Prompts of yours that run and that wait"},
        "POST /queue": {"summary": "Take prompts out of the queue: {\"delete\": [ids]} or {\"clear\": true}"},
        "POST /interrupt": {"summary": "Stop what runs, all of yours or one by prompt_id"},
        "POST /free": {"summary": "Have idle workers give memory back"},
        "GET /history": {"summary": "Prompts of yours that have ended, with their outputs",
            "parameters": [{"name": "max_items", "in": "query", "schema": {"type": "integer"}}]},
        "GET /history/{prompt_id}": {"summary": "One of them"},
        "POST /history": {"summary": "Forget entries: {\"delete\": [ids]} or {\"clear\": true}"},
        "GET /api/jobs": {"summary": "Prompts of yours in any state, page by page"},
        "GET /api/jobs/{job_id}": {"summary": "One of them"},
        "POST /api/jobs/{job_id}/cancel": {"summary": "Stop it, whether it waits or runs"},
        "POST /api/jobs/cancel": {"summary": "Stop several"},
        "GET /view": {"summary": "A file that a prompt made or that was uploaded",
            "parameters": [
                {"name": "filename", "in": "query", "required": true, "schema": {"type": "string"}},
                {"name": "subfolder", "in": "query", "schema": {"type": "string"}},
                {"name": "type", "in": "query", "schema": {"type": "string", "enum": ["output", "input", "temp"]}},
                {"name": "preview", "in": "query", "description": "webp or jpeg, with a quality: webp;80.", "schema": {"type": "string"}},
                {"name": "channel", "in": "query", "schema": {"type": "string", "enum": ["rgba", "rgb", "a"]}},
                {"name": "token", "in": "query", "description": "The API key, for browsers.", "schema": {"type": "string"}}],
            "responses": {
                "200": {"description": "The file.", "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}},
                "206": {"description": "A part of it.", "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}},
                "304": {"description": "The client has it already."},
                "400": {"description": "The name is none."},
                "403": {"description": "The name leads out of your files."},
                "404": {"description": "You have no such file."}}},
        "POST /upload/image": {"summary": "Store a file for loader nodes",
            "requestBody": {"required": true, "content": {"multipart/form-data": {"schema": {
                "type": "object",
                "required": ["image"],
                "properties": {
                    "image": {"type": "string", "format": "binary"},
                    "subfolder": {"type": "string"},
                    "type": {"type": "string"},
                    "overwrite": {"type": "string"}}}}}},
            "responses": {
                "200": {"description": "name, subfolder and type, for loaders."},
                "400": {"description": "There is no file in it, or its place is none."}}},
        "POST /upload/mask": {"summary": "Store a picture whose alpha channel is the mask of another",
            "responses": {
                "200": {"description": "name, subfolder and type, for loaders."},
                "400": {"description": "There is no file in it, or its place is none."}}},
        "GET /object_info": {"summary": "Every node class that some worker has",
            "responses": {
                "200": {"description": "By name."},
                "304": {"description": "The client has them already."}}},
        "GET /object_info/{class}": {"summary": "One of them"},
        "GET /system_stats": {"summary": "Memory and versions, and the GPUs of all workers"},
        "GET /features": {"summary": "What the server can do, for clients that ask"},
        "GET /models": {"summary": "Folders of models"},
        "GET /models/{folder}": {"summary": "Files that the workers have in one",
            "responses": {
                "200": {"description": "Their names."},
                "404": {"description": "There is no such folder."}}},
        "GET /embeddings": {"summary": "Always empty"}
    })json");
    return kRoutes;
}

// Of all of them.
const json::object& refusals() {
    static const json::object kAnswers = literal(R"json({
        "413": {"description": "The body is too large.", "content": {"text/plain": {"schema": {"type": "string"}}}},
        "500": {"description": "As ComfyUI answers what it cannot read.", "content": {"text/plain": {"schema": {"type": "string"}}}},
        "503": {"description": "Not now: try again later.",
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ComfyUIError"}}}},
        "default": {"description": "What went wrong, in ComfyUI's words.",
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ComfyUIError"}}}}
    })json");
    return kAnswers;
}

// "POST /jobs/{job_id}/cancel" becomes "comfyuiPostJobsJobIdCancel".
std::string operation_id(const std::string& route) {
    std::string id = "comfyui";
    bool begins_word = true;
    for (const char c : route) {
        const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (is_letter) {
            const char small = static_cast<char>(c | 0x20);
            id += begins_word ? static_cast<char>(small & ~0x20) : small;
        }
        begins_word = !is_letter;
    }
    return id;
}

}  // namespace

json::object document_route(net::Method method, const std::string& pattern) {
    const std::string route = std::string(net::to_string(method)) + " " + pattern;
    const json::value* found = json::find(documented(), route);
    if (found == nullptr) {
        return {};
    }
    json::object operation = found->as_object();
    json::object& responses = operation["responses"].is_object()
                                  ? operation["responses"].get_object()
                                  : operation["responses"].emplace_object();
    if (responses.empty()) {
        responses["200"] = json::object{{"description", "As ComfyUI answers."}};
    }
    for (const auto& [status, response] : refusals()) {
        responses.emplace(status, response);
    }
    operation["operationId"] = operation_id(route);
    operation["tags"] = json::array{"ComfyUI's own"};
    return operation;
}

json::object schemas() {
    return literal(R"json({
        "ComfyUIError": {
            "type": "object",
            "required": ["error"],
            "properties": {
                "error": {"oneOf": [
                    {"type": "string"},
                    {"type": "object", "required": ["type", "message"], "properties": {
                        "type": {"type": "string"},
                        "message": {"type": "string"},
                        "details": {"type": "string"},
                        "extra_info": {"type": "object", "additionalProperties": true}}}
                ]},
                "node_errors": {"description": "By node; an empty list where there are none."}
            }
        }
    })json");
}

}  // namespace comfyd::api::native
