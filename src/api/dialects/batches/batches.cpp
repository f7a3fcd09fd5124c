#include "api/dialects/batches/batches.hpp"

#include <charconv>
#include <utility>

#include "api/dialects/workflows/workflows.hpp"
#include "api/wrong_field.hpp"
#include "bulk/news.hpp"
#include "bulk/results.hpp"

namespace comfyd::api {
namespace batches {
namespace {

using jobs::Bulk;

constexpr int kChangesMax = 100;

Task<> refuse(Call& call, const Tools& tools, Error error) {
    auto response = workflows::error_response(
        error, tools.services.clock.now(), workflows::kV2, call.request.path
    );
    co_await send(call, std::move(response));
}

Task<> post(Call& call, const Tools& tools) {
    auto made = co_await make_as_asked(call, tools);
    if (!made) {
        co_await refuse(call, tools, std::move(made.error()));
        co_return;
    }
    call.has_made(made->bulk.id.to_string());
    net::Response response = json_response(made->replayed ? 200 : 201, encode_batch(made->bulk));
    response.headers.set("Location", "/v2/batches/" + made->bulk.id.to_string());
    if (made->replayed) {
        response.headers.set("Idempotency-Replayed", "true");
    }
    co_await send(call, std::move(response));
}

Task<> answer(Call& call, const Tools& tools, Result<Bulk> bulk) {
    if (!bulk) {
        co_await refuse(call, tools, std::move(bulk.error()));
        co_return;
    }
    co_await send(call, json_response(200, encode_batch(*bulk)));
}

Task<> get(Call& call, const Tools& tools) {
    auto bulk = co_await get_bulk(call, tools, call.path_parameters.at(0));
    co_await answer(call, tools, std::move(bulk));
}

Task<> list(Call& call, const Tools& tools) {
    const auto limit = decode_limit(call, 50);
    std::optional<jobs::BulkId> before;
    const std::string_view cursor = call.query_value("cursor");
    if (!cursor.empty()) {
        before = jobs::BulkId::parse(cursor);
    }
    if (!limit || (!cursor.empty() && !before)) {
        co_await refuse(
            call,
            tools,
            limit ? Error(Code::invalid_argument, "cursor: must be the next_cursor of a page")
                  : limit.error()
        );
        co_return;
    }
    auto page = co_await tools.bulks.list_bulks(call.caller.tenant, before, *limit);
    if (!page) {
        co_await refuse(call, tools, std::move(page.error()));
        co_return;
    }
    json::array listed;
    for (const Bulk& bulk : page->bulks) {
        listed.emplace_back(encode_batch(bulk));
    }
    json::object body;
    body["count"] = listed.size();
    body["batches"] = std::move(listed);
    body["next_cursor"] =
        page->next_cursor ? json::value(page->next_cursor->to_string()) : json::value(nullptr);
    co_await send(call, json_response(200, body));
}

Result<jobs::BulkItemQuery> decode_items(const Call& call, const Bulk& bulk) {
    jobs::BulkItemQuery query{.bulk = bulk.id};
    const auto limit = decode_limit(call, 100);
    if (!limit) {
        return fail(limit.error());
    }
    query.limit = *limit;
    if (const std::string_view status = call.query_value("status"); !status.empty()) {
        query.state = jobs::parse_item_state(status);
        if (!query.state) {
            return wrong(
                "status", "'status' must be waiting, running, completed, failed or cancelled"
            );
        }
    }
    if (const std::string_view cursor = call.query_value("cursor"); !cursor.empty()) {
        const auto [end, error] =
            std::from_chars(cursor.data(), cursor.data() + cursor.size(), query.after);
        if (error != std::errc() || end != cursor.data() + cursor.size()) {
            return wrong("cursor", "cursor: must be the next_cursor of a page");
        }
    }
    return query;
}

Task<> items(Call& call, const Tools& tools) {
    auto bulk = co_await get_bulk(call, tools, call.path_parameters.at(0));
    auto query = bulk ? decode_items(call, *bulk) : fail(bulk.error());
    if (!query) {
        co_await refuse(call, tools, std::move(query.error()));
        co_return;
    }
    auto found = co_await tools.bulks.bulk_items(*query);
    if (!found) {
        co_await refuse(call, tools, std::move(found.error()));
        co_return;
    }
    json::array listed;
    for (const jobs::BulkItem& item : *found) {
        listed.emplace_back(bulk::encode_item(item));
    }
    const bool is_full = found->size() == static_cast<std::size_t>(query->limit);
    json::object body;
    body["count"] = listed.size();
    body["items"] = std::move(listed);
    body["next_cursor"] =
        is_full ? json::value(std::to_string(found->back().index)) : json::value(nullptr);
    co_await send(call, json_response(200, body));
}

Task<> pause(Call& call, const Tools& tools) {
    auto bulk = co_await change_bulk(
        call,
        tools,
        call.path_parameters.at(0),
        [](const Bulk& now) -> Result<std::optional<jobs::BulkChange>> { return jobs::pause(now); }
    );
    co_await answer(call, tools, std::move(bulk));
}

Task<> resume(Call& call, const Tools& tools) {
    auto bulk = co_await change_bulk(
        call,
        tools,
        call.path_parameters.at(0),
        [](const Bulk& now) -> Result<std::optional<jobs::BulkChange>> { return jobs::resume(now); }
    );
    co_await answer(call, tools, std::move(bulk));
}

Task<> post_cancel(Call& call, const Tools& tools) {
    auto bulk = co_await change_bulk(
        call,
        tools,
        call.path_parameters.at(0),
        [&tools](const Bulk& now) -> Result<std::optional<jobs::BulkChange>> {
            return jobs::cancel(now, tools.services.clock.now());
        }
    );
    co_await answer(call, tools, std::move(bulk));
}

// Those that have failed by now, a group at a time.
Task<Result<Bulk>> retry_failed(Call& call, const Tools& tools) {
    auto bulk = co_await get_bulk(call, tools, call.path_parameters.at(0));
    int after = -1;
    while (bulk) {
        auto failed = co_await tools.bulks.bulk_items(
            {.bulk = bulk->id, .state = jobs::ItemState::failed, .after = after}
        );
        if (!failed) {
            co_return fail(std::move(failed.error()));
        }
        if (failed->empty()) {
            break;
        }
        const int last = failed->back().index;
        auto change = jobs::retry_items(*bulk, std::move(*failed));
        if (!change) {
            co_return fail(std::move(change.error()));
        }
        Bulk changed = change->bulk;
        auto committed = co_await tools.bulks.commit_bulk(std::move(*change));
        if (committed) {
            bulk = std::move(changed);
            after = last;
        } else if (committed.error().code == Code::conflict) {
            bulk = co_await get_bulk(call, tools, call.path_parameters.at(0));
        } else {
            co_return fail(std::move(committed.error()));
        }
    }
    if (bulk) {
        tools.wake(bulk->id);
    }
    co_return bulk;
}

Task<> retry(Call& call, const Tools& tools) {
    auto bulk = co_await retry_failed(call, tools);
    co_await answer(call, tools, std::move(bulk));
}

Task<> manifest(Call& call, const Tools& tools) {
    auto bulk = co_await get_bulk(call, tools, call.path_parameters.at(0));
    if (!bulk) {
        co_await refuse(call, tools, std::move(bulk.error()));
        co_return;
    }
    const std::string name = "batch-" + bulk->id.to_string() + ".jsonl";
    co_await send_lines(call, tools, std::move(*bulk), name, [](const jobs::BulkItem& item) {
        return std::optional(bulk::encode_item(item));
    });
}

Task<> zip(Call& call, const Tools& tools) {
    auto bulk = co_await get_bulk(call, tools, call.path_parameters.at(0));
    if (!bulk) {
        co_await refuse(call, tools, std::move(bulk.error()));
        co_return;
    }
    co_await send_zip(call, tools, std::move(*bulk));
}

Task<> events(Call& call, const Tools& tools) {
    auto bulk = co_await get_bulk(call, tools, call.path_parameters.at(0));
    Result<> sent = fail(Code::not_found, "");
    if (bulk) {
        sent = co_await send_events(call, tools, std::move(*bulk));
    }
    if (!sent) {
        co_await refuse(call, tools, std::move(bulk ? sent.error() : bulk.error()));
    }
}

}  // namespace

json::object encode_batch(const Bulk& bulk) {
    const int ended = bulk.counts.completed + bulk.counts.failed + bulk.counts.cancelled;
    const std::string path = "/v2/batches/" + bulk.id.to_string();
    json::object shown{
        {"id", bulk.id.to_string()},
        {"object", "batch"},
        {"status", std::string(bulk::status_of(bulk))},
        {"request_counts", bulk::encode_counts(bulk.counts)},
        {"progress", bulk.counts.total > 0 ? static_cast<double>(ended) / bulk.counts.total : 0.0},
        {"created_at", to_rfc3339(bulk.created_at)},
        {"ended_at", bulk.ended_at ? json::value(to_rfc3339(*bulk.ended_at)) : json::value(nullptr)
        },
    };
    for (const char* member : {"name", "workflow_id", "metadata"}) {
        const json::value* known = bulk.about.if_contains(member);
        shown[member] = known != nullptr ? *known : json::value(nullptr);
    }
    shown["urls"] = json::object{
        {"items", path + "/items"},
        {"events", path + "/events"},
        {"manifest", path + "/manifest"},
        {"zip", path + "/zip"},
    };
    return shown;
}

Result<int> decode_limit(const Call& call, int otherwise) {
    const std::string_view text = call.query_value("limit");
    if (text.empty()) {
        return otherwise;
    }
    int limit = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), limit);
    if (error != std::errc() || end != text.data() + text.size() || limit < 1 ||
        limit > jobs::kBulkPageMax) {
        return wrong("limit", "'limit' must be a whole number from 1 to 1000");
    }
    return limit;
}

