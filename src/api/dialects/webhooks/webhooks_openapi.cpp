// What /openapi.json says about endpoints and deliveries.
#include "api/dialects/literal.hpp"
#include "api/dialects/openapi_parts.hpp"
#include "api/dialects/webhooks/webhooks.hpp"

namespace comfyd::api::webhooks {
namespace {

json::object operation(std::string_view id, std::string_view text) {
    return openapi::operation(id, "webhooks", text);
}

}  // namespace

json::object operation_list_endpoints() {
    return operation("listWebhookEndpoints", R"json({
        "summary": "The endpoints that are told of all your jobs",
        "responses": {"200": ["All of them.", "WebhookEndpointList"]}
    })json");
}

json::object operation_create_endpoint() {
    return operation("createWebhookEndpoint", R"json({
        "summary": "Have an address told of all your jobs",
        "description": "The answer is the only one that shows the secret.",
        "requestBody": "WebhookEndpointRequest",
        "responses": {
            "201": ["The endpoint, with its secret.", "WebhookEndpoint"],
            "409": ["There are as many endpoints as there can be."]
        }
    })json");
}

json::object operation_get_endpoint() {
    return operation("getWebhookEndpoint", R"json({
        "summary": "An endpoint, without its secret",
        "responses": {"200": ["The endpoint.", "WebhookEndpoint"]}
    })json");
}

json::object operation_change_endpoint() {
    return operation("changeWebhookEndpoint", R"json({
        "summary": "Change an endpoint, or enable one that was disabled",
        "description": "What is left out stays as it is; null goes back to the default. What waits for the endpoint is sent as it is then.",
        "requestBody": "WebhookEndpointRequest",
        "responses": {
            "200": ["The endpoint.", "WebhookEndpoint"],
            "409": ["Somebody else changed it meanwhile."]
        }
    })json");
}

json::object operation_delete_endpoint() {
    return operation("deleteWebhookEndpoint", R"json({
        "summary": "Remove an endpoint",
        "description": "What waits for it becomes dead letters.",
        "responses": {"204": {"description": "It is removed."}}
    })json");
}

json::object operation_rotate_secret() {
    return operation("rotateWebhookSecret", R"json({
        "summary": "Give an endpoint a new secret",
        "description": "The old one signs as well for some time, where the scheme has room for two signatures. The answer is the only one that shows the new one.",
        "requestBody": {"required": false, "content": {"application/json": {"schema": {
            "type": "object",
            "properties": {
                "secret": {"type": "string", "maxLength": 256, "description": "Without it one is made."},
                "old_secret_hours": {"type": "number", "minimum": 0, "maximum": 720, "default": 24}
            }
        }}}},
        "responses": {"200": ["The endpoint, with its new secret.", "WebhookEndpoint"]}
    })json");
}

json::object operation_test_endpoint() {
    return operation("testWebhookEndpoint", R"json({
        "summary": "Send an endpoint a sample and say what came of it",
        "requestBody": {"required": false, "content": {"application/json": {"schema": {
            "type": "object",
            "properties": {"event": {"type": "string", "default": "execution.completed"}}
        }}}},
        "responses": {"200": ["What came of it.", "WebhookTestResult"]}
    })json");
}

json::object operation_list_deliveries() {
    return operation("listWebhookDeliveries", R"json({
        "summary": "What became of messages, of the newest jobs first",
        "description": "A page may have few entries or none and still a next_cursor.",
        "parameters": [
            {"name": "state", "in": "query", "schema": {"type": "string", "enum": ["pending", "delivered", "dead"]}},
            {"name": "receiver", "in": "query", "description": "An endpoint's id; job: the webhook that came with a job.", "schema": {"type": "string"}},
            {"name": "execution_id", "in": "query", "schema": {"type": "string"}},
            {"name": "all_tenants", "in": "query", "description": "For operators.", "schema": {"type": "boolean"}},
            {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": 200, "default": 50}},
            "cursor"
        ],
        "responses": {"200": ["A page of deliveries.", "WebhookDeliveryList"]}
    })json");
}

json::object operation_get_delivery() {
    return operation("getWebhookDelivery", R"json({
        "summary": "A delivery, with its latest attempts and what is sent",
        "responses": {"200": ["The delivery.", "WebhookDelivery"]}
    })json");
}

