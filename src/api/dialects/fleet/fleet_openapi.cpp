#include "api/dialects/fleet/fleet_openapi.hpp"

#include <string>

#include "api/dialects/literal.hpp"

namespace comfyd::api {
namespace {

json::object json_of(std::string_view schema) {
    const json::object reference{{"$ref", "#/components/schemas/" + std::string(schema)}};
    return {{"application/json", {{"schema", reference}}}};
}

}  // namespace

json::object fleet_operation(std::string_view id, std::string_view tag, std::string_view text) {
    json::object made = literal(text);
    made["operationId"] = id;
    made["tags"] = json::array{json::value(tag)};
    if (json::value* body = made.if_contains("requestBody")) {
        const std::string schema(body->as_string());
        *body = json::object{{"required", true}, {"content", json_of(schema)}};
    }
    for (auto& answer : made.at("responses").as_object()) {
        if (const json::array* pair = answer.value().if_array()) {
            const std::string schema(pair->size() > 1 ? pair->at(1).as_string() : "Error");
            answer.value() =
                json::object{{"description", pair->at(0)}, {"content", json_of(schema)}};
        }
    }
    return made;
}

json::object fleet_schemas() {
    return literal(R"json({
        "FleetInstance": {"type": "object", "required": ["id", "pool", "state"], "properties": {
            "id": {"type": "string"}, "worker": {"type": "string"}, "pool": {"type": "string"},
            "state": {"type": "string", "enum": ["requested", "creating", "pulling", "starting", "warming", "ready", "draining", "parked", "removing", "gone", "failed"]},
            "provider": {"type": "string"}, "machine": {"type": "string"}, "url": {"type": "string"},
            "gpu_type": {"type": "string"}, "region": {"type": "string"}, "market": {"type": "string"},
            "usd_per_hour": {"type": "number", "nullable": true},
            "reason": {"type": "string", "description": "Why it is in its state."},
            "since": {"type": "object", "description": "When it came into each state.", "additionalProperties": {"type": "string", "format": "date-time"}}
        }},
        "FleetPool": {"type": "object", "required": ["name", "size", "instances"], "properties": {
            "name": {"type": "string"}, "size": {"type": "integer"}, "size_configured": {"type": "integer"},
            "scaled": {"type": "boolean", "description": "Its size follows from what waits."},
            "ready": {"type": "integer"}, "failed_starts": {"type": "integer", "description": "In a row."},
            "paused": {"type": "boolean", "description": "Nothing is started until it is resumed or its template changes."},
            "paused_why": {"type": "string"},
            "instances": {"type": "array", "items": {"$ref": "#/components/schemas/FleetInstance"}}
        }},
        "FleetEvent": {"type": "object", "required": ["number", "at", "what"], "properties": {
            "number": {"type": "integer"}, "at": {"type": "string", "format": "date-time"},
            "what": {"type": "string"}, "why": {"type": "string"}, "pool": {"type": "string"},
            "instance": {"type": "string"}, "provider": {"type": "string"},
            "tenant": {"type": "string", "description": "Whose budget it is about."}
        }},
        "FleetDecision": {"type": "object", "required": ["pool", "machines", "because", "sentence"], "properties": {
            "pool": {"type": "string"}, "machines": {"type": "integer", "description": "There shall be."},
            "were": {"type": "integer", "description": "There are, those on the way among them."},
            "because": {"type": "string", "enum": ["enough", "work", "zero", "burst", "others", "minimum", "forecast", "spare", "batch", "idle", "kept", "cooldown", "most", "no_use", "budget"]},
            "sentence": {"type": "string"}, "dry_run": {"type": "boolean"},
            "numbers": {"type": "object", "description": "What was weighed.", "additionalProperties": true},
            "start_phases": {"type": "object", "description": "Of what is decided now: seconds that the latest starts took in each phase.", "additionalProperties": {"type": "object", "properties": {"p50": {"type": "number"}, "p90": {"type": "number"}}}},
            "number": {"type": "integer", "description": "Of one that was made before."}, "at": {"type": "string", "format": "date-time"}
        }},
        "FleetDecisions": {"type": "object", "required": ["now", "decisions"], "properties": {
            "now": {"type": "array", "items": {"$ref": "#/components/schemas/FleetDecision"}},
            "decisions": {"type": "array", "items": {"$ref": "#/components/schemas/FleetDecision"}}
        }},
        "FleetEvents": {"type": "object", "required": ["events"], "properties": {
            "events": {"type": "array", "items": {"$ref": "#/components/schemas/FleetEvent"}}
        }},
        "Fleet": {"type": "object", "required": ["fleet", "pools"], "properties": {
            "fleet": {"type": "string"},
            "pools": {"type": "array", "items": {"$ref": "#/components/schemas/FleetPool"}},
            "ended": {"type": "array", "description": "The latest that are no more.", "items": {"$ref": "#/components/schemas/FleetInstance"}},
            "model_bytes_fetched": {"type": "object", "description": "Bytes of models that agents have fetched since this comfyd started: from outside, and from each other.", "properties": {"outside": {"type": "integer"}, "peers": {"type": "integer"}}},
            "events": {"type": "array", "items": {"$ref": "#/components/schemas/FleetEvent"}}
        }},
        "FleetLogs": {"type": "object", "required": ["instance", "text"], "properties": {
            "instance": {"type": "string"}, "text": {"type": "string"}
        }},
        "FleetPoolSize": {"type": "object", "required": ["size"], "additionalProperties": false, "properties": {
            "size": {"type": "integer", "nullable": true, "minimum": 0, "maximum": 1000, "description": "null: as configured."}
        }}
    })json");
}

