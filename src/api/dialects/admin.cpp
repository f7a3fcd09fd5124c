// Routes for operators: taking workers out of service and back, and looking after what is stored.
#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "api/dialects/dialects.hpp"
#include "api/dialects/or_null.hpp"

namespace comfyd::api {
namespace {

json::object encode_worker(const jobs::WorkerInfo& worker) {
    return {
        {"id", worker.id},
        {"url", worker.url},
        {"status", to_string(worker.status)},
        {"version", worker.version},
        {"pool", worker.pool},
        {"region", worker.region},
        {"gpu", worker.gpu},
        {"vram_total", worker.vram_total},
        {"vram_free", worker.vram_free},
        {"ram_total", worker.ram_total},
        {"model_bytes_fetched",
         {{"outside", worker.fetched_outside}, {"peers", worker.fetched_from_peers}}},
        {"node_classes", worker.node_classes},
        {"current_job",
         worker.current_job ? json::value(worker.current_job->to_string()) : json::value(nullptr)},
        {"completed", worker.completed},
        {"failed", worker.failed},
        {"last_error",
         worker.last_error.empty() ? json::value(nullptr) : json::value(worker.last_error)},
        {"breaker", to_string(worker.breaker)},
        {"last_active_at", to_rfc3339(worker.last_active_at)},
    };
}

Task<> list_workers(Call& call, const Services& services) {
    auto workers = co_await services.jobs.workers();
    json::array listed;
    for (const jobs::WorkerInfo& worker : workers) {
        listed.emplace_back(encode_worker(worker));
    }
    auto sent =
        co_await call.exchange.send(json_response(200, json::object{{"workers", std::move(listed)}})
        );
    static_cast<void>(sent);  // a client that is gone needs no answer
}

Task<> set_draining(Call& call, const Services& services, bool draining) {
    const std::string id = call.path_parameters.front();
    auto done = co_await services.set_draining(id, draining);
    net::Response response;
    if (!done) {
        response = encode_error(done.error());
    } else {
        auto workers = co_await services.jobs.workers();
        json::object shown;
        for (const jobs::WorkerInfo& worker : workers) {
            if (worker.id == id) {
                shown = encode_worker(worker);
            }
        }
        response = json_response(200, shown);
    }
    co_await send(call, std::move(response));
}

Task<> show_cluster(Call& call, const Services& services) {
    if (!services.describe_cluster) {
        co_await send(call, json_response(200, json::object{{"clustered", false}}));
        co_return;
    }
    auto described = co_await services.describe_cluster();
    co_await send(
        call,
        described ? json_response(200, std::move(*described)) : encode_error(described.error())
    );
}

json::object encode_due(const assets::Store::Due& due) {
    const assets::Asset& asset = due.asset;
    json::object body{
        {"asset_id", asset.id.to_string()},
        {"tenant", asset.tenant},
        {"file_path", asset.file_path},
        {"size_bytes", asset.size_bytes},
        {"store", asset.store},
        {"action", due.expires ? "remove" : "move"},
        {"at", to_rfc3339((due.expires ? asset.expires_at : asset.moves_at).value_or(Time()))},
    };
    if (!due.expires) {
        body["storage_class"] = to_string(due.to);
    }
    if (asset.retention) {
        body["retention"] = to_string(*asset.retention);
    }
    return body;
}

// Where the next page begins: "<unix ms>.<asset>".
std::optional<assets::Asset> parse_cursor(std::string_view text) {
    const auto dot = text.find('.');
    if (dot == std::string_view::npos) {
        return std::nullopt;
    }
    std::int64_t ms = 0;
    const auto read = std::from_chars(text.data(), text.data() + dot, ms);
    const auto id = AssetId::parse(text.substr(dot + 1));
    if (read.ec != std::errc() || read.ptr != text.data() + dot || !id) {
        return std::nullopt;
    }
    assets::Asset after;
    after.id = *id;
    after.expires_at = after.moves_at = from_unix_ms(ms);
    return after;
}

// Changes nothing.
Task<> list_due(Call& call, const Services& services) {
    constexpr int kPage = 500;
    Time by = services.clock.now();
    if (const std::string_view text = call.query_value("by"); !text.empty()) {
        const auto given = parse_rfc3339(text);
        if (!given) {
            co_await send(
                call,
                encode_error(Error(
                    Code::invalid_argument, "'by' is a time such as 2030-01-31T12:00:00Z (RFC 3339)"
                ))
            );
            co_return;
        }
        by = *given;
    }
    const bool moving = call.query_value("action") == "move";
    std::optional<assets::Asset> after;
    if (const std::string_view text = call.query_value("cursor"); !text.empty()) {
        after = parse_cursor(text);
        if (!after) {
            co_await send(
                call,
                encode_error(Error(
                    Code::invalid_argument, "'cursor' must be the next_cursor of an earlier page"
                ))
            );
            co_return;
        }
    }
    auto due = co_await services.assets.due(by, !moving, std::move(after), kPage);
    if (!due) {
        co_await send(call, encode_error(due.error()));
        co_return;
    }
    json::array listed;
    for (const assets::Store::Due& one : *due) {
        listed.emplace_back(encode_due(one));
    }
    json::object body{{"by", to_rfc3339(by)}, {"assets", std::move(listed)}};
    body["next_cursor"] = nullptr;
    if (due->size() == kPage) {
        const assets::Asset& last = due->back().asset;
        const Time at = (moving ? last.moves_at : last.expires_at).value_or(Time());
        body["next_cursor"] = std::to_string(to_unix_ms(at)) + "." + last.id.to_string();
    }
    co_await send(call, json_response(200, body));
}

Task<> show_stores(Call& call, const Services& services) {
    auto waiting = co_await services.assets.waiting();
    if (!waiting) {
        co_await send(call, encode_error(waiting.error()));
        co_return;
    }
    const auto names = services.assets.stores().names();
    co_await send(
        call,
        json_response(
            200,
            json::object{
                {"stores", json::array(names.begin(), names.end())},
                {"uploads_waiting", waiting->uploads},
                {"uploads_waiting_bytes", waiting->upload_bytes},
                {"oldest_upload_at", time_or_null(waiting->oldest_upload)},
                {"removals_waiting", waiting->removals},
            }
        )
    );
}

json::object describe(const char* operation_id, const char* summary) {
    return {{"operationId", operation_id}, {"summary", summary}, {"tags", json::array{"admin"}}};
}

}  // namespace

void add_admin(Router& router, const Services& services) {
    const auto add = [&router](
                         net::Method method,
                         const char* pattern,
                         Handler handler,
                         json::object operation
                     ) {
        router.add(Route{
            method, pattern, std::move(handler), encode_error, Access::admin, std::move(operation)
        });
    };
    add(
        net::Method::get,
        "/admin/v1/workers",
        [&services](Call& call) { return list_workers(call, services); },
        describe("adminListWorkers", "Every worker, with what it has and does")
    );
    add(
        net::Method::post,
        "/admin/v1/workers/{id}/drain",
        [&services](Call& call) { return set_draining(call, services, true); },
        describe("adminDrainWorker", "Let a worker finish what it runs and give it nothing more")
    );
    add(
        net::Method::post,
        "/admin/v1/workers/{id}/resume",
        [&services](Call& call) { return set_draining(call, services, false); },
        describe("adminResumeWorker", "Put a drained worker back to work")
    );
    add(
        net::Method::get,
        "/admin/v1/retention",
        [&services](Call& call) { return list_due(call, services); },
        describe(
            "adminListRetention", "What the sweep would remove or move to cheaper storage by a time"
        )
    );
    add(
        net::Method::get,
        "/admin/v1/stores",
        [&services](Call& call) { return show_stores(call, services); },
        describe("adminShowStores", "The stores of outputs, and what waits for them")
    );
    add(
        net::Method::get,
        "/admin/v1/cluster",
        [&services](Call& call) { return show_cluster(call, services); },
        describe("adminShowCluster", "The nodes that are one service, and who leads which domain")
    );
}

}  // namespace comfyd::api
