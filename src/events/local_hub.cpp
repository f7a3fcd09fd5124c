#include "events/local_hub.hpp"

#include <algorithm>
#include <utility>

#include <boost/asio/post.hpp>

#include "base/on_executor.hpp"

namespace comfyd::events {
namespace {

// Most streams end with their job, after its last event; nothing would ever look at them again. So
// before one is added to many, those without a listener go.
template <class Map>
void forget_the_gone(Map& map, std::size_t& tidy_at) {
    if (map.size() < tidy_at) {
        return;
    }
    for (auto entry = map.begin(); entry != map.end();) {
        auto& listeners = entry->second;
        std::erase_if(listeners, [](const auto& listener) { return listener.expired(); });
        entry = listeners.empty() ? map.erase(entry) : std::next(entry);
    }
    tidy_at = std::max(LocalHub::kTidyAtLeast, 2 * map.size());
}

EventPtr event_of(const Notice& notice) {
    if (const auto* changed = std::get_if<Changed>(&notice)) {
        return changed->event;
    }
    const auto* shown = std::get_if<Shown>(&notice);
    return shown != nullptr ? shown->event : nullptr;
}

}  // namespace

void LocalHub::watch(const JobId& job, std::shared_ptr<Subscription> subscription) {
    COMFYD_ON(core_);
    forget_the_gone(by_job_, tidy_jobs_at_);
    subscription->count_in(open_);
    by_job_[job].push_back(std::move(subscription));
}

void LocalHub::subscribe(std::shared_ptr<Feed> feed) {
    COMFYD_ON(core_);
    forget_the_gone(by_tenant_, tidy_tenants_at_);
    const auto& tenant = feed->options().tenant;
    Feeds& feeds = tenant ? by_tenant_[*tenant] : of_all_;
    std::erase_if(feeds, [](const auto& one) { return one.expired(); });
    feeds.push_back(std::move(feed));
}

template <class Wants>
bool LocalHub::any_feed(const jobs::Job& job, Wants wants) const {
    const auto does = [&wants](const std::weak_ptr<Feed>& weak) {
        const auto feed = weak.lock();
        return feed && wants(feed->options());
    };
    const auto own = by_tenant_.find(job.tenant);
    return std::ranges::any_of(of_all_, does) ||
           (own != by_tenant_.end() && std::ranges::any_of(own->second, does));
}

bool LocalHub::wants_progress(const jobs::Job& job) const {
    const auto found = by_job_.find(job.id);
    return (found != by_job_.end() &&
            std::ranges::any_of(found->second, [](const auto& one) { return !one.expired(); })) ||
           any_feed(job, [](const FeedOptions& options) { return options.progress; });
}

bool LocalHub::wants_worker_messages(const jobs::Job& job) const {
    return any_feed(job, [&job](const FeedOptions& options) {
        return !options.messages_of.empty() && options.messages_of == job.dialect;
    });
}

void LocalHub::publish(const jobs::Job& job, Notice notice) {
    COMFYD_ON(core_);
    if (const EventPtr event = event_of(notice)) {
        tell_watchers(event);
    }
    tell_feeds(job, std::move(notice));
}

void LocalHub::tell_watchers(const EventPtr& event) {
    const auto found = by_job_.find(event->job);
    if (found == by_job_.end()) {
        return;
    }
    std::erase_if(found->second, [&](const std::weak_ptr<Subscription>& weak) {
        auto subscription = weak.lock();
        if (!subscription) {
            return true;
        }
        const Executor executor = subscription->executor();
        boost::asio::post(executor, [subscription = std::move(subscription), event] {
            subscription->push(event);
        });
        return false;
    });
    // The stream of an ended job may go on (a retry), so only an empty list is forgotten.
    if (found->second.empty()) {
        by_job_.erase(found);
    }
}

void LocalHub::tell_feeds(const jobs::Job& job, Notice notice) {
    // There is seldom more than one, and it takes the notice as it is.
    std::shared_ptr<Feed> last;
    const auto tell = [&](const std::weak_ptr<Feed>& weak) {
        if (auto feed = weak.lock(); feed && feed->wants(job, notice)) {
            if (last) {
                last->push(notice);
            }
            last = std::move(feed);
        }
    };
    std::ranges::for_each(of_all_, tell);
    if (const auto own = by_tenant_.find(job.tenant); own != by_tenant_.end()) {
        std::ranges::for_each(own->second, tell);
    }
    if (last) {
        last->push(std::move(notice));
    }
}

void LocalHub::tell_gap() {
    COMFYD_ON(core_);
    const auto tell = [](const std::weak_ptr<Feed>& weak) {
        if (const auto feed = weak.lock()) {
            feed->tell_gap();
        }
    };
    std::ranges::for_each(of_all_, tell);
    for (const auto& [tenant, feeds] : by_tenant_) {
        std::ranges::for_each(feeds, tell);
    }
}

void LocalHub::end_all(Code reason) {
    COMFYD_ON(core_);
    for (auto& [job, listeners] : by_job_) {
        for (const auto& weak : listeners) {
            if (auto subscription = weak.lock()) {
                const Executor executor = subscription->executor();
                boost::asio::post(executor, [subscription = std::move(subscription), reason] {
                    subscription->end(reason);
                });
            }
        }
    }
    by_job_.clear();
    const auto end = [reason](const std::weak_ptr<Feed>& weak) {
        if (const auto feed = weak.lock()) {
            feed->end(reason);
        }
    };
    std::ranges::for_each(of_all_, end);
    of_all_.clear();
    for (const auto& [tenant, feeds] : by_tenant_) {
        std::ranges::for_each(feeds, end);
    }
    by_tenant_.clear();
}

}  // namespace comfyd::events
