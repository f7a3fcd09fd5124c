#include "api/dialects/native/native.hpp"

#include <memory>
#include <utility>

#include <boost/asio/post.hpp>

#include "api/dialects/native/gateway.hpp"
#include "api/dialects/native/openapi.hpp"
#include "api/dialects/prompt_sync/prompt_sync.hpp"
#include "comfy/server/routes.hpp"

namespace comfyd::api {
namespace {

using namespace native;
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
        using namespace comfy::server;
        const bool is_upload = handler == upload_image || handler == upload_mask;
        const bool is_file = is_upload || handler == get_view;
        route.access = handler == post_free ? Access::admin
                       : is_file            ? Access::assets
                                            : Access::jobs;
        route.is_stream = handler == serve_socket;
        route.token_in_query = handler == serve_socket || handler == get_view;
        route.streams_body = is_upload;
        const bool stops = handler == post_interrupt || handler == post_queue ||
                           handler == post_history || handler == cancel_jobs ||
                           handler == cancel_job;
        route.weight = stops ? std::optional(0.0) : std::nullopt;
        router_.add(std::move(route));
    }

private:
    static Route make(net::Method method, const std::string& path) {
        Route route;
        route.method = method;
        route.pattern = path;
        route.encode_error = comfy::server::encode_error;
        route.operation = document_route(method, path);
        route.options_status = 200;
        return route;
    }

    Router& router_;
    std::shared_ptr<Context> context_;  // shared by the handlers of all routes
};

}  // namespace

std::shared_ptr<Board> add_native(Router& router, const Services& services, NativeParts parts) {
    const auto context = std::make_shared<Context>(services, std::move(parts));
    const auto& board = context->board;
    boost::asio::post(board->executor(), [board] { board->start(); });
    Table table(router, context);
    for (const comfy::server::Route& route : comfy::server::all_routes()) {
        table.add(route.method, route.path, route.handler);
    }
    router.add_schemas(native::schemas());
    add_prompt_sync(router, context);
    if (!context->parts.frontend.empty()) {
        table.add(net::Method::get, "/", comfy::server::get_editor_file);
        table.add(net::Method::get, "/{path*}", comfy::server::get_editor_file);
    }
    return board;
}

}  // namespace comfyd::api
