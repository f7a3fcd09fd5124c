#include "events/hub.hpp"

#include <algorithm>
#include <utility>

#include <boost/asio/post.hpp>

#include "base/on_executor.hpp"
#include "base/virtual_time.hpp"

namespace comfyd::events {

Subscription::Subscription(Executor executor, WatchOptions options)
    : executor_(executor), options_(options), changed_(executor), last_sequence_(options.since) {}

Subscription::~Subscription() {
    if (open_) {
        --*open_;
    }
}

void Subscription::count_in(std::shared_ptr<std::atomic<std::size_t>> open) {
    open_ = std::move(open);
    ++*open_;
}

void Subscription::prime(std::vector<EventPtr> past) {
    COMFYD_ON(executor_);
    primed_ = true;
    for (EventPtr& event : past) {
        deliver(std::move(event));
    }
    for (EventPtr& event : std::exchange(held_, {})) {
        deliver(std::move(event));
    }
}

void Subscription::push(EventPtr event) {
    COMFYD_ON(executor_);
    if (primed_) {
        deliver(std::move(event));
    } else if (held_.size() < kBufferMax) {
        held_.push_back(std::move(event));
    } else {
        end(Code::too_many_streams);
    }
}

void Subscription::deliver(EventPtr event) {
    if (ended_ || event->sequence <= last_sequence_) {
        return;
    }
    if (event->type == jobs::EventType::preview) {
        if (options_.previews) {
            preview_ = std::move(event);
            changed_.notify();
        }
        return;
    }
    last_sequence_ = event->sequence;
    if (event->type == jobs::EventType::progress) {
        progress_ = std::move(event);
    } else if (buffer_.size() < kBufferMax) {
        // A state change makes an older snapshot worthless; dropping it keeps the order simple.
        progress_.reset();
        buffer_.push_back(std::move(event));
    } else {
        end(Code::too_many_streams);
    }
    changed_.notify();
}

void Subscription::end(Code reason) {
    COMFYD_ON(executor_);
    if (!ended_) {
        ended_ = reason;
        changed_.notify();
    }
}

Task<Result<EventPtr>> Subscription::next(Millis patience) {
    const auto give_up = steady_time_of(executor_.context()) + patience;
    for (;;) {
        const auto now = steady_time_of(executor_.context());
        if (!buffer_.empty()) {
            EventPtr event = std::move(buffer_.front());
            buffer_.pop_front();
            co_return event;
        }
        if (ended_) {
            co_return fail(*ended_, "the event stream was ended by the server");
        }
        if (preview_) {
            co_return std::exchange(preview_, nullptr);
        }
        if (progress_ && now >= progress_due_) {
            progress_due_ = now + options_.progress_interval;
            co_return std::exchange(progress_, nullptr);
        }
        if (now >= give_up) {
            co_return fail(Code::request_timeout, "no event yet");
        }
        const auto wake = progress_ ? std::min(give_up, progress_due_) : give_up;
        const bool notified =
            co_await changed_.wait_for(std::chrono::ceil<Millis>(wake - now) + Millis(1));
        if (!notified) {
            const bool stop = co_await is_cancelled();
            if (stop) {
                co_return fail(Code::cancelled, "the listener was cancelled");
            }
        }
    }
}

void Hub::attach(const JobId& job, std::shared_ptr<Subscription> subscription) {
    COMFYD_ON(core_);
    if (by_job_.size() >= tidy_at_) {
        forget_the_gone();
    }
    subscription->count_in(open_);
    by_job_[job].push_back(std::move(subscription));
}

bool Hub::has_listeners(const JobId& job) const {
    const auto found = by_job_.find(job);
    return found != by_job_.end() &&
           std::ranges::any_of(found->second, [](const auto& one) { return !one.expired(); });
}

// Most streams end with their job, after its last event; nothing would ever look at them again.
void Hub::forget_the_gone() {
    for (auto entry = by_job_.begin(); entry != by_job_.end();) {
        auto& listeners = entry->second;
        std::erase_if(listeners, [](const auto& listener) { return listener.expired(); });
        entry = listeners.empty() ? by_job_.erase(entry) : std::next(entry);
    }
    tidy_at_ = std::max(kTidyAtLeast, 2 * by_job_.size());
}

void Hub::publish(EventPtr event) {
    COMFYD_ON(core_);
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

void Hub::end_all(Code reason) {
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
}

}  // namespace comfyd::events
