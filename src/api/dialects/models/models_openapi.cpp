// What /openapi.json says about models.
#include "api/dialects/literal.hpp"
#include "api/dialects/models/models.hpp"

namespace comfyd::api {

json::object model_schemas() {
    return literal(R"json({
        "ModelVersion": {"type": "object", "required": ["version", "file"], "properties": {
            "version": {"type": "integer", "minimum": 1},
            "file": {"type": "string", "description": "Its name on workers, by which workflows may name this version."},
            "sources": {"type": "array", "description": "For operators only; without what is behind a '?'.", "items": {"type": "string"}},
            "sha256": {"type": "string"}, "bytes": {"type": "integer"},
            "kind": {"type": "string", "description": "By what is in the file, once somebody has read it: checkpoint, lora, vae, …"},
            "family": {"type": "string", "description": "Likewise the family of models that it is or is made for: sd15, sdxl, flux, …"},
            "dtype": {"type": "string", "description": "Likewise the type of most of its numbers."},
            "created_at": {"type": "string", "format": "date-time"}
        }},
        "Model": {"type": "object", "required": ["folder", "name", "current", "versions"], "properties": {
            "folder": {"type": "string"}, "name": {"type": "string"},
            "current": {"type": "integer", "description": "The version that the name alone means."},
            "source": {"type": "string", "enum": ["configuration", "ledger"]},
            "versions": {"type": "array", "items": {"$ref": "#/components/schemas/ModelVersion"}}
        }},
        "ModelList": {"type": "object", "required": ["models"], "properties": {
            "models": {"type": "array", "items": {"$ref": "#/components/schemas/Model"}},
            "next_cursor": {"type": "string", "nullable": true}
        }},
        "ModelVersionRequest": {"type": "object", "additionalProperties": false, "properties": {
            "source": {"type": "string", "description": "https://…, hf:OWNER/REPO@REVISION/PATH, civitai:VERSION, s3://BUCKET/KEY of a store of the configuration, or upload:SHA256."},
            "sources": {"type": "array", "maxItems": 8, "description": "In place of it: the first that has the file is taken.", "items": {"type": "string"}},
            "sha256": {"type": "string", "pattern": "^[0-9a-fA-F]{64}$"},
            "bytes": {"type": "integer", "minimum": 1},
            "current": {"type": "boolean", "default": true}
        }},
        "ModelContent": {"type": "object", "required": ["sha256", "state", "bytes"], "properties": {
            "sha256": {"type": "string"},
            "state": {"type": "string", "enum": ["partial", "ready"]},
            "bytes": {"type": "integer", "description": "That are there; a partial one goes on from here."},
            "kind": {"type": "string"}, "family": {"type": "string"}, "dtype": {"type": "string"}
        }},
        "ModelCurrentRequest": {"type": "object", "required": ["version"], "properties": {
            "version": {"type": "integer", "minimum": 1}
        }}
    })json");
}

}  // namespace comfyd::api
