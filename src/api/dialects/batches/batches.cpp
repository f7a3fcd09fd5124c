#include "api/dialects/batches/batches.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "api/dialects/named/named.hpp"
#include "api/dialects/workflows/workflows.hpp"
#include "api/sse.hpp"
#include "api/workflow_source.hpp"
#include "base/crypto.hpp"
#include "base/text.hpp"
#include "bulk/item_form.hpp"
#include "bulk/news.hpp"
#include "bulk/results.hpp"

namespace comfyd::api {
namespace batches {
namespace {

using jobs::Bulk;
using workflows::kV2;

constexpr std::string_view kDialect = "batches";
constexpr std::size_t kNameBytesMax = 200;
constexpr Millis kLookAtProgress{500};
constexpr int kChangesMax = 100;

constexpr auto kMembers = std::to_array<std::string_view>({
    "workflow",         "parameters",   "items",        "params",         "input_asset_id",
    "format",           "name",         "priority",     "class",          "fairness_key",
    "timeout",          "deadline",     "max_attempts", "pool",           "max_retries",
    "metadata",         "callback_url", "webhook_url",  "webhook_config", "output_config",
    "execution_config", "auto_fix",     "reuse",
});

Task<> refuse(Call& call, const Tools& tools, Error error) {
    auto response =
        workflows::error_response(error, tools.services.clock.now(), kV2, call.request.path);
    co_await send(call, std::move(response));
}

tl::unexpected<Error> wrong(std::string_view field, std::string message) {
    return fail(
        Code::invalid_argument,
        std::move(message),
        {{"field", boost::json::string_view(field.data(), field.size())}}
    );
}

// A filter that names no event of batches would hear of nothing.
Result<> check_hears_of_batches(const std::optional<jobs::Webhook>& webhook) {
    const auto is_of_batches = [](const std::string& event) { return event.starts_with("batch."); };
    if (!webhook || webhook->events.empty() ||
        std::ranges::any_of(webhook->events, is_of_batches)) {
        return {};
    }
    return wrong(
        "webhook_config.events",
        "'webhook_config.events' of a batch may be batch.completed and batch.cancelled"
    );
}

json::object encode(const Bulk& bulk) {
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

Result<> check_members(const json::object& body) {
    for (const auto& member : body) {
        const std::string_view name = view(member.key());
        if (std::ranges::find(kMembers, name) == kMembers.end()) {
            const std::string shown(name.substr(0, 100));
            return wrong(
                shown,
                "'" + shown +
                    "' is no option of a batch: values of parameters stand in 'items', "
                    "and in 'params' those that all have"
            );
        }
    }
    return {};
}

// "workflow" is a name, the workflow itself, or says where it is to be had.
Task<Result<Work>> take_work(const Call& call, const Tools& tools, json::object& body) {
    const json::value* given = json::find(body, "workflow");
    if (given == nullptr) {
        co_return wrong(
            "workflow", "'workflow' is missing: send a workflow, or the name of a stored one"
        );
    }
    if (given->is_string()) {
        auto choice = named::parse_reference(view(given->get_string()));
        if (choice) {
            auto work = co_await load_named(call, tools, std::move(*choice));
            co_return work;
        }
        auto opened = co_await open_workflow(call, tools.services, body, "workflow");
        if (!opened) {
            co_return fail(std::move(opened.error()));
        }
    }
    json::object stored;
    stored["workflow"] = std::move(body["workflow"]);
    if (const json::value* declared = json::find(body, "parameters")) {
        stored["parameters"] = *declared;
    }
    stored["check"] = false;  // the first item is judged, with its values
    const auto catalogue = tools.services.catalogue();
    auto version = named::make_version(
        std::move(stored), *catalogue, *tools.services.rules.security_of(call.caller.tenant)
    );
    if (!version) {
        co_return fail(std::move(version.error()));
    }
    co_return make_work(*version, true);
}

Result<bulk::RowFormat> take_format(const json::object& body, const assets::Asset& file) {
    const auto said = json::find_string(body, "format");
    if (!said) {
        return fail(said.error());
    }
    const auto format = *said ? bulk::parse_row_format(**said)
                              : bulk::guess_row_format(file.file_path, file.content_type);
    if (!format) {
        return wrong(
            "format",
            *said ? "'format' must be csv, jsonl or json"
                  : "it cannot be told how the file is written: name it .csv, .jsonl or .json, or "
                    "say so by 'format'"
        );
    }
    return *format;
}

Task<Result<RowSource>> take_rows(
    const Call& call, const Tools& tools, json::object& body, std::optional<assets::Asset> file
) {
    const auto items = json::find_array(body, "items");
    const auto asset_id = json::find_string(body, "input_asset_id");
    if (!items || !asset_id) {
        co_return fail(items ? asset_id.error() : items.error());
    }
    const int given = (*items != nullptr ? 1 : 0) + (*asset_id ? 1 : 0) + (file ? 1 : 0);
    if (given != 1) {
        co_return wrong(
            "items",
            "give the sets of parameters once: as 'items', as a file in the form, or as a file "
            "that "
            "was uploaded before ('input_asset_id')"
        );
    }
    RowSource source;
    if (*items != nullptr) {
        source.rows = std::move(body["items"].get_array());
        body.erase("items");
        co_return source;
    }
    if (*asset_id) {
        const auto id = AssetId::parse(**asset_id);
        if (!id) {
            co_return wrong("input_asset_id", "'input_asset_id' must be the id of an asset");
        }
        auto found = co_await tools.services.assets.get(call.caller.tenant, *id);
        if (!found) {
            co_return fail(std::move(found.error()));
        }
        file = std::move(*found);
    }
    auto format = take_format(body, *file);
    if (!format) {
        co_return fail(std::move(format.error()));
    }
    source.asset = std::move(file);
    source.format = *format;
    co_return source;
}

// What is asked for beside the workflow and the rows.
Result<Order> decode_order(
    const Call& call, const Tools& tools, const json::object& body, const Work& work
) {
    auto decoded = workflows::decode_options(body, kV2);
    if (!decoded) {
        return fail(std::move(decoded.error()));
    }
    jobs::Spec& spec = decoded->submission.spec;
    if (auto common = decode_common(call, tools.services, decoded->common, spec); !common) {
        return fail(std::move(common.error()));
    }
    if (auto heard = check_hears_of_batches(spec.webhook); !heard) {
        return fail(std::move(heard.error()));
    }
    const auto name = json::find_string(body, "name");
    if (!name) {
        return fail(name.error());
    }
    if (name->value_or("").size() > kNameBytesMax) {
        return wrong("name", "'name' may have at most " + std::to_string(kNameBytesMax) + " bytes");
    }
    Order order;
    Bulk& bulk = order.bulk;
    bulk.id = jobs::BulkId::make(tools.services.clock.now());
    bulk.tenant = call.caller.tenant;
    bulk.dialect = kDialect;
    bulk.created_at = tools.services.clock.now();
    bulk.idempotency_key = std::move(spec.idempotency_key);
    bulk.has_webhook = spec.webhook.has_value();
    bulk.about["metadata"] = spec.metadata;
    if (*name) {
        bulk.about["name"] = **name;
    }
    if (!work.name.empty()) {
        bulk.about["workflow_id"] = work.name;
        spec.workflow_id = work.name;
        spec.dialect_data["workflow_version"] = work.version;
    }
    order.plan.webhook = std::exchange(spec.webhook, std::nullopt);
    order.plan.auto_fix = decoded->submission.auto_fix;
    order.plan.workflow = work.wrapped;
    spec.idempotency_key.clear();
    spec.tenant = call.caller.tenant;
    spec.dialect = kDialect;
    // Its jobs together have one share of the tenant's turns.
    if (spec.fairness_key.empty()) {
        spec.fairness_key = "batch:" + bulk.id.to_string();
    }
    order.plan.spec = std::move(spec);
    return order;
}

// What makes two requests with the same key the same.
std::string hash_of(const json::object& body, const RowSource& source) {
    json::object all;
    all["body"] = body;
    if (source.asset) {
        all["file"] = source.asset->hash;
    }
    if (source.rows) {
        all["items"] = *source.rows;
    }
    return to_hex(sha256(json::serialize_canonical(all)));
}

Task<Result<Made>> make(Call& call, const Tools& tools) {
    constexpr std::string_view kForm = "multipart/form-data";
    const std::string_view type = call.request.headers.get("Content-Type");
    Form form;
    if (net::equal_ignoring_case(type.substr(0, kForm.size()), kForm)) {
        auto read = co_await read_form(call, tools);
        if (!read) {
            co_return fail(std::move(read.error()));
        }
        form = std::move(*read);
    } else {
        auto body = co_await read_json_body(call, tools.services);
        if (!body) {
            co_return fail(std::move(body.error()));
        }
        form.members = std::move(*body);
    }
    json::object& body = form.members;
    if (auto checked = check_members(body); !checked) {
        co_return fail(std::move(checked.error()));
    }
    auto source = co_await take_rows(call, tools, body, std::move(form.file));
    if (!source) {
        co_return fail(std::move(source.error()));
    }
    const std::string hash = hash_of(body, *source);
    auto work = co_await take_work(call, tools, body);
    if (!work) {
        co_return fail(std::move(work.error()));
    }
    auto common = json::find_object(body, "params");
    if (!common) {
        co_return fail(std::move(common.error()));
    }
    auto order = decode_order(call, tools, body, *work);
    if (!order) {
        co_return fail(std::move(order.error()));
    }
    order->bulk.request_hash = hash;
    work->form.common = *common != nullptr ? **common : json::object();
    const auto catalogue = tools.services.catalogue();
    auto item_form = bulk::ItemForm::make(std::move(work->form), *catalogue);
    if (!item_form) {
        co_return fail(std::move(item_form.error()));
    }
    const auto shared = std::make_shared<bulk::ItemForm>(std::move(*item_form));
    auto made = co_await make_bulk(
        tools,
        std::move(*order),
        std::move(*source),
        [shared, catalogue](bulk::Row row, int index) {
            return shared->make_item(std::move(row), index);
        }
    );
    co_return made;
}

Task<> post(Call& call, const Tools& tools) {
    auto made = co_await make(call, tools);
    if (!made) {
        co_await refuse(call, tools, std::move(made.error()));
        co_return;
    }
    call.has_made(made->bulk.id.to_string());
    net::Response response = json_response(made->replayed ? 200 : 201, encode(made->bulk));
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
    co_await send(call, json_response(200, encode(*bulk)));
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
        listed.emplace_back(encode(bulk));
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

// One frame whenever something has changed; the last one tells the end.
Task<> stream(Call& call, const Tools& tools, Bulk bulk) {
    std::string shown;
    Millis silence{0};
    while (true) {
        const std::string now = json::serialize(encode(bulk));
        std::string frames;
        if (has_ended(bulk.state)) {
            auto end = co_await bulk::describe_end(tools.bulks, bulk);
            if (end) {
                frames = sse_frame(to_string(bulk.state), json::serialize(*end));
                frames += sse_frame("close", "{}");
            }
        } else if (now != shown) {
            frames = sse_frame("progress", now);
        } else if (silence >= tools.services.options.heartbeat) {
            frames = ": still here\n\n";
        }
        if (!frames.empty()) {
            silence = Millis(0);
            shown = now;
            auto written = co_await call.exchange.write_stream(std::move(frames));
            if (!written || has_ended(bulk.state)) {
                co_return;
            }
        }
        const bool is_gone = co_await call.exchange.wait_closed(kLookAtProgress);
        if (is_gone || call.exchange.draining()) {
            co_return;
        }
        silence += kLookAtProgress;
        auto found = co_await tools.bulks.find_bulk(bulk.id);
        if (!found || !*found) {
            co_return;
        }
        bulk = std::move(**found);
    }
}

Task<> events(Call& call, const Tools& tools) {
    auto bulk = co_await get_bulk(call, tools, call.path_parameters.at(0));
    auto slot = bulk ? StreamSlot::open(tools.services) : fail(bulk.error());
    if (!slot) {
        co_await refuse(call, tools, std::move(slot.error()));
        co_return;
    }
    net::Response head;
    head.headers.set("Content-Type", "text/event-stream");
    head.headers.set("Cache-Control", "no-cache, no-transform");
    head.headers.set("X-Accel-Buffering", "no");
    auto begun = co_await call.exchange.begin_stream(std::move(head));
    if (!begun || call.request.method == net::Method::head) {
        co_return;
    }
    co_await stream(call, tools, std::move(*bulk));
    auto ended = co_await call.exchange.end_stream();
    static_cast<void>(ended);  // it makes no difference to a client that is gone
}

}  // namespace

Result<Work> make_work(const jobs::WorkflowVersion& version, bool takes_other_names) {
    auto workflow = json::parse_object(version.workflow);
    auto declared = json::parse_object(version.parameters);
    auto prompt = version.prompt.empty() ? workflow : json::parse_object(version.prompt);
    if (!workflow || !declared || !prompt) {
        return fail(Code::internal, "the stored workflow is damaged");
    }
    Work work;
    work.wrapped["prompt"] = std::move(*workflow);
    work.wrapped["parameters"] = *declared;
    work.form.graph = std::move(*prompt);
    work.form.declared = std::move(*declared);
    work.form.takes_other_names = takes_other_names;
    return work;
}

Task<Result<Work>> load_named(const Call& call, const Tools& tools, named::Choice choice) {
    auto loaded = co_await named::load(tools.services, call.caller.tenant, std::move(choice));
    if (!loaded) {
        co_return fail(std::move(loaded.error()));
    }
    auto work = make_work(loaded->version, false);
    if (work) {
        work->name = loaded->workflow.name;
        work->version = loaded->version.version;
    }
    co_return work;
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
        "parameters": ["Idempotency-Key", "X-Webhook-URL", "X-Comfyd-Pool"],
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
