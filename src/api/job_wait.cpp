#include "api/job_wait.hpp"

#include <utility>

#include "api/sse.hpp"
#include "base/crypto.hpp"

namespace comfyd::api {
namespace {

// Reads events until the last one, or until there will be none in time.
Task<> drain(std::shared_ptr<events::Subscription> subscription, Deadline give_up) {
    while (!give_up.has_passed()) {
        auto event = co_await subscription->next(give_up.left());
        if (!event || jobs::is_terminal((*event)->state)) {
            co_return;
        }
    }
}

Task<> drain_with_client(
    net::Exchange& client, std::shared_ptr<events::Subscription> subscription, Deadline give_up
) {
    TaskGroup beside(client.executor());
    beside.spawn("client that waits", end_with_client(client, subscription));
    co_await drain(std::move(subscription), give_up);
    beside.cancel();
    // A join that is itself cancelled returns early; the task ends all the same.
    while (beside.size() > 0) {
        co_await beside.join();
    }
}

Task<Result<jobs::View>> wait_for(
    const Services& services, std::string tenant, JobId id, Deadline give_up, net::Exchange* client
) {
    auto view = co_await services.jobs.get(tenant, id);
    if (!view || jobs::is_terminal(view->job.state) || give_up.has_passed()) {
        co_return view;
    }
    events::WatchOptions options;
    options.since = view->job.sequence;
    options.progress_interval = give_up.left();
    auto subscription = co_await services.jobs.watch(tenant, id, options);
    if (!subscription) {
        co_return fail(std::move(subscription.error()));
    }
    if (client != nullptr) {
        co_await drain_with_client(*client, std::move(*subscription), give_up);
    } else {
        co_await drain(std::move(*subscription), give_up);
    }
    auto latest = co_await services.jobs.get(std::move(tenant), id);
    co_return latest;
}

}  // namespace

Task<Result<jobs::View>> wait_for_end(
    const Services& services, std::string tenant, JobId id, Deadline give_up
) {
    return wait_for(services, std::move(tenant), id, give_up, nullptr);
}

Task<Result<jobs::View>> wait_for_end(
    const Services& services, std::string tenant, JobId id, Deadline give_up, net::Exchange& client
) {
    return wait_for(services, std::move(tenant), id, give_up, &client);
}

Task<bool> has_left(net::Exchange& client) {
    const bool closed = co_await client.wait_closed(Millis(0));
    co_return closed && !client.draining();
}

Task<Result<std::string>> read_base64(
    const Services& services, std::string tenant, jobs::Output output, std::uint64_t bytes_max
) {
    auto asset = co_await services.assets.get(std::move(tenant), output.asset);
    if (!asset) {
        const bool is_gone = asset.error().code == Code::not_found;
        co_return is_gone ? fail(Code::output_unavailable, output.name + " is not stored any more")
                          : fail(std::move(asset.error()));
    }
    auto bytes = co_await services.assets.read(*asset, bytes_max);
    if (!bytes) {
        co_return fail(std::move(bytes.error()));
    }
    co_return to_base64(*bytes);
}

}  // namespace comfyd::api
