#include <chrono>

#include "api/dialects/asset_content.hpp"
#include "api/dialects/batches/openai_batches.hpp"
#include "api/dialects/execution/execution.hpp"
#include "api/dialects/literal.hpp"

namespace comfyd::api::batches::openai {
namespace {

using jobs::Bulk;

boost::json::string_view text(std::string_view of) {
    return {of.data(), of.size()};
}

std::int64_t seconds_of(Time at) {
    return std::chrono::floor<std::chrono::seconds>(at).time_since_epoch().count();
}
json::value seconds_or_null(const std::optional<Time>& at) {
    return at ? json::value(seconds_of(*at)) : json::value(nullptr);
}

std::string result_id(const Bulk& bulk, std::string_view kind) {
    return std::string(kFilePrefix) + bulk.id.to_string() + std::string(kind);
}

std::string_view status_of(const Bulk& bulk) {
    switch (bulk.state) {
        case jobs::BulkState::loading:
            return "validating";
        case jobs::BulkState::running:
            return "in_progress";
        case jobs::BulkState::cancelling:
            return "cancelling";
        case jobs::BulkState::completed:
            return "completed";
        case jobs::BulkState::cancelled:
            break;
    }
    return "cancelled";
}

}  // namespace

std::string without(std::string_view prefix, const std::string& id) {
    return id.starts_with(prefix) ? id.substr(prefix.size()) : std::string();
}

std::string batch_id(const Bulk& bulk) {
    return std::string(kBatchPrefix) + bulk.id.to_string();
}

net::Response encode_error(const Error& error) {
    const int status = execution::http_status(error.code);
    const json::value* field = json::find(error.details, "field");
    net::Response response = json_response(
        status,
        json::object{
            {"error",
             json::object{
                 {"message", error.message},
                 {"type", status >= 500 ? "server_error" : "invalid_request_error"},
                 {"param", field != nullptr ? *field : json::value(nullptr)},
                 {"code", std::string(to_string(error.code))},
             }},
        }
    );
    execution::add_retry_after(error, response);
    return response;
}

json::object encode_file(const assets::Asset& asset) {
    return {
        {"id", std::string(kFilePrefix) + asset.id.to_string()},
        {"object", "file"},
        {"bytes", asset.size_bytes},
        {"created_at", seconds_of(asset.created_at)},
        {"expires_at", seconds_or_null(asset.expires_at)},
        {"filename", asset.file_path},
        {"purpose", "batch"},
        {"status", "processed"},
    };
}

json::object encode(const Bulk& bulk) {
    const auto member = [&bulk](const char* name) {
        const json::value* known = bulk.about.if_contains(name);
        return known != nullptr ? *known : json::value(nullptr);
    };
    const json::value endpoint =
        bulk.about.contains("endpoint") ? member("endpoint") : "/v2/batches";
    const bool is_over = has_ended(bulk.state);
    const auto ended_as = [&](jobs::BulkState state) {
        return bulk.state == state ? seconds_or_null(bulk.ended_at) : json::value(nullptr);
    };
    return {
        {"id", batch_id(bulk)},
        {"object", "batch"},
        {"endpoint", endpoint},
        {"errors", nullptr},
        {"input_file_id", member("input_file_id")},
        {"completion_window", text(kWindow)},
        {"status", text(status_of(bulk))},
        {"output_file_id",
         is_over && bulk.counts.completed > 0 ? json::value(result_id(bulk, kOutput))
                                              : json::value(nullptr)},
        {"error_file_id",
         is_over && bulk.counts.failed + bulk.counts.cancelled > 0
             ? json::value(result_id(bulk, kErrors))
             : json::value(nullptr)},
        {"created_at", seconds_of(bulk.created_at)},
        {"in_progress_at", seconds_of(bulk.created_at)},
        {"expires_at", seconds_of(bulk.created_at + std::chrono::hours(24))},
        {"completed_at", ended_as(jobs::BulkState::completed)},
        {"cancelled_at", ended_as(jobs::BulkState::cancelled)},
        {"request_counts",
         json::object{
             {"total", bulk.counts.total},
             {"completed", bulk.counts.completed},
             {"failed", bulk.counts.failed},
         }},
        {"metadata", member("metadata")},
    };
}

json::object encode_line(const Call& call, const Tools& tools, const jobs::BulkItem& item) {
    json::object line{
        {"id", "batch_req_" + (item.job ? item.job->to_string() : std::to_string(item.index))},
        {"custom_id", item.custom_id},
        {"response", nullptr},
        {"error", nullptr},
    };
    if (item.state != jobs::ItemState::completed) {
        const bool is_cancelled = item.state == jobs::ItemState::cancelled;
        line["error"] = json::object{
            {"code",
             is_cancelled   ? std::string("batch_cancelled")
             : item.failure ? std::string(to_string(item.failure->code))
                            : std::string("failed")},
            {"message",
             is_cancelled   ? std::string("the batch was cancelled before this request was run")
             : item.failure ? item.failure->message
                            : std::string()},
        };
        return line;
    }
    json::array outputs;
    for (const jobs::BulkOutput& output : item.outputs) {
        outputs.emplace_back(json::object{
            {"asset_id", output.asset.to_string()},
            {"filename", output.name},
            {"content_type", output.content_type},
            {"size_bytes", output.size_bytes},
            {"hash", output.hash},
            {"url", download_link(output.asset, call.request, tools.services).url},
        });
    }
    const std::string id = item.job ? item.job->to_string() : "";
    line["response"] = json::object{
        {"status_code", 200},
        {"request_id", id},
        {"body",
         json::object{
             {"execution_id", id}, {"status", "completed"}, {"outputs", std::move(outputs)}
         }},
    };
    return line;
}

json::object schemas() {
    return literal(R"json({
        "OpenAIFile": {
            "type": "object",
            "required": ["id", "object", "bytes", "created_at", "filename", "purpose"],
            "properties": {
                "id": {"type": "string"},
                "object": {"type": "string", "enum": ["file"]},
                "bytes": {"type": "integer"},
                "created_at": {"type": "integer"},
                "expires_at": {"type": "integer", "nullable": true},
                "filename": {"type": "string"},
                "purpose": {"type": "string", "enum": ["batch"]},
                "status": {"type": "string"}
            }
        },
        "OpenAIBatchRequest": {
            "type": "object",
            "required": ["input_file_id", "endpoint"],
            "properties": {
                "input_file_id": {"type": "string"},
                "endpoint": {"type": "string", "description": "/v2/workflows/execute or /v2/workflows/{name}/run"},
                "completion_window": {"type": "string", "enum": ["24h"]},
                "metadata": {"type": "object", "nullable": true, "additionalProperties": true}
            }
        },
        "OpenAIBatch": {
            "type": "object",
            "required": ["id", "object", "endpoint", "status", "created_at"],
            "properties": {
                "id": {"type": "string"},
                "object": {"type": "string", "enum": ["batch"]},
                "endpoint": {"type": "string"},
                "input_file_id": {"type": "string", "nullable": true, "description": "null: it was made elsewhere."},
                "completion_window": {"type": "string"},
                "status": {"type": "string", "enum": ["validating", "in_progress", "cancelling", "completed", "cancelled"]},
                "output_file_id": {"type": "string", "nullable": true},
                "error_file_id": {"type": "string", "nullable": true},
                "created_at": {"type": "integer"},
                "completed_at": {"type": "integer", "nullable": true},
                "cancelled_at": {"type": "integer", "nullable": true},
                "request_counts": {"type": "object", "properties": {
                    "total": {"type": "integer"}, "completed": {"type": "integer"}, "failed": {"type": "integer"}}},
                "metadata": {"type": "object", "nullable": true, "additionalProperties": true}
            }
        },
        "OpenAIBatchList": {
            "type": "object",
            "properties": {
                "object": {"type": "string", "enum": ["list"]},
                "data": {"type": "array", "items": {"$ref": "#/components/schemas/OpenAIBatch"}},
                "first_id": {"type": "string", "nullable": true},
                "last_id": {"type": "string", "nullable": true},
                "has_more": {"type": "boolean"}
            }
        },
        "OpenAIError": {
            "type": "object",
            "required": ["error"],
            "properties": {
                "error": {"type": "object", "required": ["message", "type", "code"], "properties": {
                    "message": {"type": "string"},
                    "type": {"type": "string", "enum": ["invalid_request_error", "server_error"]},
                    "param": {"type": "string", "nullable": true},
                    "code": {"type": "string"}}}
            }
        }
    })json");
}

}  // namespace comfyd::api::batches::openai
