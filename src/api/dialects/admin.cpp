// Routes that change how comfyd runs: taking workers out of service and back.
#include <optional>
#include <string>
#include <utility>

#include "api/dialects/dialects.hpp"

namespace comfyd::api {
namespace {

json::object encode_worker(const jobs::WorkerInfo& worker) {
    return {
        {"id", worker.id},
        {"url", worker.url},
        {"status", to_string(worker.status)},
        {"version", worker.version},
        {"gpu", worker.gpu},
        {"vram_total", worker.vram_total},
        {"vram_free", worker.vram_free},
        {"node_classes", worker.node_classes},
        {"current_job",
         worker.current_job ? json::value(worker.current_job->to_string()) : json::value(nullptr)},
        {"completed", worker.completed},
        {"failed", worker.failed},
        {"last_error",
         worker.last_error.empty() ? json::value(nullptr) : json::value(worker.last_error)},
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
        "/admin/v1/cluster",
        [&services](Call& call) { return show_cluster(call, services); },
        describe("adminShowCluster", "The nodes that are one service, and who leads which domain")
    );
}

}  // namespace comfyd::api
