// Batches in the shape of OpenAI's batch API: a file of requests (JSONL) goes in by /v1/files, a
// batch is made of it, and what came of the requests is two files again. Those files are made of
// the items whenever they are read.
#include <array>
#include <chrono>
#include <utility>

#include "api/dialects/asset_content.hpp"
#include "api/dialects/batches/batches.hpp"
#include "api/dialects/execution/execution.hpp"
#include "api/dialects/literal.hpp"
#include "api/dialects/named/named.hpp"
#include "api/submission.hpp"
#include "base/crypto.hpp"
#include "base/text.hpp"
#include "bulk/item_form.hpp"
#include "bulk/results.hpp"

namespace comfyd::api::batches {
namespace {

using jobs::Bulk;

constexpr std::string_view kDialect = "openai-batches";
constexpr std::string_view kFilePrefix = "file-";
constexpr std::string_view kBatchPrefix = "batch_";
constexpr std::string_view kOutput = "-output";
constexpr std::string_view kErrors = "-errors";
constexpr std::string_view kExecute = "/v2/workflows/execute";
constexpr std::string_view kNamedPrefix = "/v2/workflows/";
constexpr std::string_view kNamedSuffix = "/run";
constexpr std::string_view kWindow = "24h";

boost::json::string_view text(std::string_view of) {
    return {of.data(), of.size()};
}

net::Response encode_openai_error(const Error& error) {
    const int status = execution::http_status(error.code);
    const json::value* field = json::find(error.details, "field");
    return json_response(
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
}

Task<> refuse(Call& call, Error error) {
    co_await send(call, encode_openai_error(error));
}

tl::unexpected<Error> wrong(std::string_view field, std::string message) {
    return fail(Code::invalid_argument, std::move(message), {{"field", text(field)}});
}

std::int64_t seconds_of(Time at) {
    return std::chrono::floor<std::chrono::seconds>(at).time_since_epoch().count();
}
json::value seconds_or_null(const std::optional<Time>& at) {
    return at ? json::value(seconds_of(*at)) : json::value(nullptr);
}

std::string batch_id(const Bulk& bulk) {
    return std::string(kBatchPrefix) + bulk.id.to_string();
}
std::string result_id(const Bulk& bulk, std::string_view kind) {
    return std::string(kFilePrefix) + bulk.id.to_string() + std::string(kind);
}

// Without the prefix that clients see; what has none is as good as unknown.
std::string without(std::string_view prefix, const std::string& id) {
    return id.starts_with(prefix) ? id.substr(prefix.size()) : std::string();
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

// What a line must say besides its values: {"custom_id", "method", "url", "body"}.
class Lines {
public:
    explicit Lines(std::string endpoint) : endpoint_(std::move(endpoint)) {}

    // The body.
    Result<json::object> take(bulk::Row& row, std::string& custom_id) {
        auto id = custom_ids_.take(row);
        if (!id) {
            return fail(std::move(id.error()));
        }
        if (id->empty()) {
            return bulk::wrong_row(row.record, row.line, "'custom_id' is missing");
        }
        custom_id = std::move(*id);
        const json::value* method = row.values.if_contains("method");
        const json::value* url = row.values.if_contains("url");
        json::value* body = row.values.if_contains("body");
        if (method == nullptr || *method != "POST" || url == nullptr || *url != text(endpoint_)) {
            return bulk::wrong_row(
                row.record,
                row.line,
                "'method' must be POST and 'url' the endpoint of the batch, " + endpoint_
            );
        }
        if (body == nullptr || !body->is_object()) {
            return bulk::wrong_row(row.record, row.line, "'body' must be an object");
        }
        return std::move(body->get_object());
    }

private:
    std::string endpoint_;
    bulk::CustomIds custom_ids_;
};

// The values of a request: "params", or "input_params" as others call it.
Result<json::object> values_of(json::object& body, const bulk::Row& row, bool with_workflow) {
    json::object values;
    for (auto& member : body) {
        const std::string_view name = view(member.key());
        if (name == "params" || name == "input_params") {
            if (!member.value().is_object()) {
                return bulk::wrong_row(
                    row.record, row.line, "'" + std::string(name) + "' must be an object"
                );
            }
            values = std::move(member.value().get_object());
        } else if (name != "workflow" || !with_workflow) {
            return bulk::wrong_row(
                row.record,
                row.line,
                "'" + std::string(name.substr(0, 100)) + "' cannot be set in a line: it may hold " +
                    (with_workflow ? "workflow and params" : "params")
            );
        }
    }
    return values;
}

// Of an endpoint that takes a workflow with each request.
MakeItem whole_requests(std::string endpoint) {
    const auto lines = std::make_shared<Lines>(std::move(endpoint));
    return [lines](bulk::Row row, int index) -> Result<jobs::BulkItem> {
        jobs::BulkItem item;
        item.index = index;
        auto body = lines->take(row, item.custom_id);
        if (!body) {
            return fail(std::move(body.error()));
        }
        auto values = values_of(*body, row, true);
        if (!values) {
            return fail(std::move(values.error()));
        }
        json::value* workflow = body->if_contains("workflow");
        if (workflow == nullptr || !workflow->is_object()) {
            return bulk::wrong_row(row.record, row.line, "'body.workflow' must be a workflow");
        }
        item.params = json::serialize(
            json::object{{"workflow", std::move(*workflow)}, {"params", std::move(*values)}}
        );
        return item;
    };
}

// Of a stored workflow: its parameters are judged at once.
Task<Result<MakeItem>> named_requests(
    const Call& call, const Tools& tools, std::string endpoint, named::Choice choice, Order& order
) {
    auto work = co_await load_named(call, tools, std::move(choice));
    if (!work) {
        co_return fail(std::move(work.error()));
    }
    order.plan.workflow = std::move(work->wrapped);
    order.plan.spec.workflow_id = work->name;
    order.plan.spec.dialect_data["workflow_version"] = work->version;
    const auto catalogue = tools.services.catalogue();
    auto form = bulk::ItemForm::make(std::move(work->form), *catalogue);
    if (!form) {
        co_return fail(std::move(form.error()));
    }
    const auto shared = std::make_shared<bulk::ItemForm>(std::move(*form));
    const auto lines = std::make_shared<Lines>(std::move(endpoint));
    co_return [shared, lines, catalogue](bulk::Row row, int index) -> Result<jobs::BulkItem> {
        std::string custom_id;
        auto body = lines->take(row, custom_id);
        if (!body) {
            return fail(std::move(body.error()));
        }
        auto values = values_of(*body, row, false);
        if (!values) {
            return fail(std::move(values.error()));
        }
        row.values = std::move(*values);
        auto item = shared->make_item(std::move(row), index);
        if (item) {
            item->custom_id = std::move(custom_id);
        }
        return item;
    };
}

Result<Order> decode_order(const Call& call, const Tools& tools, const json::object& body) {
    const auto window = json::find_string(body, "completion_window");
    if (!window) {
        return fail(window.error());
    }
    if (window->value_or(std::string(kWindow)) != kWindow) {
        return wrong("completion_window", "'completion_window' must be \"24h\"");
    }
    auto key = decode_idempotency_key(call);
    if (!key) {
        return fail(std::move(key.error()));
    }
    auto pool = decode_pool(call, tools.services, {});
    if (!pool) {
        return fail(std::move(pool.error()));
    }
    const auto metadata = json::find_object(body, "metadata");
    if (!metadata) {
        return fail(metadata.error());
    }
    if (*metadata != nullptr && json::serialize(**metadata).size() > jobs::kMetadataBytesMax) {
        return wrong("metadata", "'metadata' is too large");
    }
    Order order;
    Bulk& bulk = order.bulk;
    bulk.id = jobs::BulkId::make(tools.services.clock.now());
    bulk.tenant = call.caller.tenant;
    bulk.dialect = kDialect;
    bulk.created_at = tools.services.clock.now();
    bulk.idempotency_key = std::move(*key);
    bulk.about["metadata"] = *metadata != nullptr ? json::value(**metadata) : json::value(nullptr);
    jobs::Spec& spec = order.plan.spec;
    spec.tenant = call.caller.tenant;
    spec.dialect = kDialect;
    spec.fairness_key = "batch:" + bulk.id.to_string();
    spec.requirement = Requirement().in_pool(*pool);
    return order;
}

Task<Result<assets::Asset>> get_file(const Call& call, const Tools& tools, std::string id) {
    const auto parsed = AssetId::parse(without(kFilePrefix, id));
    if (!parsed) {
        co_return fail(Code::not_found, "there is no file '" + id.substr(0, 100) + "'");
    }
    auto asset = co_await tools.services.assets.get(call.caller.tenant, *parsed);
    co_return asset;
}

Task<Result<Made>> make(Call& call, const Tools& tools) {
    auto body = co_await read_json_body(call, tools.services);
    if (!body) {
        co_return fail(std::move(body.error()));
    }
    const auto file_id = json::find_string(*body, "input_file_id");
    const auto endpoint = json::find_string(*body, "endpoint");
    if (!file_id || !*file_id) {
        co_return wrong("input_file_id", "'input_file_id' must be the id of a file");
    }
    auto order = decode_order(call, tools, *body);
    if (!order) {
        co_return fail(std::move(order.error()));
    }
    const std::string path = endpoint ? endpoint->value_or("") : "";
    auto file = co_await get_file(call, tools, **file_id);
    if (!file) {
        co_return fail(std::move(file.error()));
    }
    order->bulk.about["input_file_id"] = **file_id;
    order->bulk.about["endpoint"] = path;
    order->bulk.request_hash = to_hex(sha256(json::serialize_canonical(*body)));
    Result<MakeItem> make_item = whole_requests(path);
    if (path != kExecute) {
        const bool is_named = path.starts_with(kNamedPrefix) && path.ends_with(kNamedSuffix) &&
                              path.size() > kNamedPrefix.size() + kNamedSuffix.size();
        const auto choice =
            is_named
                ? named::parse_reference(path.substr(
                      kNamedPrefix.size(), path.size() - kNamedPrefix.size() - kNamedSuffix.size()
                  ))
                : std::nullopt;
        if (!choice) {
            co_return wrong(
                "endpoint", "'endpoint' must be /v2/workflows/execute or /v2/workflows/{name}/run"
            );
        }
        make_item = co_await named_requests(call, tools, path, *choice, *order);
    }
    if (!make_item) {
        co_return fail(std::move(make_item.error()));
    }
    RowSource source;
    source.asset = std::move(*file);
    source.format = bulk::RowFormat::jsonl;
    auto made =
        co_await make_bulk(tools, std::move(*order), std::move(source), std::move(*make_item));
    co_return made;
}

Task<> post_batch(Call& call, const Tools& tools) {
    auto made = co_await make(call, tools);
    if (!made) {
        co_await refuse(call, std::move(made.error()));
        co_return;
    }
    co_await send(call, json_response(200, encode(made->bulk)));
}

Task<> answer(Call& call, Result<Bulk> bulk) {
    if (!bulk) {
        co_await refuse(call, std::move(bulk.error()));
        co_return;
    }
    co_await send(call, json_response(200, encode(*bulk)));
}

Task<> get_batch(Call& call, const Tools& tools) {
    auto bulk = co_await get_bulk(call, tools, without(kBatchPrefix, call.path_parameters.at(0)));
    co_await answer(call, std::move(bulk));
}

Task<> cancel_batch(Call& call, const Tools& tools) {
    auto bulk = co_await change_bulk(
        call,
        tools,
        without(kBatchPrefix, call.path_parameters.at(0)),
        [&tools](const Bulk& now) -> Result<std::optional<jobs::BulkChange>> {
            return jobs::cancel(now, tools.services.clock.now());
        }
    );
    co_await answer(call, std::move(bulk));
}

Task<> list_batches(Call& call, const Tools& tools) {
    const auto limit = decode_limit(call, 20);
    if (!limit) {
        co_await refuse(call, limit.error());
        co_return;
    }
    const std::string after(call.query_value("after"));
    std::optional<jobs::BulkId> before;
    if (!after.empty()) {
        before = jobs::BulkId::parse(without(kBatchPrefix, after));
        if (!before) {
            co_await refuse(call, wrong("after", "'after' must be the id of a batch").value());
            co_return;
        }
    }
    auto page = co_await tools.bulks.list_bulks(call.caller.tenant, before, *limit);
    if (!page) {
        co_await refuse(call, std::move(page.error()));
        co_return;
    }
    json::array listed;
    for (const Bulk& bulk : page->bulks) {
        listed.emplace_back(encode(bulk));
    }
    const auto id_or_null = [&](bool first) {
        return page->bulks.empty()
                   ? json::value(nullptr)
                   : json::value(batch_id(first ? page->bulks.front() : page->bulks.back()));
    };
    co_await send(
        call,
        json_response(
            200,
            json::object{
                {"object", "list"},
                {"data", std::move(listed)},
                {"first_id", id_or_null(true)},
                {"last_id", id_or_null(false)},
                {"has_more", page->next_cursor.has_value()},
            }
        )
    );
}

Task<> post_file(Call& call, const Tools& tools) {
    auto form = co_await read_form(call, tools);
    if (!form) {
        co_await refuse(call, std::move(form.error()));
        co_return;
    }
    const json::value* purpose = json::find(form->members, "purpose");
    if (purpose == nullptr || *purpose != "batch") {
        co_await refuse(call, wrong("purpose", "'purpose' must be \"batch\"").value());
        co_return;
    }
    if (!form->file) {
        co_await refuse(call, wrong("file", "the form has no part named 'file'").value());
        co_return;
    }
    co_await send(call, json_response(200, encode_file(*form->file)));
}

Task<> get_file_object(Call& call, const Tools& tools) {
    auto asset = co_await get_file(call, tools, call.path_parameters.at(0));
    if (!asset) {
        co_await refuse(call, std::move(asset.error()));
        co_return;
    }
    co_await send(call, json_response(200, encode_file(*asset)));
}

Task<> delete_file(Call& call, const Tools& tools) {
    const std::string id = call.path_parameters.at(0);
    const auto parsed = AssetId::parse(without(kFilePrefix, id));
    Result<> removed = fail(Code::not_found, "there is no such file");
    if (parsed) {
        removed = co_await tools.services.assets.remove(call.caller.tenant, *parsed);
    }
    if (!removed) {
        co_await refuse(call, std::move(removed.error()));
        co_return;
    }
    co_await send(
        call, json_response(200, json::object{{"id", id}, {"object", "file"}, {"deleted", true}})
    );
}

// {"id", "custom_id", "response", "error"}
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

// A file of results, if the id is one.
Task<Result<std::optional<Bulk>>> find_results(
    const Call& call, const Tools& tools, std::string id, std::string_view kind
) {
    std::string inner = without(kFilePrefix, id);
    if (!inner.ends_with(kind)) {
        co_return std::nullopt;
    }
    inner.resize(inner.size() - kind.size());
    auto bulk = co_await get_bulk(call, tools, inner);
    if (!bulk) {
        co_return fail(std::move(bulk.error()));
    }
    co_return std::move(*bulk);
}

Task<> get_content(Call& call, const Tools& tools) {
    const std::string id = call.path_parameters.at(0);
    for (const std::string_view kind : {kOutput, kErrors}) {
        auto bulk = co_await find_results(call, tools, id, kind);
        if (!bulk) {
            co_await refuse(call, std::move(bulk.error()));
            co_return;
        }
        if (!*bulk) {
            continue;
        }
        const bool of_output = kind == kOutput;
        EncodeLine encode_one = [&call, &tools, of_output](const jobs::BulkItem& item
                                ) -> std::optional<json::object> {
            const bool is_completed = item.state == jobs::ItemState::completed;
            const bool has_ended = is_completed || item.state == jobs::ItemState::failed ||
                                   item.state == jobs::ItemState::cancelled;
            return has_ended && is_completed == of_output
                       ? std::optional(encode_line(call, tools, item))
                       : std::nullopt;
        };
        co_await send_lines(call, tools, std::move(**bulk), id + ".jsonl", std::move(encode_one));
        co_return;
    }
    auto asset = co_await get_file(call, tools, id);
    if (!asset) {
        co_await refuse(call, std::move(asset.error()));
        co_return;
    }
    auto sent = co_await send_asset(call, tools.services, std::move(*asset));
    if (!sent) {
        co_await refuse(call, std::move(sent.error()));
    }
}

}  // namespace

json::object openai_schemas() {
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

namespace {

json::object openai_operation(std::string_view id, std::string_view text) {
    json::object made = operation(id, text);
    made["responses"].as_object()["default"] = literal(R"json({
        "description": "What went wrong, as OpenAI's API says it.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAIError"}}}
    })json");
    return made;
}

}  // namespace

