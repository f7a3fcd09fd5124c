// The OpenAPI text of the Comfy API v2 routes.
#include "api/dialects/comfy_v2/comfy_v2_parts.hpp"
#include "base/assert.hpp"

namespace comfyd::api::v2 {
namespace {

constexpr std::string_view kOperations = R"json({
"postJobs": {
  "operationId": "postJobs", "tags": ["jobs"], "summary": "Submit a workflow",
  "description": "Answers when the job is stored safely. An Idempotency-Key is good for one request: any later one with it is refused.",
  "parameters": [{"name": "Idempotency-Key", "in": "header", "schema": {"type": "string", "maxLength": 255}}],
  "requestBody": {"required": true, "content": {"application/json": {"schema": {
    "type": "object", "required": ["workflow"], "properties": {
      "workflow": {"oneOf": [{"type": "object", "additionalProperties": true}, {"type": "string"}], "description": "API format: nodes by id. As text (an extension): where a picture that ComfyUI saved, or a JSON file, is to be had: https://…, data:<type>;base64,…, asset:<id>, blake3:<hash>. Where a loader takes a file, it may be an http(s) address, data:<type>;base64,<content>, asset:<id> or blake3:<hash>; addresses are fetched before the answer."},
      "extra_data": {"type": "object", "additionalProperties": false, "properties": {
        "api_key_comfy_org": {"type": "string"}, "auth_token_comfy_org": {"type": "string"},
        "extra_pnginfo": {"type": "object"}}},
      "inputs": {"type": "object", "description": "Values by \"node.input\", set in the workflow first.", "additionalProperties": true},
      "priority": {"type": "integer", "minimum": 1, "maximum": 10, "default": 5},
      "class": {"type": "string", "enum": ["batch"], "description": "batch: best effort, after everything that is not. The other classes follow from priority."},
      "fairness_key": {"type": "string", "maxLength": 128, "description": "One of your own users or projects: they share your part of the GPUs evenly. Also as header X-Comfyd-Fairness-Key."},
      "pool": {"type": "string", "description": "Only workers of this pool may run it; without it the tenant's pool, or any worker. Also as header X-Comfyd-Pool."},
      "region": {"type": "string", "maxLength": 64, "description": "Only workers that stand there may run it. Also as header X-Comfyd-Region."},
      "gpu_requirements": {"type": "object", "description": "The GPU that it must run on.", "properties": {"gpu_type": {"type": "string", "maxLength": 64, "description": "A kind, such as RTX 4090."}, "memory_gb": {"type": "number", "minimum": 0, "maximum": 4096, "description": "At least; workers that share a GPU keep it for the job."}}},
      "gpu_memory_fraction": {"type": "number", "minimum": 0, "maximum": 1, "description": "Of its GPU's memory, what the job may take beside others."},
      "reuse": {"type": "boolean", "description": "Answer with the outputs of an earlier job of yours that did the same, where there is one, and share one run with those that do the same now. Default: as set for the tenant."},
      "timeout": {"type": "number", "minimum": 1, "maximum": 604800, "description": "Seconds that one attempt may take."},
      "deadline": {"type": "string", "format": "date-time"},
      "max_attempts": {"type": "integer", "minimum": 1, "maximum": 10, "default": 3},
      "metadata": {"type": "object", "description": "Handed back as it came; 16 KB at most.", "additionalProperties": true},
      "workflow_id": {"type": "string", "maxLength": 255},
      "retention": {"type": "string", "enum": ["immediate", "standard", "archive", "glacier"], "description": "How long outputs are kept. Default: as set for the tenant."},
      "output_config": {"$ref": "#/components/schemas/OutputConfig"},
      "webhook_url": {"type": "string", "format": "uri"},
      "webhook_config": {"$ref": "#/components/schemas/WebhookConfig"}}}}}},
  "responses": {
    "201": {"description": "The job, queued.",
      "headers": {"Location": {"schema": {"type": "string"}}},
      "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Job"}}}},
    "422": {"description": "invalid_workflow, workflow_format_ui, missing_asset, no_capable_worker, invalid_argument or idempotency_key_reuse.",
      "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}},
    "429": {"description": "queue_full: try again after Retry-After seconds.",
      "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}}}},
"listJobs": {
  "operationId": "listJobs", "tags": ["jobs"], "summary": "List jobs, newest first",
  "parameters": [
    {"name": "status", "in": "query", "description": "One or several, with commas.", "schema": {"type": "string"}},
    {"name": "workflow_id", "in": "query", "schema": {"type": "string"}},
    {"name": "created_after", "in": "query", "schema": {"type": "string", "format": "date-time"}},
    {"name": "created_before", "in": "query", "schema": {"type": "string", "format": "date-time"}},
    {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 50}},
    {"name": "cursor", "in": "query", "description": "next_cursor of the page before.", "schema": {"type": "string"}}],
  "responses": {"200": {"description": "One page.", "content": {"application/json": {"schema": {
    "type": "object", "required": ["jobs", "next_cursor"], "properties": {
      "jobs": {"type": "array", "items": {"$ref": "#/components/schemas/Job"}},
      "next_cursor": {"type": "string", "nullable": true}}}}}}}},
"getJob": {
  "operationId": "getJob", "tags": ["jobs"], "summary": "Read a job",
  "responses": {"200": {"description": "The job.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Job"}}}}}},
