// The port through which jobs tell what becomes of them, and others hear it. The one of this
// process is LocalHub; another may bring what other nodes tell.
//
// All members are called on the core executor.
#pragma once

#include <cstddef>
#include <memory>

#include "events/feed.hpp"
#include "events/notice.hpp"
#include "events/subscription.hpp"

namespace comfyd::events {

class Hub {
public:
    virtual ~Hub() = default;

    // What is published from now on: of one job, or what the feed's options say. Both end when
    // their listener lets go of them.
    virtual void watch(const JobId& job, std::shared_ptr<Subscription> subscription) = 0;
    virtual void subscribe(std::shared_ptr<Feed> feed) = 0;

    // `job` is the one that the notice tells of, as it is.
    virtual void publish(const jobs::Job& job, Notice notice) = 0;
    // Whether anybody would hear of it now. Of most jobs nobody does, and making it would cost.
    virtual bool wants_progress(const jobs::Job& job) const = 0;
    virtual bool wants_worker_messages(const jobs::Job& job) const = 0;

    virtual void end_all(Code reason) = 0;
    // To single jobs.
    virtual std::size_t subscription_count() const = 0;
};

}  // namespace comfyd::events
