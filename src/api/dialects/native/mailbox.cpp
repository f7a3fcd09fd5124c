#include "api/dialects/native/mailbox.hpp"

#include <utility>

#include <boost/asio/post.hpp>

namespace comfyd::api::native {

void Mailbox::post(FramePtr frame) {
    boost::asio::post(executor_, [self = shared_from_this(), frame = std::move(frame)]() mutable {
        self->push(std::move(frame));
    });
}

void Mailbox::push(FramePtr frame) {
    if (ended_) {
        return;
    }
    // Only the newest length of the queue matters to a client that lags behind, or in a crowd.
    const bool replaceable = frame->for_crowd || frames_.size() >= kLagging;
    if (frame->is_status && replaceable && !frames_.empty() && frames_.back()->is_status) {
        text_bytes_ += frame->text_bytes - frames_.back()->text_bytes;
        frames_.back() = std::move(frame);
        return;
    }
    const std::size_t picture = frame->picture_bytes();
    if (picture > 0 && picture_bytes_ > 0 && picture_bytes_ + picture > kPictureBytesMax) {
        return;
    }
    if (frames_.size() >= kFramesMax || text_bytes_ > kTextBytesMax) {
        end(Code::too_many_streams);
        if (full_) {
            full_();
        }
        return;
    }
    picture_bytes_ += picture;
    text_bytes_ += frame->text_bytes;
    frames_.push_back(std::move(frame));
    changed_.notify();
}

void Mailbox::end(Code reason) {
    if (!ended_) {
        ended_ = reason;
        changed_.notify();
    }
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
    // A client that is too slow is not told the rest: it would only come later still.
    if (ended_) {
        co_return fail(*ended_, "the socket was ended by the server");
    }
    if (frames_.empty()) {
        co_return fail(Code::request_timeout, "no message yet");
    }
    FramePtr frame = std::move(frames_.front());
    frames_.pop_front();
    picture_bytes_ -= frame->picture_bytes();
    text_bytes_ -= frame->text_bytes;
    if (frame->is_status) {
        status_due_ = Ticks::now() + kStatusInterval;
    }
    co_return frame;
}

}  // namespace comfyd::api::native