json::object scale_schemas() {
    return literal(R"json({
        "PoolForecast": {"type": "object", "required": ["pool", "hours"], "properties": {
            "pool": {"type": "string"},
            "hours": {"type": "array", "description": "The present one and those that follow it for a day, where enough is known.", "items": {"type": "object", "required": ["hour", "machines"], "properties": {
                "hour": {"type": "string", "format": "date-time"},
                "machines": {"type": "number", "description": "That would be busy all the time: the median of the same hour of past days."},
                "days": {"type": "integer", "description": "It is made of."},
                "error": {"type": "number", "nullable": true, "description": "Measured: the median of what forecasts of this hour were off by, as a part of what came."},
                "trusted": {"type": "boolean", "description": "Machines are started by it."}
            }}}
        }},
        "PoolScale": {"type": "object", "required": ["pool", "machines", "waiting", "running"], "properties": {
            "pool": {"type": "string"},
            "machines": {"type": "integer", "description": "That the work wants; 0 when there is none."},
            "waiting": {"type": "integer"}, "running": {"type": "integer", "description": "Jobs; those that share a run are one."},
            "slots": {"type": "integer", "description": "Jobs at a time of one machine."},
            "waiting_gpu_seconds": {"type": "number", "description": "Expected."},
            "running_gpu_seconds": {"type": "number", "description": "Expected, of what is left."},
            "within_seconds": {"type": "number"},
            "unserved": {"type": "array", "description": "What waits for machines that no worker is.", "items": {"type": "object", "properties": {
                "gpu_type": {"type": "string"}, "memory_gb": {"type": "number"}, "region": {"type": "string"}, "waiting": {"type": "integer"}
            }}},
            "workers": {"type": "array", "description": "Of the pool, the one that costs least to give up first.", "items": {"type": "object", "required": ["worker", "deletion_cost"], "properties": {
                "worker": {"type": "string"}, "status": {"type": "string"}, "running": {"type": "integer"},
                "running_gpu_seconds": {"type": "number"},
                "models_wanted_by": {"type": "integer", "description": "Waiting jobs that need a model which it has loaded."},
                "deletion_cost": {"type": "integer", "description": "As the annotation controller.kubernetes.io/pod-deletion-cost takes it."}
            }}}
        }}
    })json");
}

json::object gpu_schemas() {
    return literal(R"json({
        "Gpu": {"type": "object", "required": ["gpu_id", "gpu_type", "memory_gb"], "properties": {
            "gpu_id": {"type": "string"}, "gpu_type": {"type": "string"}, "memory_gb": {"type": "number"},
            "available_memory_gb": {"type": "number"}, "current_load": {"type": "number", "minimum": 0, "maximum": 1},
            "allocated_to": {"type": "string", "nullable": true, "description": "A job of the caller that runs there."},
            "last_used": {"type": "string", "format": "date-time"}
        }},
        "GpuPool": {"type": "object", "required": ["total_gpus", "gpus"], "properties": {
            "total_gpus": {"type": "integer"}, "available_gpus": {"type": "integer"},
            "allocated_gpus": {"type": "integer"}, "utilization_percent": {"type": "number"},
            "gpus": {"type": "array", "items": {"$ref": "#/components/schemas/Gpu"}}
        }}
    })json");
}

}  // namespace comfyd::api