Task<Result<Bulk>> get_bulk(const Call& call, const Tools& tools, std::string id) {
    const auto parsed = jobs::BulkId::parse(id);
    if (parsed) {
        auto found = co_await tools.bulks.find_bulk(*parsed);
        if (!found) {
            co_return fail(std::move(found.error()));
        }
        if (*found && (*found)->tenant == call.caller.tenant) {
            co_return std::move(**found);
        }
    }
    co_return fail(Code::not_found, "there is no batch '" + id.substr(0, 100) + "'");
}

Task<Result<Bulk>> change_bulk(
    const Call& call, const Tools& tools, std::string id, Change change
) {
    for (int i = 0; i < kChangesMax; ++i) {
        auto bulk = co_await get_bulk(call, tools, id);
        if (!bulk) {
            co_return bulk;
        }
        auto made = change(*bulk);
        if (!made) {
            co_return fail(std::move(made.error()));
        }
        if (!*made) {
            co_return bulk;
        }
        Bulk after = (*made)->bulk;
        auto committed = co_await tools.bulks.commit_bulk(std::move(**made));
        if (committed) {
            tools.wake(after.id);
            co_return after;
        }
        if (committed.error().code != Code::conflict) {
            co_return fail(std::move(committed.error()));
        }
    }
    co_return fail(Code::conflict, "the batch changes too often: try again in a moment");
}

}  // namespace batches

