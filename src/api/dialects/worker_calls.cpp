// The routes that agents of workers call (agent/calls.hpp). They show who they are by a token of
// their own, which is no API key and opens nothing else.
#include "agent/calls.hpp"
#include "agent/switchboard.hpp"
#include "api/dialects/dialects.hpp"

namespace comfyd::api {
namespace {

using Take = Task<> (agent::Switchboard::*)(net::Exchange&, std::string);

Task<> take_call(Call& call, agent::Switchboard& switchboard, Take take) {
    auto instance = switchboard.identify(call.request);
    if (!instance) {
        co_await send(call, encode_error(instance.error()));
        co_return;
    }
    call.exchange.trust_peer();
    co_await (switchboard.*take)(call.exchange, std::move(*instance));
}

}  // namespace

void add_worker_calls(Router& router, agent::Switchboard& switchboard) {
    const auto add = [&](std::string_view pattern, Take take) {
        Route route;
        route.method = net::Method::get;
        route.pattern = pattern;
        route.handler = [&switchboard, take](Call& call) {
            return take_call(call, switchboard, take);
        };
        route.encode_error = encode_error;
        route.access = Access::open;
        router.add(std::move(route));
    };
    add(agent::kControlRoute, &agent::Switchboard::take_control);
    add(agent::kLineRoute, &agent::Switchboard::take_line);
}

}  // namespace comfyd::api
