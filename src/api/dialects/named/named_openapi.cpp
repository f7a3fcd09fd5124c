// What /openapi.json says about named workflows: the routes that all have, and an operation for
// each that the caller has stored.
#include <string>
#include <utility>

#include "api/dialects/literal.hpp"
#include "api/dialects/named/named.hpp"
#include "api/dialects/openapi_parts.hpp"

namespace comfyd::api::named {
namespace {

constexpr std::string_view kTag = "named workflows";

json::object operation(std::string_view id, std::string_view text) {
    return openapi::operation(id, kTag, text);
}

json::object params_reference(const std::string& name) {
    return {{"$ref", "#/components/schemas/WorkflowParams." + name}};
}

json::object run_body(const Loaded& loaded, const json::object& schema) {
    const bool is_required = schema.contains("required");
    json::object own{
        {"type", "object"},
        {"properties", json::object{{"params", params_reference(loaded.workflow.name)}}},
    };
    if (is_required) {
        own["required"] = json::array{"params"};
    }
    json::object all{
        {"allOf",
         json::array{json::object{{"$ref", "#/components/schemas/NamedRunOptions"}}, std::move(own)}
        },
    };
    return {
        {"required", is_required},
        {"content", json::object{{"application/json", json::object{{"schema", std::move(all)}}}}},
    };
}

// As operation_run(), with the parameters of this workflow.
json::object operation_of(
    const Loaded& loaded, const json::object& schema, const json::value& security
) {
    json::object made = operation_run();
    made["operationId"] = "run." + loaded.workflow.name;
    made["summary"] = "Run " + loaded.workflow.name;
    if (!loaded.version.description.empty()) {
        made["description"] = loaded.version.description;
    }
    made["requestBody"] = run_body(loaded, schema);
    made["security"] = security;
    return made;
}

}  // namespace

json::object operation_list() {
    return operation("listWorkflows", R"json({
        "summary": "List named workflows, by name",
        "parameters": ["limit", "cursor"],
        "responses": {
            "200": ["A page of workflows.", "NamedWorkflowList"]
        }
    })json");
}

json::object operation_put() {
    return operation("putWorkflow", R"json({
        "summary": "Store a workflow under a name",
        "description": "Makes a new version, unless the latest one has the same content. A workflow that could not run is refused with every finding, unless check is false. The body may also be a picture that ComfyUI saved, whose workflow is stored then.",
        "parameters": [
            "If-Match",
            {"name": "If-None-Match", "in": "header", "description": "*: the name must not be there yet.", "schema": {"type": "string"}}
        ],
        "requestBody": {"workflow": "NamedWorkflowRequest"},
        "responses": {
            "200": ["The latest version has this content already.", "NamedWorkflow"],
            "201": {
                "description": "A new version.",
                "headers": {
                    "Location": {"schema": {"type": "string"}},
                    "ETag": {"schema": {"type": "string"}}
                },
                "schema": "NamedWorkflow"
            },
            "409": ["There are as many names or versions as there can be."],
            "412": ["The condition does not hold."]
        }
    })json");
}

json::object operation_get() {
    return operation("getWorkflow", R"json({
        "summary": "A named workflow and one of its versions",
        "description": "The version is the one that a run would take: the one asked for, else the one labelled production, else the latest.",
        "parameters": [
            "version",
            "label",
            {"name": "If-None-Match", "in": "header", "schema": {"type": "string"}}
        ],
        "responses": {
            "200": {
                "description": "The workflow.",
                "headers": {"ETag": {"schema": {"type": "string"}}},
                "schema": "NamedWorkflow"
            },
            "304": {"description": "It has not changed."}
        }
    })json");
}

json::object operation_delete() {
    return operation("deleteWorkflow", R"json({
        "summary": "Delete a workflow with all its versions and labels",
        "description": "Executions that it started stay.",
        "parameters": ["If-Match"],
        "responses": {"204": {"description": "It is deleted."}}
    })json");
}

json::object operation_versions() {
    return operation("listWorkflowVersions", R"json({
        "summary": "List the versions of a workflow, newest first",
        "parameters": ["limit", "cursor"],
        "responses": {
            "200": ["A page of versions, without their workflows.", "NamedVersionList"]
        }
    })json");
}

json::object operation_version() {
    return operation("getWorkflowVersion", R"json({
        "summary": "One version of a workflow",
        "responses": {
            "200": ["The version.", "NamedVersion"]
        }
    })json");
}

