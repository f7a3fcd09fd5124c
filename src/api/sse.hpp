// Server-Sent Events for every dialect: frames, heartbeats, limits and the end of a stream.
//
// A handler checks what can go wrong first (unknown job, too many streams) and answers that in its
// own error shape; then stream_events() sends the head and runs until the job ended, the client
// left, or the server drains. Runs on the connection's thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "api/frame_shelf.hpp"
#include "api/router.hpp"
#include "api/services.hpp"
#include "events/hub.hpp"

namespace comfyd::api {

// "id: 7\nevent: status\ndata: {…}\n\n". Line breaks in `data` become further data lines; line
// breaks in `event` are dropped, so that no value can forge a frame.
std::string sse_frame(
    std::string_view event, std::string_view data, std::optional<std::uint64_t> id = std::nullopt
);

// True for the event after which a job's stream has nothing more to say.
bool is_last_event(const jobs::Event& event);

// Ends the subscription once the client has closed its connection: then there is nobody left to
// read events for. Runs until then, or until it is cancelled.
Task<> end_with_client(net::Exchange& exchange, std::shared_ptr<events::Subscription> subscription);

// The sequence after which a client wants to go on: header Last-Event-ID, or ?last_event_id=.
// nullopt: none sent. Code::invalid_argument when it is no number.
Result<std::optional<std::uint64_t>> last_event_id(const Call& call);

// One of the streams_max places for open streams (SSE or WebSocket); free again on destruction.
class StreamSlot {
public:
    // Code::too_many_streams.
    static Result<StreamSlot> open(const Services& services);

    StreamSlot(StreamSlot&& other) noexcept = default;
    StreamSlot& operator=(StreamSlot&&) = delete;
    ~StreamSlot();

private:
    explicit StreamSlot(std::shared_ptr<std::atomic<std::size_t>> count);
    std::shared_ptr<std::atomic<std::size_t>> count_;
};

struct EventStream {
    std::shared_ptr<events::Subscription> subscription;
    // Frames for one event, of those that all streams share (FrameShelf). Asked for each event, in
    // their order.
    std::function<FramePtr(const events::EventPtr&)> encode;
    std::string initial{};   // frames that are sent at once, for example the current state
    net::Headers headers{};  // added to the head
    // The job's latest sequence when the stream was opened: an end before it was undone by a retry,
    // and the stream goes on after it.
    std::uint64_t opened_at = 0;
};

// Sends the head, `initial`, and, unless there is no subscription, then a frame per event and a
// comment after each silent options.heartbeat. Ends after the last event of the job, and without
// one when the client is gone, the listener was too slow or the server stops; the client then
// connects again.
Task<> stream_events(Call& call, const Services& services, EventStream stream);

}  // namespace comfyd::api
