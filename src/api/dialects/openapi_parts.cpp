#include "api/dialects/openapi_parts.hpp"

#include <string>
#include <utility>

#include "api/dialects/literal.hpp"
#include "base/assert.hpp"

namespace comfyd::api::openapi {
namespace {

constexpr std::string_view kError = "ExecutionErrorResponse";

boost::json::string_view text(std::string_view of) {
    return {of.data(), of.size()};
}

json::object reference(std::string_view schema) {
    return {{"$ref", "#/components/schemas/" + std::string(schema)}};
}

json::object json_content(std::string_view schema) {
    return {{"application/json", json::object{{"schema", reference(schema)}}}};
}

// Parameters that several routes have.
json::value parameter(std::string_view name) {
    static const json::array kAll = literal(R"json({"all": [
        {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 50}},
        {"name": "cursor", "in": "query", "description": "next_cursor of the page before.", "schema": {"type": "string"}},
        {"name": "version", "in": "query", "schema": {"type": "integer", "minimum": 1}},
        {"name": "label", "in": "query", "schema": {"type": "string"}},
        {"name": "wait", "in": "query", "description": "Seconds to wait for the end.",
         "schema": {"type": "integer", "minimum": 0, "maximum": 300, "default": 0}},
        {"name": "If-Match", "in": "header", "description": "The ETag that the workflow must have.", "schema": {"type": "string"}},
        {"name": "Idempotency-Key", "in": "header", "schema": {"type": "string", "maxLength": 255}},
        {"name": "X-Webhook-URL", "in": "header", "schema": {"type": "string", "format": "uri"}},
        {"name": "X-Comfyd-Pool", "in": "header", "description": "As the option pool.", "schema": {"type": "string"}},
        {"name": "X-Comfyd-Region", "in": "header", "description": "As the option region.", "schema": {"type": "string", "maxLength": 64}}
    ]})json")
                                        .at("all")
                                        .as_array();
    for (const json::value& one : kAll) {
        if (one.at("name") == text(name)) {
            return one;
        }
    }
    COMFYD_ASSERT(false);
    return {};
}

json::object answer(std::string_view description, std::string_view schema) {
    return {{"description", text(description)}, {"content", json_content(schema)}};
}

json::value expanded_answer(const json::value& shorthand) {
    if (const json::array* pair = shorthand.if_array()) {
        const std::string_view schema =
            pair->size() > 1 ? std::string_view(pair->at(1).as_string()) : kError;
        return answer(pair->at(0).as_string(), schema);
    }
    json::object made = shorthand.as_object();
    if (const auto schema = made.find("schema"); schema != made.end()) {
        made["content"] = json_content(schema->value().as_string());
        made.erase("schema");
    }
    return made;
}

json::object expanded_body(const json::value& shorthand) {
    json::object made{{"required", true}};
    if (shorthand.is_string()) {
        made["content"] = json_content(shorthand.get_string());
        return made;
    }
    const json::value* workflow = json::find(shorthand.as_object(), "workflow");
    if (workflow == nullptr) {
        return shorthand.as_object();
    }
    json::object content = json_content(workflow->as_string());
    const json::object file{{"schema", {{"type", "string"}, {"format", "binary"}}}};
    content["image/png"] = file;
    content["image/webp"] = file;
    content["multipart/form-data"] = literal(R"json({"schema": {
        "type": "object",
        "required": ["workflow"],
        "properties": {"workflow": {"type": "string", "format": "binary",
            "description": "A file with the workflow in it; the other parts are the members of the JSON form."}},
        "additionalProperties": true
    }})json");
    made["content"] = std::move(content);
    return made;
}

}  // namespace

json::object operation(std::string_view id, std::string_view tag, std::string_view text_of) {
    json::object made = literal(text_of);
    made["operationId"] = text(id);
    made["tags"] = json::array{text(tag)};
    if (const auto parameters = made.find("parameters"); parameters != made.end()) {
        for (json::value& one : parameters->value().as_array()) {
            if (one.is_string()) {
                one = parameter(std::string_view(one.get_string()));
            }
        }
    }
    if (const auto body = made.find("requestBody"); body != made.end()) {
        body->value() = expanded_body(json::value(body->value()));
    }
    json::object& responses = made["responses"].as_object();
    for (auto& response : responses) {
        response.value() = expanded_answer(json::value(response.value()));
    }
    if (!responses.contains("default")) {
        responses["default"] = answer("What went wrong, and what to do.", kError);
    }
    return made;
}