"cancelJob": {
  "operationId": "cancelJob", "tags": ["jobs"], "summary": "Cancel a job",
  "description": "May be repeated; a job that has ended stays as it is.",
  "responses": {"200": {"description": "The job as it is now.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Job"}}}}}},
"retryJob": {
  "operationId": "retryJob", "tags": ["jobs"], "summary": "Queue a failed, canceled or expired job again",
  "responses": {
    "200": {"description": "The job, queued.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Job"}}}},
    "409": {"description": "conflict: the job is in no state for it.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}}}},
"getJobWorkflow": {
  "operationId": "getJobWorkflow", "tags": ["jobs"], "summary": "The workflow that a job runs",
  "responses": {"200": {"description": "The workflow in API format.", "content": {"application/json": {"schema": {
    "type": "object", "required": ["workflow", "format"], "properties": {
      "workflow": {"type": "object", "additionalProperties": true},
      "format": {"type": "string", "enum": ["api"]}}}}}}}},
"getJobEvents": {
  "operationId": "getJobEvents", "tags": ["jobs"], "summary": "Watch a job (Server-Sent Events)",
  "description": "Opens with the current status and progress, or goes on after Last-Event-ID. Events: status, progress, preview, output. Ends after the final status.",
  "parameters": [
    {"name": "Last-Event-ID", "in": "header", "schema": {"type": "string"}},
    {"name": "last_event_id", "in": "query", "schema": {"type": "string"}},
    {"name": "previews", "in": "query", "description": "1 or 0. Without it previews come to clients that accept text/event-stream by name.", "schema": {"type": "integer", "enum": [0, 1]}}],
  "responses": {
    "200": {"description": "The stream.", "content": {"text/event-stream": {"schema": {"type": "string"}}}},
    "204": {"description": "The job has ended and the client has seen everything."},
    "429": {"description": "too_many_streams: read the job instead.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}}}},
"getApiHealth": {
  "operationId": "getApiHealth", "tags": ["operations"], "summary": "Whether this API can take jobs",
  "responses": {"200": {"description": "It can."}, "503": {"description": "It cannot now; the reason is in the body."}}},
"postAssets": {
  "operationId": "postAssets", "tags": ["assets"], "summary": "Upload a file",
  "description": "The parts may come in any order. The same Idempotency-Key and content give the same asset again, as long as it exists.",
  "parameters": [{"name": "Idempotency-Key", "in": "header", "schema": {"type": "string", "maxLength": 255}}],
  "requestBody": {"required": true, "content": {"multipart/form-data": {"schema": {
    "type": "object", "required": ["file"], "properties": {
      "file": {"type": "string", "format": "binary"},
      "content_type": {"type": "string"},
      "file_path": {"type": "string", "maxLength": 1024},
      "expected_hash": {"type": "string", "description": "blake3:<hex>; checked, never trusted."},
      "tags": {"type": "array", "items": {"type": "string"}},
      "expires_in": {"type": "integer", "minimum": 60, "maximum": 604800}}}}}},
  "responses": {
    "201": {"description": "Stored.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Asset"}}}},
    "200": {"description": "The same bytes were there already; a new record over them.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Asset"}}}},
    "409": {"description": "hash_mismatch.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}},
    "413": {"description": "payload_too_large.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}},
    "422": {"description": "invalid_argument, or idempotency_key_reuse: the key was used for other content.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}}}},
"assetFromHash": {
  "operationId": "assetFromHash", "tags": ["assets"], "summary": "A new asset over bytes that are already here",
  "parameters": [{"name": "Idempotency-Key", "in": "header", "schema": {"type": "string", "maxLength": 255}}],
  "requestBody": {"required": true, "content": {"application/json": {"schema": {
    "type": "object", "required": ["hash"], "properties": {
      "hash": {"type": "string"}, "file_path": {"type": "string", "maxLength": 1024},
      "tags": {"type": "array", "items": {"type": "string"}},
      "expires_in": {"type": "integer", "minimum": 60, "maximum": 604800}}}}}},
  "responses": {
    "201": {"description": "The asset.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Asset"}}}},
    "404": {"description": "blob_not_found.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}}}},
"headAssetByHash": {
  "operationId": "headAssetByHash", "tags": ["assets"], "summary": "Whether bytes with this hash are already here",
  "responses": {"200": {"description": "They are."}, "404": {"description": "They are not."}}},
"getAsset": {
  "operationId": "getAsset", "tags": ["assets"], "summary": "Read an asset's record, with a fresh link",
  "responses": {"200": {"description": "The asset.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Asset"}}}}}},
