// What waits to be written to one native WebSocket.
//
// post() may be called on any thread; everything else belongs to the executor of the connection.
// A client that does not read loses pictures first and is cut off when the box is full: nobody
// waits for it.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/json.hpp"
#include "base/task.hpp"
#include "comfy/messages.hpp"

namespace comfyd::api::native {

// One message, for any number of sockets. Encoded by each socket on its own thread.
struct Frame {
    json::object message{};                   // a text message
    std::optional<comfy::Preview> preview{};  // or a picture
    std::optional<comfy::NodeText> text{};    // or a text in a binary frame

    std::size_t text_bytes = 0;  // about, of a text message
    bool is_status = false;      // the length of the queue
    bool for_crowd = false;      // such a one, to so many that it may come later

    std::size_t picture_bytes() const { return preview ? preview->bytes.size() : 0; }
};
using FramePtr = std::shared_ptr<const Frame>;

class Mailbox : public std::enable_shared_from_this<Mailbox> {
public:
    static constexpr std::size_t kFramesMax = 4'096;
    static constexpr Millis kStatusInterval{50};  // for a crowd
    static constexpr std::size_t kLagging = 16;   // frames
    static constexpr std::size_t kTextBytesMax = 16 * 1024 * 1024;
    static constexpr std::size_t kPictureBytesMax = 32 * 1024 * 1024;  // or a single one

    explicit Mailbox(Executor executor) : executor_(executor), changed_(executor) {}

    void post(FramePtr frame);

    // Called once when the box is full: the writer may be stuck in the middle of a message.
    void on_full(std::function<void()> call) { full_ = std::move(call); }
    void push(FramePtr frame);
    void end(Code reason);
    // The next one in order. Code::request_timeout: none within `patience`. Otherwise it is over:
    // Code::too_many_streams: too slow; or the reason given to end().
    Task<Result<FramePtr>> next(Millis patience);

private:
    Executor executor_;
    Signal changed_;
    std::deque<FramePtr> frames_;
    std::size_t picture_bytes_ = 0;
    std::size_t text_bytes_ = 0;
    std::chrono::steady_clock::time_point status_due_{};  // for a crowd
    std::function<void()> full_;
    std::optional<Code> ended_;
};

}  // namespace comfyd::api::native