void add_batches(Router& router, const BatchTools& tools) {
    using namespace batches;
    const auto encode_error = [&tools](const Error& error) {
        return workflows::error_response(error, tools.services.clock.now(), workflows::kV2, "");
    };
    const auto add = [&](net::Method method,
                         std::string pattern,
                         Task<> (*handler)(Call&, const Tools&),
                         json::object operation,
                         bool is_stream = false) {
        Route route;
        route.method = method;
        route.pattern = std::move(pattern);
        route.handler = [handler, &tools](Call& call) { return handler(call, tools); };
        route.encode_error = encode_error;
        route.access = Access::jobs;
        route.operation = std::move(operation);
        route.is_stream = is_stream;
        router.add(std::move(route));
    };
    using enum net::Method;
    add(net::Method::post, "/v2/batches", batches::post, operation("createBatch", R"json({
        "summary": "Run one workflow with many sets of parameters",
        "description": "The sets are 'items', a file in a form (CSV, JSONL or a JSON array; the other members stand beside it as parts of their own), or a file that was uploaded before. All are stored before the answer, or none: what is wrong is told with its record and line.",
        "parameters": ["Idempotency-Key", "X-Webhook-URL", "X-Comfyd-Pool", "X-Comfyd-Region"],
        "requestBody": {
            "required": true,
            "content": {
                "application/json": {"schema": {"$ref": "#/components/schemas/BatchRequest"}},
                "multipart/form-data": {"schema": {"allOf": [
                    {"$ref": "#/components/schemas/BatchRequest"},
                    {"type": "object", "properties": {"file": {"type": "string", "format": "binary"}}}
                ]}}
            }
        },
        "responses": {
            "200": ["An earlier request with the same key has made it.", "Batch"],
            "201": ["Stored.", "Batch"],
            "400": ["A member or a set of parameters is wrong."]
        }
    })json"));
    add(net::Method::get, "/v2/batches", list, operation("listBatches", R"json({
        "summary": "List batches, the newest first",
        "parameters": ["limit", "cursor"],
        "responses": {"200": ["A page of batches.", "BatchList"]}
    })json"));
    add(net::Method::get, "/v2/batches/{id}", batches::get, operation("getBatch", R"json({
        "summary": "How far a batch is",
        "responses": {"200": ["The batch.", "Batch"]}
    })json"));
    add(net::Method::get, "/v2/batches/{id}/items", items, operation("listBatchItems", R"json({
        "summary": "List the items of a batch, by index",
        "parameters": [
            "limit",
            "cursor",
            {"name": "status", "in": "query", "schema": {"type": "string",
                "enum": ["waiting", "running", "completed", "failed", "cancelled"]}}
        ],
        "responses": {"200": ["A page of items.", "BatchItemList"]}
    })json"));
    add(net::Method::get,
        "/v2/batches/{id}/events",
        events,
        operation("streamBatch", R"json({
        "summary": "Follow a batch by Server-Sent Events",
        "description": "An event 'progress' with the batch whenever something has changed, and at the end one named 'completed' or 'cancelled' with what has failed.",
        "responses": {"200": {"description": "Events.", "content": {"text/event-stream": {"schema": {"type": "string"}}}}}
    })json"),
        true);
    add(net::Method::post, "/v2/batches/{id}/pause", pause, operation("pauseBatch", R"json({
        "summary": "Start nothing more of it",
        "description": "What runs goes on.",
        "responses": {"200": ["The batch.", "Batch"], "409": ["It has ended."]}
    })json"));
    add(net::Method::post, "/v2/batches/{id}/resume", resume, operation("resumeBatch", R"json({
        "summary": "Go on with a batch that was paused",
        "responses": {"200": ["The batch.", "Batch"], "409": ["It has ended."]}
    })json"));
    add(net::Method::post, "/v2/batches/{id}/cancel", post_cancel, operation("cancelBatch", R"json({
        "summary": "Cancel what has not ended",
        "responses": {"200": ["The batch.", "Batch"]}
    })json"));
    add(net::Method::post, "/v2/batches/{id}/retry", retry, operation("retryBatch", R"json({
        "summary": "Run the items that have failed again",
        "responses": {"200": ["The batch.", "Batch"], "409": ["It was cancelled."]}
    })json"));
    add(net::Method::get,
        "/v2/batches/{id}/manifest",
        manifest,
        operation("getBatchManifest", R"json({
        "summary": "What became of each item",
        "responses": {"200": {"description": "A BatchItem on each line, by index.",
            "content": {"application/jsonl": {"schema": {"type": "string"}}}}}
    })json"));
    add(net::Method::get, "/v2/batches/{id}/zip", zip, operation("getBatchZip", R"json({
        "summary": "All outputs as one archive",
        "description": "Of a batch that has ended. Its length is known and parts of it can be asked for, so a download can be resumed.",
        "responses": {
            "200": {"description": "The archive.", "content": {"application/zip": {"schema": {"type": "string", "format": "binary"}}}},
            "206": {"description": "A part of it.", "content": {"application/zip": {"schema": {"type": "string", "format": "binary"}}}},
            "409": ["It has not ended."]
        }
    })json"));
    router.add_schemas(batches::schemas());
    add_openai(router, tools);
}

}  // namespace comfyd::api
