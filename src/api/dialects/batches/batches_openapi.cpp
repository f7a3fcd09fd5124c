// What /openapi.json says about batches.
#include "api/dialects/batches/batches.hpp"
#include "api/dialects/literal.hpp"
#include "api/dialects/openapi_parts.hpp"

namespace comfyd::api::batches {

json::object operation(std::string_view id, std::string_view text) {
    return openapi::operation(id, "batches", text);
}

json::object schemas() {
    json::object made = literal(R"json({
        "BatchCounts": {
            "type": "object",
            "required": ["total", "completed", "failed"],
            "properties": {
                "total": {"type": "integer"},
                "completed": {"type": "integer"},
                "failed": {"type": "integer"},
                "cancelled": {"type": "integer"},
                "running": {"type": "integer", "description": "That are jobs now."},
                "waiting": {"type": "integer"}
            }
        },
        "Batch": {
            "type": "object",
            "required": ["id", "status", "request_counts"],
            "properties": {
                "id": {"type": "string", "format": "uuid"},
                "object": {"type": "string", "enum": ["batch"]},
                "status": {"type": "string",
                    "enum": ["loading", "running", "paused", "cancelling", "completed", "cancelled"],
                    "description": "completed: every item has ended, well or not."},
                "request_counts": {"$ref": "#/components/schemas/BatchCounts"},
                "progress": {"type": "number", "minimum": 0, "maximum": 1},
                "created_at": {"type": "string", "format": "date-time"},
                "ended_at": {"type": "string", "format": "date-time", "nullable": true},
                "name": {"type": "string", "nullable": true},
                "workflow_id": {"type": "string", "nullable": true},
                "metadata": {"type": "object", "nullable": true, "additionalProperties": true},
                "urls": {"type": "object", "additionalProperties": {"type": "string"}}
            }
        },
        "BatchList": {
            "type": "object",
            "properties": {
                "batches": {"type": "array", "items": {"$ref": "#/components/schemas/Batch"}},
                "count": {"type": "integer"},
                "next_cursor": {"type": "string", "nullable": true}
            }
        },
        "BatchItem": {
            "type": "object",
            "required": ["index", "status", "params", "outputs"],
            "properties": {
                "index": {"type": "integer", "minimum": 0},
                "custom_id": {"type": "string", "nullable": true},
                "job_id": {"type": "string", "nullable": true},
                "status": {"type": "string", "enum": ["waiting", "running", "completed", "failed", "cancelled"]},
                "params": {"type": "object", "additionalProperties": true},
                "outputs": {"type": "array", "items": {
                    "type": "object",
                    "properties": {
                        "path": {"type": "string", "description": "In the archive."},
                        "asset_id": {"type": "string"},
                        "hash": {"type": "string"},
                        "size_bytes": {"type": "integer"},
                        "content_type": {"type": "string"}
                    }
                }},
                "error": {"type": "object", "nullable": true, "additionalProperties": true}
            }
        },
        "BatchItemList": {
            "type": "object",
            "properties": {
                "items": {"type": "array", "items": {"$ref": "#/components/schemas/BatchItem"}},
                "count": {"type": "integer"},
                "next_cursor": {"type": "string", "nullable": true}
            }
        },
        "BatchRequest": {
            "type": "object",
            "required": ["workflow"],
            "properties": {
                "name": {"type": "string", "maxLength": 200},
                "parameters": {"type": "object", "additionalProperties": true,
                    "description": "What the workflow's parameters are, as for a named workflow. Where none are declared, the well-known ones (prompt, seed, width …), titled nodes and \"node.input\" can be set."},
                "items": {"type": "array", "items": {"type": "object", "additionalProperties": true},
                    "description": "Sets of parameters, each {\"custom_id\"?, \"params\": {…}} or the values themselves."},
                "params": {"type": "object", "additionalProperties": true,
                    "description": "Values of all items, where an item does not say otherwise."},
                "input_asset_id": {"type": "string", "description": "A file with the sets, which was uploaded before."},
                "format": {"type": "string", "enum": ["csv", "jsonl", "json"],
                    "description": "Of the file, where its name and type do not tell."}
            },
            "example": {
                "workflow": {
                    "1": {"class_type": "EmptyImage", "inputs": {"width": 64, "height": 64, "batch_size": 1, "color": 255}},
                    "2": {"class_type": "SaveImage", "inputs": {"images": ["1", 0], "filename_prefix": "square"}}
                },
                "items": [
                    {"custom_id": "red", "params": {"1.color": 16711680}},
                    {"custom_id": "blue", "params": {"1.color": 255}}
                ]
            }
        }
    })json");
    json::object& properties = made["BatchRequest"].at("properties").as_object();
    properties["workflow"] = openapi::workflow_property(
        "In API format, as the editor saves it, or either in a wrapper; or the name of a stored "
        "workflow, with a version or a label (\"portrait@3\")."
    );
    for (auto& option : openapi::execution_options()) {
        properties[option.key()] = std::move(option.value());
    }
    return made;
}

}  // namespace comfyd::api::batches