void add_openai(Router& router, const Tools& tools) {
    const auto add = [&](net::Method method,
                         std::string pattern,
                         Access access,
                         Task<> (*handler)(Call&, const Tools&),
                         json::object described) {
        Route route;
        route.method = method;
        route.pattern = std::move(pattern);
        route.handler = [handler, &tools](Call& call) { return handler(call, tools); };
        route.encode_error = encode_openai_error;
        route.access = access;
        route.operation = std::move(described);
        route.streams_body = method == net::Method::post && access == Access::assets;
        router.add(std::move(route));
    };
    using net::Method;
    add(Method::post,
        "/v1/files",
        Access::assets,
        post_file,
        openai_operation("createFile", R"json({
        "summary": "Upload a file of requests, as OpenAI's API has it",
        "requestBody": {"required": true, "content": {"multipart/form-data": {"schema": {
            "type": "object", "required": ["purpose", "file"], "properties": {
                "purpose": {"type": "string", "enum": ["batch"]},
                "file": {"type": "string", "format": "binary"}}}}}},
        "responses": {"200": ["The file.", "OpenAIFile"]}
    })json"));
    add(Method::get,
        "/v1/files/{id}",
        Access::assets,
        get_file_object,
        openai_operation("getFile", R"json({
        "summary": "What is known of a file",
        "responses": {"200": ["The file.", "OpenAIFile"]}
    })json"));
    add(Method::get,
        "/v1/files/{id}/content",
        Access::assets,
        get_content,
        openai_operation("getFileContent", R"json({
        "summary": "The content of a file, also of the results and errors of a batch",
        "responses": {"200": {"description": "JSONL, or what was uploaded.", "content": {"*/*": {"schema": {"type": "string"}}}}}
    })json"));
    add(Method::del,
        "/v1/files/{id}",
        Access::assets,
        delete_file,
        openai_operation("deleteFile", R"json({
        "summary": "Delete a file that was uploaded",
        "responses": {"200": {"description": "Deleted.", "content": {"application/json": {"schema": {"type": "object"}}}}}
    })json"));
    add(Method::post,
        "/v1/batches",
        Access::jobs,
        post_batch,
        openai_operation("createOpenAIBatch", R"json({
        "summary": "Run the requests of a file, as OpenAI's API has it",
        "parameters": ["Idempotency-Key", "X-Comfyd-Pool"],
        "requestBody": "OpenAIBatchRequest",
        "responses": {"200": ["The batch.", "OpenAIBatch"]}
    })json"));
    add(Method::get,
        "/v1/batches",
        Access::jobs,
        list_batches,
        openai_operation("listOpenAIBatches", R"json({
        "summary": "List batches, the newest first, as OpenAI's API has it",
        "parameters": ["limit", {"name": "after", "in": "query", "schema": {"type": "string"}}],
        "responses": {"200": ["A page of batches.", "OpenAIBatchList"]}
    })json"));
    add(Method::get,
        "/v1/batches/{id}",
        Access::jobs,
        get_batch,
        openai_operation("getOpenAIBatch", R"json({
        "summary": "How far a batch is, as OpenAI's API has it",
        "responses": {"200": ["The batch.", "OpenAIBatch"]}
    })json"));
    add(Method::post,
        "/v1/batches/{id}/cancel",
        Access::jobs,
        cancel_batch,
        openai_operation("cancelOpenAIBatch", R"json({
        "summary": "Cancel a batch, as OpenAI's API has it",
        "responses": {"200": ["The batch.", "OpenAIBatch"]}
    })json"));
    router.add_schemas(openai_schemas());
}

}  // namespace comfyd::api::batches
