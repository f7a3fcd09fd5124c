// Every API family that comfyd speaks: each function adds one family's routes and schemas to the
// table. Called by app/wiring before serving; `services` outlives the router.
#pragma once

#include "api/router.hpp"
#include "api/services.hpp"

namespace comfyd::agent {
class Switchboard;
}

namespace comfyd::api {

void add_operations(Router& router, const Services& services);
void add_admin(Router& router, const Services& services);
void add_stream_tickets(Router& router, const Services& services);
void add_comfy_v2(Router& router, const Services& services);
void add_dead_letters(Router& router, const Services& services);
void add_workflows(Router& router, const Services& services);
void add_stats(Router& router, const Services& services);
void add_comfyui_execute(Router& router, const Services& services);
void add_tasks(Router& router, const Services& services);
void add_runpod(Router& router, const Services& services);
void add_worker_calls(Router& router, agent::Switchboard& switchboard);
void add_webhooks(Router& router, const Services& services);  // needs services.webhooks

}  // namespace comfyd::api
