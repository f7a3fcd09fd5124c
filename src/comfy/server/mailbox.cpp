#include "comfy/server/mailbox.hpp"

#include <utility>

#include <boost/asio/post.hpp>

namespace comfyd::comfy::server {
namespace {

// About what ComfyUI itself needs for the smallest prompt.
constexpr Millis kHesitation{4};
// A frame's own cost in the box.
constexpr std::size_t kFrameBytes = 64;

std::size_t size_of(const Frame& frame) {
    return kFrameBytes + frame.text_bytes + frame.picture_bytes();
}

}  // namespace

void Mailbox::post(FramePtr frame) {
    boost::asio::post(executor_, [self = shared_from_this(), frame = std::move(frame)]() mutable {
        self->push(std::move(frame));
    });
}

std::size_t& Mailbox::bytes_of(const Frame& frame) {
    return frame.preview && limits_.picture_bytes_max ? picture_bytes_ : text_bytes_;
}

void Mailbox::push(FramePtr frame) {
    if (ended_) {
        return;
    }
    // Only the newest length of the queue matters to a client that lags behind, or in a crowd.
    const bool replaceable = frame->for_crowd || frames_.size() >= limits_.lagging;
    if (frame->is_status && replaceable && !frames_.empty() && frames_.back()->is_status) {
        text_bytes_ += size_of(*frame) - size_of(*frames_.back());
        frames_.back() = std::move(frame);
        return;
    }
    const bool is_picture = frame->preview && limits_.picture_bytes_max;
    if (is_picture && picture_bytes_ > 0 &&
        picture_bytes_ + size_of(*frame) > *limits_.picture_bytes_max) {
        return;
    }
    // A single message may be larger than the box: it is sent when nothing else waits.
    const std::size_t texts = text_bytes_ + (is_picture ? 0 : size_of(*frame));
    if (frames_.size() >= limits_.frames_max ||
        (texts > limits_.text_bytes_max && text_bytes_ > 0)) {
        end(Code::too_many_streams);
        if (full_) {
            full_();
        }
        return;
    }
    bytes_of(*frame) += size_of(*frame);
    frames_.push_back(std::move(frame));
    changed_.notify();
}

void Mailbox::end(Code reason) {
    if (!ended_) {
        ended_ = reason;
        changed_.notify();
    }
}

void Mailbox::set_features(bool with_metadata) {
    has_features_ = true;
    with_metadata_ = with_metadata;
}

Task<Result<FramePtr>> Mailbox::next(Millis patience) {
    if (frames_.empty() && !ended_) {
        const bool notified = co_await changed_.wait_for(patience);
        if (!notified && frames_.empty() && !ended_) {
            const bool stop = co_await is_cancelled();
            co_return stop ? fail(Code::cancelled, "the connection is being closed")
                           : fail(Code::request_timeout, "no message yet");
        }
    }
    using Ticks = std::chrono::steady_clock;
    while (!ended_ && frames_.size() == 1 && frames_.front()->for_crowd &&
           Ticks::now() < status_due_) {
        co_await changed_.wait_for(std::chrono::ceil<Millis>(status_due_ - Ticks::now()));
        const bool stop = co_await is_cancelled();
        if (stop) {
            co_return fail(Code::cancelled, "the connection is being closed");
        }
    }
    if (before_pause_ == 0 && !frames_.empty() && std::exchange(hesitates_, false)) {
        co_await sleep_for(kHesitation);
        before_pause_ = frames_.size();
    }
    // A client that is too slow is not told the rest: it would only come later still.
    if (ended_) {
        co_return fail(*ended_, "the socket was ended by the server");
    }
    if (frames_.empty()) {
        co_return fail(Code::request_timeout, "no message yet");
    }
    before_pause_ -= before_pause_ > 0 ? 1 : 0;
    FramePtr frame = std::move(frames_.front());
    frames_.pop_front();
    bytes_of(*frame) -= size_of(*frame);
    if (frame->is_status) {
        status_due_ = Ticks::now() + kStatusInterval;
    }
    co_return frame;
}

}  // namespace comfyd::comfy::server