json::object operation_replay_delivery() {
    return operation("replayWebhookDelivery", R"json({
        "summary": "Send a dead letter again",
        "description": "With its old id, and with all attempts to go.",
        "responses": {
            "202": ["It is due.", "WebhookReplayed"],
            "409": ["It was not given up."]
        }
    })json");
}

json::object operation_delete_delivery() {
    return operation("deleteWebhookDelivery", R"json({
        "summary": "Throw a dead letter away",
        "responses": {
            "204": {"description": "It is gone."},
            "409": ["It was not given up."]
        }
    })json");
}

json::object operation_replay_all() {
    return operation("replayWebhookDeliveries", R"json({
        "summary": "Send all dead letters again, or those to one receiver",
        "parameters": [{"name": "all_tenants", "in": "query", "description": "For operators.", "schema": {"type": "boolean"}}],
        "requestBody": {"required": false, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/WebhookDeadLetters"}}}},
        "responses": {"200": ["How many.", "WebhookReplayed"]}
    })json");
}

json::object operation_purge_all() {
    return operation("purgeWebhookDeliveries", R"json({
        "summary": "Throw all dead letters away, or those to one receiver",
        "parameters": [{"name": "all_tenants", "in": "query", "description": "For operators.", "schema": {"type": "boolean"}}],
        "requestBody": {"required": false, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/WebhookDeadLetters"}}}},
        "responses": {"200": ["How many.", "WebhookPurged"]}
    })json");
}