json::object operation_delete_version() {
    return operation("deleteWorkflowVersion", R"json({
        "summary": "Delete one version of a workflow",
        "description": "Its number is not given again.",
        "parameters": ["If-Match"],
        "responses": {
            "204": {"description": "It is deleted."},
            "409": ["A label points to it, or it is the only one."]
        }
    })json");
}

json::object operation_set_label() {
    return operation("putWorkflowLabel", R"json({
        "summary": "Let a label point to a version",
        "description": "Runs take the version labelled production where none is chosen.",
        "parameters": ["If-Match"],
        "requestBody": {
            "required": true,
            "content": {"application/json": {"schema": {
                "type": "object",
                "required": ["version"],
                "properties": {"version": {"type": "integer", "minimum": 1}}
            }}}
        },
        "responses": {
            "200": {
                "description": "The workflow with its labels.",
                "headers": {"ETag": {"schema": {"type": "string"}}},
                "schema": "NamedWorkflowSummary"
            }
        }
    })json");
}

json::object operation_delete_label() {
    return operation("deleteWorkflowLabel", R"json({
        "summary": "Take a label away",
        "parameters": ["If-Match"],
        "responses": {
            "200": {
                "description": "The workflow with its labels.",
                "headers": {"ETag": {"schema": {"type": "string"}}},
                "schema": "NamedWorkflowSummary"
            }
        }
    })json");
}

json::object operation_schema() {
    return operation("getWorkflowSchema", R"json({
        "summary": "The JSON schema of a workflow's parameters",
        "description": "Types, limits and choices are those of the node classes and model files that the workers have now.",
        "parameters": ["version", "label"],
        "responses": {
            "200": {
                "description": "A JSON schema.",
                "content": {"application/json": {"schema": {"type": "object", "additionalProperties": true}}}
            }
        }
    })json");
}

json::object operation_run() {
    return operation("runWorkflow", R"json({
        "summary": "Run a named workflow",
        "description": "As POST /v2/workflows/execute, with a stored workflow: the version asked for, else the one labelled production, else the latest. Names, types and limits of the parameters are checked first; details.parameters tells what is wrong with each.",
        "parameters": ["version", "label", "wait", "Idempotency-Key", "X-Webhook-URL", "X-Comfyd-Pool", "X-Comfyd-Region"],
        "requestBody": {
            "required": false,
            "content": {"application/json": {"schema": {"allOf": [
                {"$ref": "#/components/schemas/NamedRunOptions"},
                {"type": "object", "properties": {"params": {"type": "object", "additionalProperties": true}}}
            ]}}}
        },
        "responses": {
            "200": ["Ended, while the request waited.", "ExecutionResponse"],
            "202": {
                "description": "Accepted.",
                "headers": {
                    "Location": {"schema": {"type": "string"}},
                    "Idempotency-Replayed": {"schema": {"type": "string", "enum": ["true"]}}
                },
                "schema": "ExecutionResponse"
            },
            "400": ["A parameter or an option is wrong."]
        }
    })json");
}

