#include "api/dialects/batches/openai_batches.hpp"

#include <utility>

#include "api/dialects/asset_content.hpp"
#include "api/dialects/literal.hpp"
#include "api/wrong_field.hpp"

namespace comfyd::api::batches {
namespace openai {
namespace {

using jobs::Bulk;

Task<> refuse(Call& call, Error error) {
    co_await send(call, encode_error(error));
}

Task<> post_batch(Call& call, const Tools& tools) {
    auto made = co_await make_as_asked(call, tools);
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

json::object openai_operation(std::string_view id, std::string_view text) {
    json::object made = operation(id, text);
    made["responses"].as_object()["default"] = literal(R"json({
        "description": "What went wrong, as OpenAI's API says it.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAIError"}}}
    })json");
    return made;
}

}  // namespace
}  // namespace openai

void add_openai(Router& router, const Tools& tools) {
    using namespace openai;
    const auto add = [&](net::Method method,
                         std::string pattern,
                         Access access,
                         Task<> (*handler)(Call&, const Tools&),
                         json::object described) {
        Route route;
        route.method = method;
        route.pattern = std::move(pattern);
        route.handler = [handler, &tools](Call& call) { return handler(call, tools); };
        route.encode_error = openai::encode_error;
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
        "parameters": ["Idempotency-Key", "X-Comfyd-Pool", "X-Comfyd-Region"],
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
    router.add_schemas(openai::schemas());
}

}  // namespace comfyd::api::batches
