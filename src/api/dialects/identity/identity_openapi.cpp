// What /openapi.json says about tenants and keys.
#include "api/dialects/identity/identity.hpp"
#include "api/dialects/literal.hpp"

namespace comfyd::api::identity {
namespace {

json::object json_of(std::string_view schema) {
    const json::object reference{{"$ref", "#/components/schemas/" + std::string(schema)}};
    return {{"application/json", {{"schema", reference}}}};
}

// In short forms: "requestBody": "Schema"; "responses": {"200": ["What.", "Schema"]}, or without a
// schema where it is a refusal; "is_list": true for what lists have in common.
json::object operation(std::string_view id, std::string_view text) {
    json::object made = literal(text);
    made["operationId"] = id;
    made["tags"] = json::array{"admin"};
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
    if (made.erase("is_list") > 0) {
        json::array& parameters = made["parameters"].emplace_array();
        parameters = literal(R"json({"all": [
            {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 1000}},
            {"name": "cursor", "in": "query", "description": "next_cursor of the page before.", "schema": {"type": "string"}}
        ]})json")
                         .at("all")
                         .as_array();
    }
    return made;
}

}  // namespace

json::object operation_list_tenants() {
    return operation("adminListTenants", R"json({
        "summary": "The tenants of the configuration and those made at run time",
        "is_list": true,
        "responses": {"200": ["A page of them, by name.", "TenantList"]}
    })json");
}

json::object operation_create_tenant() {
    return operation("adminCreateTenant", R"json({
        "summary": "Make a tenant",
        "description": "A key may belong to a tenant that was never made: then nothing is set for it.",
        "requestBody": "TenantRequest",
        "responses": {
            "201": ["The tenant.", "Tenant"],
            "409": ["There is one of this name."]
        }
    })json");
}

json::object operation_get_tenant() {
    return operation("adminGetTenant", R"json({
        "summary": "A tenant",
        "responses": {"200": ["The tenant.", "Tenant"], "404": ["There is none."]}
    })json");
}

json::object operation_change_tenant() {
    return operation("adminChangeTenant", R"json({
        "summary": "Change what holds for a tenant",
        "description": "What is left out stays as it is; null goes back to the default. All nodes see it within seconds.",
        "requestBody": "TenantMembers",
        "responses": {
            "200": ["The tenant.", "Tenant"],
            "404": ["There is none."],
            "409": ["It is set in the configuration, or somebody else changed it meanwhile."]
        }
    })json");
}

json::object operation_delete_tenant() {
    return operation("adminDeleteTenant", R"json({
        "summary": "Forget what was set for a tenant",
        "description": "Its jobs and files stay.",
        "responses": {
            "204": {"description": "It is forgotten."},
            "404": ["There is none."],
            "409": ["It has keys that are good, or is set in the configuration."]
        }
    })json");
}

json::object operation_list_keys() {
    json::object made = operation("adminListKeys", R"json({
        "summary": "The API keys, without the keys themselves",
        "is_list": true,
        "responses": {"200": ["A page of them.", "ApiKeyList"]}
    })json");
    made["parameters"].as_array().push_back(literal(
        R"json({"name": "tenant", "in": "query", "description": "Only those of this tenant.", "schema": {"type": "string"}})json"
    ));
    return made;
}

json::object operation_create_key() {
    return operation("adminCreateKey", R"json({
        "summary": "Make an API key",
        "description": "The answer is the only one that shows the key.",
        "requestBody": "ApiKeyRequest",
        "responses": {"201": ["The key.", "ApiKey"]}
    })json");
}

json::object operation_get_key() {
    return operation("adminGetKey", R"json({
        "summary": "An API key, without the key itself",
        "responses": {"200": ["The key.", "ApiKey"], "404": ["There is none of this id."]}
    })json");
}

json::object operation_rotate_key() {
    return operation("adminRotateKey", R"json({
        "summary": "A new key in place of the old one, which stays good for a while",
        "description": "The id stays. The answer is the only one that shows the new key.",
        "requestBody": "ApiKeyRotation",
        "responses": {
            "200": ["The key.", "ApiKey"],
            "404": ["There is none of this id."],
            "409": ["It was revoked or has expired, or somebody else changed it meanwhile."]
        }
    })json");
}

json::object operation_revoke_key() {
    return operation("adminRevokeKey", R"json({
        "summary": "Let a key be good no more",
        "description": "It stays on the list. All nodes refuse it within seconds.",
        "responses": {"200": ["The key.", "ApiKey"], "404": ["There is none of this id."]}
    })json");
}

json::object operation_delete_key() {
    return operation("adminDeleteKey", R"json({
        "summary": "Forget a key, which then is not known any more",
        "responses": {"204": {"description": "It is forgotten."}, "404": ["There is none of this id."]}
    })json");
}