json::object schemas() {
    json::object made = literal(R"json({
        "NamedParameter": {
            "type": "object",
            "properties": {
                "target": {"type": "array", "items": {"type": "string"},
                    "description": "The inputs that it sets, each \"node.input\"; one may stand without the list."},
                "title": {"type": "string"},
                "description": {"type": "string"},
                "type": {"type": "string", "enum": ["any", "string", "integer", "number", "boolean", "file"],
                    "description": "Where it is not said, what the node's input takes."},
                "default": {"description": "Where it is not said, the value in the workflow stays."},
                "minimum": {"type": "number", "description": "Beside the limit of the node's input."},
                "maximum": {"type": "number"},
                "enum": {"type": "array", "items": {}},
                "required": {"type": "boolean", "default": false}
            }
        },
        "NamedWorkflowRequest": {
            "type": "object",
            "required": ["workflow"],
            "properties": {
                "description": {"type": "string", "maxLength": 10000},
                "parameters": {"type": "object",
                    "additionalProperties": {"anyOf": [
                        {"type": "string"},
                        {"type": "array", "items": {"type": "string"}},
                        {"$ref": "#/components/schemas/NamedParameter"}
                    ]},
                    "description": "At most 200. Where none are declared, the well-known ones (prompt, seed, width …) and titled nodes are offered."},
                "check": {"type": "boolean", "default": true,
                    "description": "false: store it though no worker could run it now."}
            },
            "example": {
                "description": "A square of one colour",
                "workflow": {
                    "1": {"class_type": "EmptyImage", "inputs": {"width": 64, "height": 64, "batch_size": 1, "color": 255}},
                    "2": {"class_type": "SaveImage", "inputs": {"images": ["1", 0], "filename_prefix": "square"}}
                },
                "parameters": {
                    "size": {"target": ["1.width", "1.height"], "maximum": 1024},
                    "color": "1.color"
                }
            }
        },
        "NamedWorkflowSummary": {
            "type": "object",
            "required": ["name", "latest_version", "default_version"],
            "properties": {
                "name": {"type": "string", "pattern": "^[a-z0-9][a-z0-9._-]{0,63}$"},
                "description": {"type": "string"},
                "latest_version": {"type": "integer"},
                "default_version": {"type": "integer", "description": "That runs where none is chosen."},
                "version_count": {"type": "integer"},
                "labels": {"type": "object", "additionalProperties": {"type": "integer"}},
                "created_at": {"type": "string", "format": "date-time"},
                "updated_at": {"type": "string", "format": "date-time"}
            }
        },
        "NamedWorkflow": {
            "allOf": [
                {"$ref": "#/components/schemas/NamedWorkflowSummary"},
                {"type": "object", "properties": {
                    "version": {"type": "integer", "description": "That parameters and workflow are of."},
                    "node_count": {"type": "integer"},
                    "parameters": {"type": "object", "additionalProperties": {"$ref": "#/components/schemas/NamedParameter"}},
                    "workflow": {"type": "object", "additionalProperties": true, "description": "As it was sent."},
                    "prompt": {"type": "object", "additionalProperties": true,
                        "description": "Its API format when it was stored, where it came in the editor's."}
                }}
            ]
        },
        "NamedWorkflowList": {
            "type": "object",
            "properties": {
                "workflows": {"type": "array", "items": {"$ref": "#/components/schemas/NamedWorkflowSummary"}},
                "count": {"type": "integer"},
                "next_cursor": {"type": "string", "nullable": true}
            }
        },
        "NamedVersion": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "version": {"type": "integer"},
                "description": {"type": "string"},
                "created_at": {"type": "string", "format": "date-time"},
                "labels": {"type": "array", "items": {"type": "string"}},
                "node_count": {"type": "integer"},
                "parameters": {"type": "object", "additionalProperties": {"$ref": "#/components/schemas/NamedParameter"}},
                "workflow": {"type": "object", "additionalProperties": true},
                "prompt": {"type": "object", "additionalProperties": true}
            }
        },
        "NamedVersionList": {
            "type": "object",
            "properties": {
                "versions": {"type": "array", "items": {"$ref": "#/components/schemas/NamedVersion"}},
                "count": {"type": "integer"},
                "next_cursor": {"type": "string", "nullable": true}
            }
        }
    })json");
    made["NamedWorkflowRequest"].at("properties").as_object()["workflow"] =
        openapi::workflow_property(
            "In API format, as the editor saves it, or either in a wrapper; at most 8 MiB."
        );
    made["NamedRunOptions"] =
        json::object{{"type", "object"}, {"properties", openapi::execution_options()}};
    return made;
}

Task<Result<>> document_workflows(
    const Services& services, std::string tenant, json::object& document
) {
    auto page = co_await services.workflows.list_workflows(
        tenant, std::string(), static_cast<int>(kDocumentedMax)
    );
    if (!page) {
        co_return fail(std::move(page.error()));
    }
    const auto catalogue = services.catalogue();
    json::object& paths = document.at("paths").as_object();
    json::object& components = document.at("components").at("schemas").as_object();
    const json::value security = paths.at("/v2/workflows/{name}/run").at("post").at("security");
    for (const jobs::NamedWorkflow& workflow : page->workflows) {
        Choice choice;
        choice.name = workflow.name;
        auto loaded = co_await load(services, tenant, std::move(choice));
        if (!loaded && loaded.error().code == Code::not_found) {
            continue;  // deleted meanwhile
        }
        if (!loaded) {
            co_return fail(std::move(loaded.error()));
        }
        auto schema = encode_schema(*loaded, *catalogue);
        if (!schema) {
            continue;  // the workers have changed such that it cannot run; a run says why
        }
        paths["/v2/workflows/" + workflow.name + "/run"] =
            json::object{{"post", operation_of(*loaded, *schema, security)}};
        components["WorkflowParams." + workflow.name] = std::move(*schema);
    }
    co_return Result<>();
}

}  // namespace comfyd::api::named
