// What waits to be written to one WebSocket.
//
// post() may be called on any thread; everything else belongs to the executor of the connection.
// Nobody waits for a client that does not read: it is cut off when the box is full.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "base/task.hpp"
#include "comfy/server/frames.hpp"

namespace comfyd::comfy::server {

struct MailboxLimits {
    std::size_t frames_max = 4'096;
    std::size_t text_bytes_max = 16 * 1024 * 1024;
    // Pictures beyond this, or a single one, are not told. nullopt: they count as texts do.
    std::optional<std::size_t> picture_bytes_max = 32 * 1024 * 1024;
    // A client that is so many frames behind is told only the newest length of the queue.
    std::size_t lagging = 16;
};

class Mailbox : public std::enable_shared_from_this<Mailbox> {
public:
    static constexpr Millis kStatusInterval{50};  // for a crowd

    explicit Mailbox(Executor executor, MailboxLimits limits = {})
        : executor_(executor), limits_(limits), changed_(executor) {}

    void post(FramePtr frame);

    // Called once when the box is full: the writer may be stuck in the middle of a message.
    void on_full(std::function<void()> call) { full_ = std::move(call); }
    void push(FramePtr frame);
    void end(Code reason);
    bool has_ended() const { return ended_.has_value(); }
    // Much waits in it: what is soon out of date may be left out.
    bool is_behind() const { return text_bytes_ + picture_bytes_ > limits_.text_bytes_max / 8; }
    // The next one in order. Code::request_timeout: none within `patience`. Otherwise it is over:
    // Code::too_many_streams: too slow; or the reason given to end().
    Task<Result<FramePtr>> next(Millis patience);

    // The client has told its features.
    void set_features(bool with_metadata);
    bool with_metadata() const { return with_metadata_; }
    // The client's submission was answered just now. Clients of the older kind, which tell no
    // features, begin to listen only when they have read that answer: they are told the next
    // messages a little later than a small prompt may take.
    void hesitate() { hesitates_ = !has_features_; }

private:
    std::size_t& bytes_of(const Frame& frame);

    Executor executor_;
    MailboxLimits limits_;
    Signal changed_;
    std::deque<FramePtr> frames_;
    std::size_t picture_bytes_ = 0;
    std::size_t text_bytes_ = 0;
    std::chrono::steady_clock::time_point status_due_{};  // for a crowd
    bool has_features_ = false;
    bool with_metadata_ = false;
    bool hesitates_ = false;
    // What waited through a pause is told before the next one: a client that submits all the time
    // is told of it too.
    std::size_t before_pause_ = 0;
    std::function<void()> full_;
    std::optional<Code> ended_;
};

}  // namespace comfyd::comfy::server