json::object execution_options() {
    return literal(R"json({
        "priority": {"type": "integer", "minimum": 1, "maximum": 10, "default": 5},
        "class": {"type": "string", "enum": ["batch"], "description": "batch: best effort, after everything that is not. The other classes follow from priority."},
        "fairness_key": {"type": "string", "maxLength": 128, "description": "One of your own users or projects: they share your part of the GPUs evenly. Also as header X-Comfyd-Fairness-Key."},
        "pool": {"type": "string", "description": "Only workers of this pool may run it; without it the tenant's pool, or any worker. Also as header X-Comfyd-Pool."},
        "region": {"type": "string", "maxLength": 64, "description": "Only workers that stand there may run it. Also as header X-Comfyd-Region."},
        "gpu_requirements": {"type": "object", "description": "The GPU that it must run on.", "properties": {"gpu_type": {"type": "string", "maxLength": 64, "description": "A kind, such as RTX 4090."}, "memory_gb": {"type": "number", "minimum": 0, "maximum": 4096, "description": "At least; workers that share a GPU keep it for the job."}}},
        "gpu_memory_fraction": {"type": "number", "minimum": 0, "maximum": 1, "description": "Of its GPU's memory, what the job may take beside others."},
        "reuse": {"type": "boolean", "description": "Answer with the outputs of an earlier job of yours that did the same, where there is one, and share one run with those that do the same now. Default: as set for the tenant."},
        "timeout": {"type": "number", "minimum": 1, "maximum": 604800, "default": 1800,
            "description": "Seconds that one attempt may run."},
        "deadline": {"type": "string", "format": "date-time"},
        "max_retries": {"type": "integer", "minimum": 0, "maximum": 9, "default": 2},
        "metadata": {"type": "object", "additionalProperties": true,
            "description": "Handed back as it came; at most 16 KiB."},
        "callback_url": {"type": "string", "format": "uri"},
        "webhook_url": {"type": "string", "format": "uri"},
        "webhook_config": {"$ref": "#/components/schemas/ExecutionWebhookConfig"},
        "output_config": {"$ref": "#/components/schemas/OutputConfig"},
        "retention": {"type": "string", "enum": ["immediate", "standard", "archive", "glacier"]},
        "execution_config": {"type": "object", "description": "Wins over the same members of the request.",
            "properties": {
                "timeout": {"type": "number"},
                "priority": {"type": "integer", "minimum": 1, "maximum": 10},
                "class": {"type": "string", "enum": ["batch"]},
                "fairness_key": {"type": "string", "maxLength": 128},
                "pool": {"type": "string"},
                "region": {"type": "string", "maxLength": 64},
                "gpu_requirements": {"type": "object", "properties": {"gpu_type": {"type": "string", "maxLength": 64}, "memory_gb": {"type": "number", "minimum": 0, "maximum": 4096}}},
                "gpu_memory_fraction": {"type": "number", "minimum": 0, "maximum": 1},
                "max_retries": {"type": "integer", "minimum": 0, "maximum": 9},
                "deadline": {"type": "string", "format": "date-time"}
            }},
        "auto_fix": {"type": "boolean", "default": false,
            "description": "Put right what is plainly a slip: a sampler written wrong, a number beyond its limits, a missing input that has a default. What was done is told in warnings."}
    })json");
}

json::object workflow_property(std::string_view description) {
    json::object made = literal(R"json({"oneOf": [
        {"type": "object", "additionalProperties": true},
        {"type": "string", "description": "Where a PNG or WebP picture that ComfyUI saved, or a JSON file, with the workflow in it is to be had: https://…, data:<type>;base64,…, asset:<id> or blake3:<hash>."}
    ]})json");
    made["description"] = text(description);
    return made;
}

}  // namespace comfyd::api::openapi