"deleteAsset": {
  "operationId": "deleteAsset", "tags": ["assets"], "summary": "Delete an asset's record",
  "responses": {
    "204": {"description": "Deleted."},
    "409": {"description": "asset_in_use: of a job that has not ended, or in use by a named workflow.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}}}},
"getAssetContent": {
  "operationId": "getAssetContent", "tags": ["assets"], "summary": "Download an asset",
  "description": "With an API key, or with the expires and signature of a link from 'url'.",
  "parameters": [
    {"name": "Range", "in": "header", "schema": {"type": "string"}},
    {"name": "expires", "in": "query", "schema": {"type": "string"}},
    {"name": "signature", "in": "query", "schema": {"type": "string"}},
    {"name": "download", "in": "query", "description": "1: as an attachment.", "schema": {"type": "integer"}}],
  "responses": {
    "200": {"description": "The bytes.", "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}},
    "206": {"description": "A part of them.", "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}},
    "202": {"description": "They are being brought back from cold storage: ask again later.", "content": {"application/json": {"schema": {"type": "object", "properties": {"status": {"type": "string", "enum": ["restoring"]}}}}}},
    "302": {"description": "They are to be had at Location, for a while."},
    "304": {"description": "The client has them already."},
    "416": {"description": "range_not_satisfiable.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}}}}
})json";

constexpr std::string_view kSchemas = R"json({
"JobStatus": {"type": "string", "enum": ["queued", "running", "succeeded", "canceling", "canceled", "failed", "expired"]},
"Progress": {"type": "object", "required": ["value", "nodes_done", "nodes_total"], "properties": {
  "value": {"type": "number", "minimum": 0, "maximum": 1},
  "nodes_done": {"type": "integer"}, "nodes_total": {"type": "integer"},
  "current_node": {"type": "string", "nullable": true}, "current_node_class": {"type": "string", "nullable": true},
  "step": {"type": "integer", "nullable": true}, "steps": {"type": "integer", "nullable": true},
  "message": {"type": "string", "nullable": true}}},
"Output": {"type": "object", "required": ["node_id", "name", "type", "content_type", "size_bytes", "id", "hash", "url", "url_expires_at"], "properties": {
  "node_id": {"type": "string"}, "name": {"type": "string"},
  "type": {"type": "string", "enum": ["image", "video", "audio", "text", "file", "latent"]},
  "content_type": {"type": "string"}, "size_bytes": {"type": "integer", "format": "int64"},
  "id": {"type": "string"}, "hash": {"type": "string", "nullable": true},
  "url": {"type": "string", "format": "uri"}, "url_expires_at": {"type": "string", "format": "date-time"},
  "job_id": {"type": "string", "nullable": true},
  "media": {"$ref": "#/components/schemas/OutputMedia"},
  "thumbnails": {"type": "array", "items": {"$ref": "#/components/schemas/OutputVariant"}},
  "variants": {"type": "array", "items": {"$ref": "#/components/schemas/OutputVariant"}},
  "store": {"type": "string", "description": "Where it is kept, or is being brought to, if not by this server."},
  "retention": {"type": "string"},
  "expires_at": {"type": "string", "format": "date-time", "description": "Where it is not kept as long as its job."},
  "expired": {"type": "boolean"}}},
"JobError": {"type": "object", "required": ["code", "message"], "properties": {
  "code": {"type": "string"}, "message": {"type": "string"},
  "node_id": {"type": "string", "nullable": true}, "class_type": {"type": "string", "nullable": true},
  "traceback": {"type": "string", "nullable": true}, "category": {"type": "string"},
  "retryable": {"type": "boolean"}, "suggested_action": {"type": "string"},
  "cause": {"$ref": "#/components/schemas/Cause"}, "advice": {"type": "string"},
  "retry_after": {"type": "integer", "nullable": true, "description": "Seconds after which a client may ask again."}}},
"Job": {"type": "object",
  "required": ["id", "status", "created_at", "started_at", "completed_at", "expires_at", "queue_position", "progress", "outputs", "error", "urls"],
  "properties": {
    "id": {"type": "string"}, "status": {"$ref": "#/components/schemas/JobStatus"},
    "created_at": {"type": "string", "format": "date-time"},
    "started_at": {"type": "string", "format": "date-time", "nullable": true},
    "completed_at": {"type": "string", "format": "date-time", "nullable": true},
    "expires_at": {"type": "string", "format": "date-time"},
    "queue_position": {"type": "integer", "nullable": true},
    "progress": {"allOf": [{"$ref": "#/components/schemas/Progress"}], "nullable": true},
    "outputs": {"type": "array", "items": {"$ref": "#/components/schemas/Output"}},
    "error": {"allOf": [{"$ref": "#/components/schemas/JobError"}], "nullable": true},
    "metrics": {"type": "object", "properties": {
      "queue_ms": {"type": "integer", "nullable": true}, "execution_ms": {"type": "integer", "nullable": true}}},
    "urls": {"type": "object", "required": ["self", "events", "cancel"], "properties": {
      "self": {"type": "string"}, "events": {"type": "string"}, "cancel": {"type": "string"}}},
    "priority": {"type": "integer"}, "metadata": {"type": "object", "additionalProperties": true},
    "workflow_id": {"type": "string", "nullable": true},
    "attempt": {"type": "integer"}, "max_attempts": {"type": "integer"},
    "attempts": {"type": "array", "items": {"$ref": "#/components/schemas/Attempt"}, "description": "What was tried, where that was more than one run that goes on or went well; only of a job that is asked for by itself."},
    "retried_from": {"type": "string", "description": "The dead letter that this job runs again; absent otherwise."},
    "estimated_wait_seconds": {"type": "integer", "nullable": true},
    "estimated_remaining_seconds": {"type": "integer", "nullable": true},
    "storage": {"type": "string", "enum": ["pending", "stored"], "description": "Of outputs that are kept elsewhere: whether they are there already."},
    "outputs_reused": {"type": "boolean", "description": "True where the outputs are those of another job; absent otherwise."},
    "reused_from": {"type": "string", "description": "That job."},
    "not_reusable": {"type": "object", "additionalProperties": true, "description": "Where 'reuse' was asked for and cannot be: node_id, class_type and reason."}}},
"Asset": {"type": "object", "required": ["id", "hash", "size_bytes", "content_type", "created_at", "url", "url_expires_at"], "properties": {
  "id": {"type": "string"}, "hash": {"type": "string", "nullable": true},
  "size_bytes": {"type": "integer", "format": "int64"}, "content_type": {"type": "string"},
  "file_path": {"type": "string", "nullable": true}, "tags": {"type": "array", "items": {"type": "string"}},
  "created_new": {"type": "boolean"}, "created_at": {"type": "string", "format": "date-time"},
  "url": {"type": "string", "format": "uri"}, "url_expires_at": {"type": "string", "format": "date-time"},
  "expires_at": {"type": "string", "format": "date-time", "nullable": true},
  "job_id": {"type": "string", "nullable": true},
  "store": {"type": "string"}, "retention": {"type": "string", "nullable": true}}},
"WebhookConfig": {"type": "object", "required": ["url"], "properties": {
  "url": {"type": "string", "format": "uri"}, "secret": {"type": "string", "maxLength": 256},
  "headers": {"type": "object", "additionalProperties": {"type": "string"}},
  "events": {"type": "array", "items": {"type": "string", "enum": [
    "execution.queued", "execution.started", "execution.progress", "execution.completed",
    "execution.failed", "execution.cancelled", "execution.warning"]}}}}
})json";

json::object parse_text(std::string_view text) {
    auto parsed = json::parse_object(text);
    COMFYD_ASSERT(parsed.has_value());
    return std::move(*parsed);
}

}  // namespace

json::object operation(std::string_view operation_id) {
    const json::object operations = parse_text(kOperations);
    const json::value* found = json::find(operations, operation_id);
    COMFYD_ASSERT(found != nullptr && found->is_object());
    return found->get_object();
}

json::object schemas() {
    return parse_text(kSchemas);
}

}  // namespace comfyd::api::v2
