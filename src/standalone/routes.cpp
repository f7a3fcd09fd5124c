#include "standalone/routes.hpp"

#include <utility>

#include "comfy/replies.hpp"

namespace comfyd::standalone {
namespace {

using net::Method;
using Own = Task<> (*)(Call&, Core&);

class OwnRoutes {
public:
    OwnRoutes(Table& table, Core& core) : table_(table), core_(core) {}

    void both(Method method, const std::string& path, Own own) {
        plain(method, path, own);
        plain(method, "/api" + path, own);
    }
    void plain(Method method, const std::string& path, Own own) {
        table_.add(method, path, [&core = core_, own](Call& call) { return own(call, core); });
    }

private:
    Table& table_;
    Core& core_;
};

void add_own_routes(OwnRoutes routes) {
    routes.both(Method::get, "/ws", serve_socket);
    routes.both(Method::get, "/prompt", get_prompt);
    routes.both(Method::post, "/prompt", post_prompt);
    routes.both(Method::get, "/queue", get_queue);
    routes.both(Method::post, "/queue", post_queue);
    routes.both(Method::post, "/interrupt", post_interrupt);
    routes.both(Method::post, "/free", post_free);
    routes.both(Method::get, "/history", get_history);
    routes.both(Method::post, "/history", post_history);
    routes.both(Method::get, "/history/{id}", get_history_of);
    routes.plain(Method::get, "/api/jobs", get_jobs);
    routes.plain(Method::post, "/api/jobs/cancel", cancel_jobs);
    routes.plain(Method::get, "/api/jobs/{id}", get_job);
    routes.plain(Method::post, "/api/jobs/{id}/cancel", cancel_job);
    routes.both(Method::get, "/view", get_view);
    routes.both(Method::post, "/upload/image", upload_image);
    routes.both(Method::post, "/upload/mask", upload_mask);
    routes.plain(Method::get, "/internal/files/{type}", get_folder_files);
}

}  // namespace

void add_routes(Table& table, Core& core, comfy::server::Backend& backend) {
    add_own_routes({table, core});
    for (const comfy::server::Route& route : comfy::server::all_routes()) {
        table.add(route.method, route.path, [&backend, handler = route.handler](Call& call) {
            return handler(call, backend);
        });
    }
}

Task<std::optional<std::string>> read_bytes(Call& call, Core& core) {
    auto body = co_await call.exchange.read_body(core.options.body_bytes_max);
    if (body) {
        co_return std::move(*body);
    }
    if (body.error().code == Code::payload_too_large) {
        const std::string limit = std::to_string(core.options.body_bytes_max);
        co_await answer(
            call, comfy::text_reply(413, "Maximum request body size " + limit + " exceeded.")
        );
    } else if (body.error().code != Code::connection_failed) {
        co_await answer(call, encode_error(body.error()));
    }
    co_return std::nullopt;
}

Task<std::optional<json::value>> read_json(Call& call, Core& core) {
    auto bytes = co_await read_bytes(call, core);
    if (!bytes) {
        co_return std::nullopt;
    }
    if (bytes->empty()) {
        co_return json::value();
    }
    auto parsed = comfy::parse_python(*bytes);
    if (!parsed) {
        co_await answer(call, encode_error(parsed.error()));
        co_return std::nullopt;
    }
    co_return std::move(*parsed);
}

Task<std::optional<json::object>> read_object(Call& call, Core& core) {
    auto body = co_await read_json(call, core);
    if (!body) {
        co_return std::nullopt;
    }
    if (!body->is_object()) {
        co_await answer(call, comfy::error_reply(400, "the body must be an object"));
        co_return std::nullopt;
    }
    co_return std::move(body->get_object());
}

}  // namespace comfyd::standalone
