#include "api/dialects/native/native.hpp"

#include <memory>
#include <utility>

#include "api/dialects/native/gateway.hpp"
#include "api/dialects/native/openapi.hpp"
#include "api/dialects/native/routes.hpp"
#include "api/dialects/prompt_sync/prompt_sync.hpp"
#include "comfy/server/routes.hpp"

namespace comfyd::api {
namespace {

using namespace native;
using Own = Task<> (*)(Call&, Context&);
using comfy::server::Handler;

// A request as ComfyUI's surface sees it.
Task<> serve(Call& call, Context& context, Handler handler) {
    comfy::server::Call inner{call.exchange, call.path_parameters, call.query};
    Gateway gateway(context, call);
    co_await handler(inner, gateway);
}

class Table {
public:
    Table(Router& router, std::shared_ptr<Context> context)
        : router_(router), context_(std::move(context)) {}

    void add(net::Method method, const std::string& path, Handler handler) {
        Route route = make(method, path);
        route.handler = [context = context_, handler](Call& call) {
            return serve(call, *context, handler);
        };
        router_.add(std::move(route));
    }
    void both(net::Method method, const std::string& path, Own own) {
        plain(method, path, own);
        plain(method, "/api" + path, own);
    }
    void plain(net::Method method, const std::string& path, Own own) {
        Route route = make(method, path);
        route.handler = [context = context_, own](Call& call) { return own(call, *context); };
        route.access = own == post_free ? Access::admin : Access::jobs;
        route.is_stream = own == serve_socket;
        route.token_in_query = own == serve_socket || own == get_view;
        route.streams_body = own == upload_image || own == upload_mask;
        router_.add(std::move(route));
    }

private:
    static Route make(net::Method method, const std::string& path) {
        Route route;
        route.method = method;
        route.pattern = path;
        route.encode_error = encode_native_error;
        route.operation = document_route(method, path);
        route.options_status = 200;
        return route;
    }

    Router& router_;
    std::shared_ptr<Context> context_;  // shared by the handlers of all routes
};

void add_own(Table& table) {
    using net::Method;
    table.both(Method::get, "/ws", serve_socket);
    table.both(Method::get, "/prompt", get_prompt);
    table.both(Method::post, "/prompt", post_prompt);
    table.both(Method::get, "/queue", get_queue);
    table.both(Method::post, "/queue", post_queue);
    table.both(Method::post, "/interrupt", post_interrupt);
    table.both(Method::post, "/free", post_free);
    table.both(Method::get, "/history", get_history);
    table.both(Method::get, "/history/{prompt_id}", get_history_of);
    table.both(Method::post, "/history", post_history);
    table.plain(Method::get, "/api/jobs", get_jobs);
    table.plain(Method::get, "/api/jobs/{job_id}", get_job);
    table.plain(Method::post, "/api/jobs/{job_id}/cancel", cancel_job);
    table.plain(Method::post, "/api/jobs/cancel", cancel_jobs);
    table.both(Method::get, "/view", get_view);
    table.both(Method::post, "/upload/image", upload_image);
    table.both(Method::post, "/upload/mask", upload_mask);
    table.plain(Method::get, "/internal/files/{type}", get_file_names);
}

}  // namespace

void add_native(Router& router, const Services& services, NativeParts parts) {
    const auto context = std::make_shared<Context>(services, std::move(parts));
    services.jobs.observe(context->board);
    Table table(router, context);
    add_own(table);
    for (const comfy::server::Route& route : comfy::server::all_routes()) {
        table.add(route.method, route.path, route.handler);
    }
    add_prompt_sync(router, context);
    if (!context->parts.frontend.empty()) {
        table.add(net::Method::get, "/", comfy::server::get_editor_file);
        table.add(net::Method::get, "/{path*}", comfy::server::get_editor_file);
    }
}

}  // namespace comfyd::api