json::object schemas() {
    return literal(R"json({
        "WebhookEndpointRequest": {
            "type": "object",
            "properties": {
                "url": {"type": "string", "format": "uri", "description": "Needed for a new one."},
                "secret": {"type": "string", "maxLength": 256, "description": "Of a new one; without it one is made."},
                "description": {"type": "string", "maxLength": 1024},
                "events": {"type": "array", "description": "Without it those that end a job. Those of the fleet need the scope admin.", "items": {"type": "string", "enum": ["execution.queued",
                    "execution.started", "execution.progress", "execution.completed", "execution.failed",
                    "execution.cancelled", "execution.warning",
                    "batch.completed", "batch.cancelled", "fleet.*", "fleet.instance.requested", "fleet.instance.creating",
                    "fleet.instance.unclear", "fleet.instance.adopted", "fleet.instance.pulling",
                    "fleet.instance.starting", "fleet.instance.warming", "fleet.instance.ready", "fleet.instance.let_go",
                    "fleet.instance.draining", "fleet.instance.parked", "fleet.instance.failing", "fleet.instance.removing",
                    "fleet.instance.not_removed", "fleet.instance.failed", "fleet.instance.removed", "fleet.stray.removed",
                    "fleet.pool.resized", "fleet.pool.paused", "fleet.pool.resumed", "fleet.provider.out_of_stock",
                    "fleet.provider.refused", "fleet.provider.closed"]}},
                "scheme": {"type": "string", "enum": ["standard", "x-signature", "x-webhook", "all"], "default": "standard"},
                "body": {"type": "string", "enum": ["plain", "cloudevents"], "default": "plain"},
                "method": {"type": "string", "enum": ["POST", "PUT", "PATCH"], "default": "POST"},
                "headers": {"type": "object", "additionalProperties": {"type": "string"}},
                "timeout": {"type": "number", "nullable": true, "minimum": 0.1, "maximum": 300},
                "max_retries": {"type": "integer", "nullable": true, "minimum": 0, "maximum": 100},
                "retry_delay": {"type": "number", "nullable": true, "minimum": 0.001, "maximum": 3600},
                "verify_ssl": {"type": "boolean", "default": true, "description": "False only where the operator allows it."},
                "enabled": {"type": "boolean", "default": true}
            }
        },
        "WebhookEndpoint": {
            "type": "object",
            "required": ["id", "url", "events", "scheme", "body", "enabled", "created_at"],
            "properties": {
                "id": {"type": "string"},
                "url": {"type": "string"},
                "secret": {"type": "string", "description": "Only where it was just made."},
                "description": {"type": "string"},
                "events": {"type": "array", "items": {"type": "string"}},
                "scheme": {"type": "string"},
                "body": {"type": "string"},
                "method": {"type": "string"},
                "headers": {"type": "object", "description": "Their names; values are not shown.", "additionalProperties": {"type": "string"}},
                "timeout": {"type": "number", "nullable": true},
                "max_retries": {"type": "integer", "nullable": true},
                "retry_delay": {"type": "number", "nullable": true},
                "verify_ssl": {"type": "boolean"},
                "enabled": {"type": "boolean"},
                "disabled_reason": {"type": "string", "nullable": true},
                "old_secret_until": {"type": "string", "format": "date-time", "nullable": true},
                "created_at": {"type": "string", "format": "date-time"},
                "updated_at": {"type": "string", "format": "date-time"}
            }
        },
        "WebhookEndpointList": {
            "type": "object",
            "required": ["count", "endpoints"],
            "properties": {
                "count": {"type": "integer"},
                "endpoints": {"type": "array", "items": {"$ref": "#/components/schemas/WebhookEndpoint"}}
            }
        },
        "WebhookTestResult": {
            "type": "object",
            "required": ["delivered", "status", "duration_ms", "error"],
            "properties": {
                "delivered": {"type": "boolean"},
                "status": {"type": "integer", "nullable": true},
                "duration_ms": {"type": "integer"},
                "error": {"type": "string", "nullable": true}
            }
        },
        "WebhookDelivery": {
            "type": "object",
            "required": ["id", "state", "event", "execution_id", "receiver", "attempts", "log"],
            "properties": {
                "id": {"type": "string"},
                "state": {"type": "string", "enum": ["pending", "delivered", "dead"]},
                "event": {"type": "string"},
                "execution_id": {"type": "string"},
                "receiver": {"type": "string", "description": "An endpoint's id; job: the webhook that came with the job."},
                "url": {"type": "string", "nullable": true},
                "attempts": {"type": "integer"},
                "created_at": {"type": "string", "format": "date-time"},
                "next_attempt_at": {"type": "string", "format": "date-time", "nullable": true},
                "ended_at": {"type": "string", "format": "date-time", "nullable": true},
                "error": {"type": "string", "nullable": true},
                "log": {"type": "array", "maxItems": 10, "description": "The latest attempts.", "items": {
                    "type": "object",
                    "properties": {
                        "at": {"type": "string", "format": "date-time"},
                        "status": {"type": "integer", "nullable": true},
                        "duration_ms": {"type": "integer"},
                        "error": {"type": "string", "nullable": true}
                    }
                }},
                "request": {"type": "object", "nullable": true, "description": "What the next attempt would send; only of a delivery that is asked for by itself, by its own tenant. Null: it cannot be told any more, or goes by mail or short message. Signatures and the values of your own headers are '***'.", "properties": {
                    "method": {"type": "string"},
                    "url": {"type": "string"},
                    "headers": {"type": "object", "additionalProperties": {"type": "string"}},
                    "body": {"type": "string"}
                }}
            }
        },
        "WebhookDeliveryList": {
            "type": "object",
            "required": ["count", "deliveries", "next_cursor"],
            "properties": {
                "count": {"type": "integer"},
                "deliveries": {"type": "array", "items": {"$ref": "#/components/schemas/WebhookDelivery"}},
                "next_cursor": {"type": "string", "nullable": true}
            }
        },
        "WebhookDeadLetters": {
            "type": "object",
            "properties": {
                "receiver": {"type": "string", "description": "Only those to this receiver."},
                "execution_id": {"type": "string", "description": "Only those of this job."},
                "dry_run": {"type": "boolean", "default": false, "description": "Nothing is done; 'matching' says to how many it would be."}
            }
        },
        "WebhookReplayed": {
            "type": "object", "required": ["replayed"], "properties": {
                "replayed": {"type": "integer"},
                "matching": {"type": "integer", "description": "Of a dry run: how many there are, at most 10,000."},
                "more": {"type": "boolean", "description": "Of a dry run: there are more than that."}
            }
        },
        "WebhookPurged": {
            "type": "object", "required": ["purged"], "properties": {
                "purged": {"type": "integer"},
                "matching": {"type": "integer", "description": "Of a dry run: how many there are, at most 10,000."},
                "more": {"type": "boolean", "description": "Of a dry run: there are more than that."}
            }
        }
    })json");
}

}  // namespace comfyd::api::webhooks
