#include "standalone/routes.hpp"

namespace comfyd::standalone {
void add_routes(Table& table, Core& core, comfy::server::Backend& backend) {
    for (const char* path : {"/ws", "/api/ws"}) {
        table.add(net::Method::get, path, [&core](Call& call) { return serve_socket(call, core); });
    }
    for (const comfy::server::Route& route : comfy::server::all_routes()) {
        table.add(route.method, route.path, [&backend, handler = route.handler](Call& call) {
            return handler(call, backend);
        });
    }
}

}  // namespace comfyd::standalone
