// What the server answers: ComfyUI's surface over its backend, and the socket. All on the server's
// thread; what is given here outlives the table.
#pragma once

#include "comfy/server/routes.hpp"
#include "standalone/core.hpp"
#include "standalone/table.hpp"

namespace comfyd::standalone {

void add_routes(Table& table, Core& core, comfy::server::Backend& backend);

Task<> serve_socket(Call& call, Core& core);

}  // namespace comfyd::standalone
