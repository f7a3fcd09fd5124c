#include "net/lookup.hpp"

#include <utility>

namespace comfyd::net {
namespace {

struct Lookup {
    explicit Lookup(Executor executor) : resolver(executor), finished(executor) {}
    Resolver resolver;
    Signal finished;
    LookedUp found;
};

}  // namespace

Task<LookedUp> look_up(Executor executor, std::string host, std::uint16_t port, Deadline deadline) {
    const auto lookup = std::make_shared<Lookup>(executor);
    lookup->resolver.async_resolve(
        host,
        std::to_string(port),
        [lookup](const error_code& failure, const Resolver::results_type& found) {
            lookup->found.is_done = true;
            lookup->found.error = failure;
            for (const auto& entry : found) {
                lookup->found.endpoints.push_back(entry.endpoint());
            }
            lookup->finished.notify();
        }
    );
    co_await lookup->finished.wait_for(deadline.left());
    if (!lookup->found.is_done) {
        lookup->resolver.cancel();
        co_return LookedUp();
    }
    co_return lookup->found;
}

}  // namespace comfyd::net
