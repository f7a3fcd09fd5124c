#include <utility>

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>

#include "base/hop.hpp"
#include "jobs/service_impl.hpp"

namespace comfyd::jobs {

Task<Result<std::shared_ptr<events::Subscription>>> Service::Impl::watch(
    std::string tenant, JobId id, events::WatchOptions options
) {
    auto found = co_await find(std::move(tenant), id);
    if (!found) {
        co_return fail(std::move(found.error()));
    }
    const Executor here = co_await boost::asio::this_coro::executor;
    auto subscription = std::make_shared<events::Subscription>(here, options);
    std::vector<events::EventPtr> latest;
    const bool ended = is_terminal(found->state);
    bool is_over = false;
    if (!ended) {
        // First listen, then read the past: what is committed in between arrives twice and is
        // told once.
        latest =
            co_await call_on(core_, [this, id, subscription, &domain = found->domain, &is_over] {
                arrivals_.take_over();
                hub_.watch(id, subscription);
                is_over = is_over_;
                const Dispatcher* dispatcher = leads_.find(domain);
                return dispatcher == nullptr ? std::vector<events::EventPtr>()
                                             : dispatcher->latest(id);
            });
    }
    if (is_over) {
        co_return fail(Code::shutting_down, "comfyd is shutting down");
    }
    auto stored = co_await ledger_.events(id, options.since);
    if (!stored) {
        co_return fail(std::move(stored.error()));
    }
    std::vector<events::EventPtr> past;
    past.reserve(stored->size() + latest.size());
    for (Event& event : *stored) {
        past.push_back(std::make_shared<const Event>(std::move(event)));
    }
    past.insert(past.end(), latest.begin(), latest.end());
    subscription->prime(std::move(past));
    if (ended) {
        subscription->end(Code::not_found);
    }
    co_return subscription;
}

std::shared_ptr<events::Feed> Service::Impl::subscribe(
    Executor executor, events::FeedOptions options
) {
    auto feed = std::make_shared<events::Feed>(executor, std::move(options));
    boost::asio::post(core_, [this, feed] {
        if (is_over_) {
            feed->end(Code::shutting_down);
        } else {
            hub_.subscribe(feed);
        }
    });
    return feed;
}

Task<Result<std::shared_ptr<events::Subscription>>> Service::watch(
    std::string tenant, JobId id, events::WatchOptions options
) {
    return impl_->watch(std::move(tenant), id, options);
}

std::shared_ptr<events::Feed> Service::subscribe(Executor executor, events::FeedOptions options) {
    return impl_->subscribe(executor, std::move(options));
}

}  // namespace comfyd::jobs