json::object schemas() {
    return literal(R"json({
        "TenantMembers": {
            "type": "object",
            "properties": {
                "tier": {"type": "string", "nullable": true, "enum": ["free", "basic", "premium", "pro", "enterprise", null], "description": "null: as its tokens name it, or else as limits.tier_default."},
                "disabled": {"type": "boolean", "nullable": true, "description": "Nothing that shows its keys or tokens is let in."},
                "weight": {"type": "number", "nullable": true, "description": "Of its part of the GPU-seconds."},
                "running_max": {"type": "integer", "nullable": true, "description": "Jobs at a time; 0: as its tier has it."},
                "gpu_seconds_per_day": {"type": "number", "nullable": true, "description": "When little of it is left its jobs go later, and when nothing is, they are refused; 0: as its tier has it."},
                "requests_per_minute": {"type": "number", "nullable": true, "description": "null: as its tier has it; 0: no limit. Likewise the following."},
                "queued_max": {"type": "number", "nullable": true, "description": "Jobs that wait or run; null: as its tier has it."},
                "stored_mb_max": {"type": "number", "nullable": true},
                "gpu_seconds_per_month": {"type": "number", "nullable": true},
                "usd_per_day": {"type": "number", "nullable": true},
                "usd_per_month": {"type": "number", "nullable": true},
                "budget": {"type": "object", "nullable": true, "description": "What its jobs may cost, in dollars: once it is spent they wait until it begins anew.", "additionalProperties": false, "properties": {
                    "usd_per_hour": {"type": "number", "minimum": 0}, "usd_per_day": {"type": "number", "minimum": 0}, "usd_per_month": {"type": "number", "minimum": 0}}},
                "reuse": {"type": "boolean", "nullable": true, "description": "Its jobs may be answered with stored outputs unless they say no."},
                "pool": {"type": "string", "nullable": true, "description": "Where a request names none."},
                "store": {"type": "string", "nullable": true, "description": "Where its outputs go."},
                "retention": {"type": "string", "nullable": true, "enum": ["immediate", "standard", "archive", "glacier", null]},
                "denied_nodes": {"type": "array", "nullable": true, "items": {"type": "string"}},
                "allowed_nodes": {"type": "array", "nullable": true, "items": {"type": "string"}, "description": "Empty: as set for all."},
                "allowed_pools": {"type": "array", "nullable": true, "items": {"type": "string"}, "description": "Empty: all."},
                "allowed_stores": {"type": "array", "nullable": true, "items": {"type": "string"}, "description": "Empty: all."}}
        },
        "TenantRequest": {"allOf": [
            {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
            {"$ref": "#/components/schemas/TenantMembers"}
        ]},
        "Tenant": {"allOf": [
            {"type": "object", "required": ["name", "source", "revision"], "properties": {
                "name": {"type": "string"},
                "source": {"type": "string", "enum": ["configuration", "ledger"]},
                "revision": {"type": "integer", "description": "Counts its changes."}}},
            {"$ref": "#/components/schemas/TenantMembers"}
        ]},
        "TenantList": {
            "type": "object",
            "required": ["tenants", "next_cursor"],
            "properties": {
                "tenants": {"type": "array", "items": {"$ref": "#/components/schemas/Tenant"}},
                "next_cursor": {"type": "string", "nullable": true}}
        },
        "ApiKeyRequest": {
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": {"type": "string", "description": "For people."},
                "tenant": {"type": "string", "description": "Whose it is; without it, the name."},
                "scopes": {"type": "array", "items": {"type": "string"}, "description": "jobs:read, jobs:write, assets:read, assets:write, workflows:read, workflows:write, metrics:read, admin; jobs:* for both, * for all of a tenant, which is the default."},
                "expires_at": {"type": "string", "format": "date-time"},
                "expires_in_days": {"type": "number"},
                "requests_per_minute": {"type": "number", "description": "Within what its tenant may; without it, as that."}}
        },
        "ApiKeyRotation": {
            "type": "object",
            "properties": {"old_key_hours": {"type": "number", "default": 24, "minimum": 0, "maximum": 720, "description": "How long the old key stays good."}}
        },
        "ApiKey": {
            "type": "object",
            "required": ["id", "name", "tenant", "scopes", "source", "status", "created_at", "expires_at", "revoked_at", "last_used_at", "old_key_until", "requests_per_minute"],
            "properties": {
                "id": {"type": "string", "nullable": true, "description": "The letters after ck_live_; null for keys of the configuration."},
                "name": {"type": "string"},
                "tenant": {"type": "string"},
                "scopes": {"type": "array", "items": {"type": "string"}},
                "source": {"type": "string", "enum": ["configuration", "ledger"]},
                "status": {"type": "string", "enum": ["live", "expired", "revoked"]},
                "created_at": {"type": "string", "format": "date-time", "nullable": true},
                "expires_at": {"type": "string", "format": "date-time", "nullable": true},
                "revoked_at": {"type": "string", "format": "date-time", "nullable": true},
                "last_used_at": {"type": "string", "format": "date-time", "nullable": true, "description": "To the minute."},
                "old_key_until": {"type": "string", "format": "date-time", "nullable": true, "description": "After a rotation: how long the key of before is good."},
                "requests_per_minute": {"type": "number", "nullable": true, "description": "null: as its tenant may."},
                "key": {"type": "string", "description": "Where it was made or rotated by this request."},
                "enforced": {"type": "boolean", "description": "Beside 'key'; false: this server asks for no keys yet."}}
        },
        "ApiKeyList": {
            "type": "object",
            "required": ["keys", "enforced", "next_cursor"],
            "properties": {
                "keys": {"type": "array", "items": {"$ref": "#/components/schemas/ApiKey"}},
                "enforced": {"type": "boolean", "description": "false: this server asks for no keys yet."},
                "next_cursor": {"type": "string", "nullable": true}}
        }
    })json");
}

}  // namespace comfyd::api::identity
