#include "events/subscription.hpp"

#include <algorithm>
#include <utility>

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

}  // namespace comfyd::events
