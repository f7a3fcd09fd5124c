#include "events/feed.hpp"

#include <algorithm>
#include <utility>

#include <boost/asio/post.hpp>

#include "base/json_weight.hpp"
#include "base/on_executor.hpp"

namespace comfyd::events {
namespace {

bool is_stored(const Notice& notice) {
    return std::holds_alternative<Arrived>(notice) || std::holds_alternative<Changed>(notice);
}

std::size_t bytes_of(const Notice& notice) {
    if (const auto* shown = std::get_if<Shown>(&notice)) {
        return shown->event->preview.size();
    }
    const auto* said = std::get_if<Said>(&notice);
    return said != nullptr ? said->message.bytes.size() + json::weight(said->message.data) : 0;
}

}  // namespace

Feed::Feed(Executor executor, FeedOptions options)
    : executor_(executor), options_(std::move(options)), changed_(executor) {}

bool Feed::wants(const jobs::Job& job, const Notice& notice) const {
    if (options_.tenant && *options_.tenant != job.tenant) {
        return false;
    }
    if (std::holds_alternative<Said>(notice)) {
        return !options_.messages_of.empty() && options_.messages_of == job.dialect;
    }
    if (const auto* shown = std::get_if<Shown>(&notice)) {
        return shown->event->type == jobs::EventType::preview ? options_.previews
                                                              : options_.progress;
    }
    return true;
}

void Feed::push(Notice notice) {
    bool must_wake = false;
    {
        const Lock lock(mutex_);
        if (ended_) {
            return;
        }
        keep(std::move(notice));
        must_wake = waiting_.notices.size() >= wake_at_ && !std::exchange(is_woken_, true);
    }
    if (must_wake) {
        wake();
    }
}

void Feed::tell_gap() {
    bool must_wake = false;
    {
        const Lock lock(mutex_);
        if (ended_) {
            return;
        }
        waiting_.has_gap = true;
        must_wake = wake_at_ <= 1 && !std::exchange(is_woken_, true);
    }
    if (must_wake) {
        wake();
    }
}

void Feed::keep(Notice notice) {
    if (is_stored(notice)) {
        if (stored_ >= options_.waiting_max) {
            empty();
            waiting_.has_gap = true;
        }
        stored_ += 1;
    } else {
        const std::size_t bytes = bytes_of(notice);
        if (unstored_ >= options_.waiting_max ||
            (unstored_bytes_ > 0 && unstored_bytes_ + bytes > kUnstoredBytesMax)) {
            drop_unstored();
        }
        unstored_ += 1;
        unstored_bytes_ += bytes;
    }
    waiting_.notices.push_back(std::move(notice));
}

void Feed::drop_unstored() {
    std::erase_if(waiting_.notices, [](const Notice& notice) { return !is_stored(notice); });
    unstored_ = 0;
    unstored_bytes_ = 0;
}

void Feed::end(Code reason) {
    {
        const Lock lock(mutex_);
        if (ended_) {
            return;
        }
        ended_ = reason;
    }
    wake();
}

void Feed::wake() {
    boost::asio::post(executor_, [self = shared_from_this()] {
        self->changed_.notify();
        if (self->told_) {
            self->told_();
        }
    });
}

Feed::Batch Feed::empty() {
    stored_ = 0;
    unstored_ = 0;
    unstored_bytes_ = 0;
    is_woken_ = false;
    return std::exchange(waiting_, {});
}

void Feed::wake_at(std::size_t count) {
    COMFYD_ON(executor_);
    std::function<void()> awake;
    bool must_wake = false;
    {
        const Lock lock(mutex_);
        if (count <= 1 && wake_at_ > 1) {
            awake = awake_;
        }
        wake_at_ = count;
        // Of what came before it was woken for so few.
        const bool is_enough = waiting_.notices.size() >= count || (waiting_.has_gap && count <= 1);
        must_wake = is_enough && !std::exchange(is_woken_, true);
    }
    if (awake) {
        awake();
    }
    if (must_wake) {
        wake();
    }
}

bool Feed::is_awake() {
    const Lock lock(mutex_);
    return wake_at_ <= 1;
}

void Feed::on_awake(std::function<void()> call) {
    const Lock lock(mutex_);
    awake_ = std::move(call);
}

Feed::Batch Feed::take() {
    COMFYD_ON(executor_);
    const Lock lock(mutex_);
    return empty();
}

Task<Result<Feed::Batch>> Feed::next(std::optional<Millis> patience) {
    for (bool is_last = false;;) {
        Batch batch = take();
        if (batch.has_gap || !batch.notices.empty()) {
            co_return batch;
        }
        if (const auto ended = end_reason()) {
            co_return fail(*ended, "the feed was ended by the server");
        }
        if (is_last) {
            co_return fail(Code::request_timeout, "nothing is told yet");
        }
        const bool is_told = co_await wait(patience);
        if (!is_told) {
            const bool stop = co_await is_cancelled();
            if (stop) {
                co_return fail(Code::cancelled, "the listener was cancelled");
            }
            is_last = true;
        }
    }
}

std::optional<Code> Feed::end_reason() {
    const Lock lock(mutex_);
    return ended_;
}

Task<bool> Feed::wait(std::optional<Millis> patience) {
    return patience ? changed_.wait_for(*patience) : changed_.wait();
}

}  // namespace comfyd::events
