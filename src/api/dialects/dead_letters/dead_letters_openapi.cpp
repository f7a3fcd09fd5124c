// The OpenAPI text of the routes for dead letters.
#include "api/dialects/dead_letters/dead_letters.hpp"
#include "base/assert.hpp"

namespace comfyd::api::dead_letters {
namespace {

constexpr std::string_view kOperations = R"json({
"listDeadLetters": {
  "operationId": "listDeadLetters", "tags": ["jobs"], "summary": "List failed jobs with their causes, newest first",
  "parameters": [
    {"name": "cause", "in": "query", "schema": {"$ref": "#/components/schemas/Cause"}},
    {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": 200, "default": 50}},
    {"name": "cursor", "in": "query", "description": "next_cursor of the page before.", "schema": {"type": "string"}},
    {"name": "all_tenants", "in": "query", "description": "For operators.", "schema": {"type": "boolean"}}],
  "responses": {"200": {"description": "One page. It may be empty and have a next one, where few of many have the cause.", "content": {"application/json": {"schema": {
    "type": "object", "required": ["dead_letters", "next_cursor"], "properties": {
      "dead_letters": {"type": "array", "items": {"$ref": "#/components/schemas/DeadLetter"}},
      "next_cursor": {"type": "string", "nullable": true}}}}}}}},
"getDeadLetter": {
  "operationId": "getDeadLetter", "tags": ["jobs"], "summary": "A failed job with its attempts, its workflow and what it had finished",
  "responses": {"200": {"description": "The dead letter.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/DeadLetter"}}}}}},
"retryDeadLetter": {
  "operationId": "retryDeadLetter", "tags": ["jobs"], "summary": "Run a failed job again as a new one, with changes",
  "description": "The failed job stays as it is; the new one names it as retried_from. The body may be empty. To run the same job again without changes: POST /api/v2/jobs/{id}/retry.",
  "requestBody": {"content": {"application/json": {"schema": {"type": "object", "additionalProperties": true, "properties": {
    "inputs": {"type": "object", "additionalProperties": true, "description": "Values by \"node.input\", set in the workflow first."},
    "priority": {"type": "integer", "minimum": 1, "maximum": 10},
    "pool": {"type": "string"}, "region": {"type": "string", "maxLength": 64},
    "gpu_requirements": {"type": "object", "properties": {"gpu_type": {"type": "string", "maxLength": 64}, "memory_gb": {"type": "number", "minimum": 0, "maximum": 4096}}},
    "timeout": {"type": "number", "minimum": 1, "maximum": 604800},
    "max_attempts": {"type": "integer", "minimum": 1, "maximum": 10}}}}}},
  "responses": {
    "201": {"description": "The new job.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Job"}}}},
    "422": {"description": "The workflow with these changes cannot run.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}}}},
"purgeDeadLetter": {
  "operationId": "purgeDeadLetter", "tags": ["jobs"], "summary": "Remove a failed job with all that is stored of it",
  "responses": {
    "200": {"description": "It is gone.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Purged"}}}},
    "409": {"description": "conflict: it is needed still.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}}}},
"purgeDeadLetters": {
  "operationId": "purgeDeadLetters", "tags": ["jobs"], "summary": "Remove failed jobs, some at a time",
  "parameters": [{"name": "all_tenants", "in": "query", "description": "For operators.", "schema": {"type": "boolean"}}],
  "requestBody": {"content": {"application/json": {"schema": {"type": "object", "properties": {
    "cause": {"$ref": "#/components/schemas/Cause"},
    "created_before": {"type": "string", "format": "date-time"}}}}}},
  "responses": {"200": {"description": "How many went; ask again while there are more.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Purged"}}}}}}
})json";

constexpr std::string_view kSchemas = R"json({
"Cause": {"type": "string", "enum": ["validation", "node_error", "out_of_memory", "cuda_fault", "hung", "worker_lost",
  "worker_refused", "worker_misconfigured", "worker_disk_full", "model_missing", "model_damaged", "model_unavailable", "interrupted", "timeout",
  "storage", "poison", "unknown"]},
"Attempt": {"type": "object", "required": ["attempt", "worker", "started_at"], "properties": {
  "attempt": {"type": "integer"}, "worker": {"type": "string"},
  "started_at": {"type": "string", "format": "date-time"},
  "ended_at": {"type": "string", "format": "date-time", "nullable": true},
  "cause": {"type": "string", "nullable": true}, "code": {"type": "string", "nullable": true},
  "message": {"type": "string", "nullable": true}, "node_id": {"type": "string", "nullable": true},
  "retry_at": {"type": "string", "format": "date-time", "nullable": true}}},
"DeadLetter": {"type": "object", "required": ["id", "failed_at", "code", "message", "job"], "properties": {
  "id": {"type": "string"}, "tenant": {"type": "string"}, "job": {"type": "string", "description": "Path of the job."},
  "workflow_id": {"type": "string", "nullable": true},
  "created_at": {"type": "string", "format": "date-time"}, "failed_at": {"type": "string", "format": "date-time"},
  "cause": {"$ref": "#/components/schemas/Cause"}, "category": {"type": "string"}, "code": {"type": "string"},
  "message": {"type": "string"}, "advice": {"type": "string"}, "suggested_action": {"type": "string"},
  "retryable": {"type": "boolean"}, "retry_after": {"type": "integer", "nullable": true},
  "node_id": {"type": "string", "nullable": true}, "class_type": {"type": "string", "nullable": true},
  "worker": {"type": "string", "nullable": true}, "attempt": {"type": "integer", "description": "Of how many attempts it was the last."},
  "outputs": {"description": "That were finished before: how many; of one that is asked for by itself, which."},
  "attempts": {"type": "array", "items": {"$ref": "#/components/schemas/Attempt"}},
  "traceback": {"type": "string", "nullable": true}, "details": {"type": "object", "additionalProperties": true},
  "workflow": {"type": "object", "nullable": true, "additionalProperties": true}}},
"Purged": {"type": "object", "required": ["purged"], "properties": {
  "purged": {"type": "integer"}, "more": {"type": "boolean"}}}
})json";

json::object parse_text(std::string_view text) {
    auto parsed = json::parse_object(text);
    COMFYD_ASSERT(parsed.has_value());
    return std::move(*parsed);
}

}  // namespace

json::object operation(std::string_view operation_id) {
    static const json::object kAll = parse_text(kOperations);
    return kAll.at(operation_id).as_object();
}

json::object schemas() {
    return parse_text(kSchemas);
}

}  // namespace comfyd::api::dead_letters
