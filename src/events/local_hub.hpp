// Fan-out of what is told of jobs inside the process. Lives on the core executor.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "events/hub.hpp"

namespace comfyd::events {

class LocalHub final : public Hub {
public:
    explicit LocalHub(Executor core) : core_(core) {}

    void watch(const JobId& job, std::shared_ptr<Subscription> subscription) override;
    void subscribe(std::shared_ptr<Feed> feed) override;
    void publish(const jobs::Job& job, Notice notice) override;
    bool wants_progress(const jobs::Job& job) const override;
    bool wants_worker_messages(const jobs::Job& job) const override;
    void end_all(Code reason) override;
    std::size_t subscription_count() const override { return *open_; }

    // The two parts of publish(): those who listen to the event's job alone, and the feeds.
    void tell_watchers(const EventPtr& event);
    void tell_feeds(const jobs::Job& job, Notice notice);
    // Every feed has missed stored changes.
    void tell_gap();

    // Jobs in memory, also those whose listeners have gone and are not yet forgotten: at most as
    // many again, and kTidyAtLeast. Likewise for tenants with feeds.
    static constexpr std::size_t kTidyAtLeast = 64;
    std::size_t job_count() const { return by_job_.size(); }
    std::size_t tenant_count() const { return by_tenant_.size(); }

private:
    using Subscriptions = std::vector<std::weak_ptr<Subscription>>;
    using Feeds = std::vector<std::weak_ptr<Feed>>;

    template <class Wants>
    bool any_feed(const jobs::Job& job, Wants wants) const;

    Executor core_;
    std::unordered_map<JobId, Subscriptions> by_job_;
    std::unordered_map<std::string, Feeds> by_tenant_;
    Feeds of_all_;
    std::size_t tidy_jobs_at_ = kTidyAtLeast;
    std::size_t tidy_tenants_at_ = kTidyAtLeast;
    std::shared_ptr<std::atomic<std::size_t>> open_ = std::make_shared<std::atomic<std::size_t>>(0);
};

}  // namespace comfyd::events
