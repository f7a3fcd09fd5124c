#include "api/sse.hpp"

#include <charconv>
#include <exception>
#include <utility>

namespace comfyd::api {
namespace {

constexpr std::string_view kHeartbeat = ": still here\n\n";
// A stream is checked for a client that left as long as it lasts; the wait is merely bounded.
constexpr Millis kCloseWait = std::chrono::hours(24);

const FramePtr& heartbeat_frame() {
    static const auto frame = std::make_shared<const std::string>(kHeartbeat);
    return frame;
}

void append_data_lines(std::string& frame, std::string_view data) {
    while (true) {
        const auto end = data.find_first_of("\r\n");
        frame += "data: ";
        frame += data.substr(0, end);
        frame += '\n';
        if (end == std::string_view::npos) {
            return;
        }
        const bool is_pair = data[end] == '\r' && end + 1 < data.size() && data[end + 1] == '\n';
        data.remove_prefix(end + (is_pair ? 2 : 1));
    }
}

// Returns when the stream has said everything or cannot go on.
Task<> pump(net::Exchange& exchange, Millis heartbeat, const EventStream& stream) {
    if (!stream.initial.empty()) {
        auto sent = co_await exchange.write_stream(stream.initial);
        if (!sent) {
            co_return;
        }
    }
    while (stream.subscription && !exchange.draining()) {
        auto event = co_await stream.subscription->next(heartbeat);
        if (!event && event.error().code != Code::request_timeout) {
            co_return;
        }
        const FramePtr frame = event ? stream.encode(*event) : heartbeat_frame();
        if (frame) {
            auto sent = co_await exchange.write_stream(*frame);
            if (!sent) {
                co_return;
            }
        }
        if (event && is_last_event(**event) && (*event)->sequence >= stream.opened_at) {
            co_return;
        }
    }
}

}  // namespace

std::string sse_frame(
    std::string_view event, std::string_view data, std::optional<std::uint64_t> id
) {
    std::string frame;
    frame.reserve(event.size() + data.size() + 48);
    if (id) {
        frame += "id: " + std::to_string(*id) + "\n";
    }
    if (!event.empty()) {
        frame += "event: ";
        for (const char c : event) {
            if (c != '\r' && c != '\n') {
                frame += c;
            }
        }
        frame += '\n';
    }
    append_data_lines(frame, data);
    frame += '\n';
    return frame;
}

Task<> end_with_client(
    net::Exchange& exchange, std::shared_ptr<events::Subscription> subscription
) {
    bool closed = false;
    bool cancelled = false;
    while (!closed && !cancelled) {
        closed = co_await exchange.wait_closed(kCloseWait);
        cancelled = co_await is_cancelled();
    }
    if (closed) {
        subscription->end(Code::cancelled);
    }
}

bool is_last_event(const jobs::Event& event) {
    switch (event.type) {
        case jobs::EventType::completed:
        case jobs::EventType::failed:
        case jobs::EventType::cancelled:
        case jobs::EventType::expired:
            return true;
        default:
            return false;
    }
}

Result<std::optional<std::uint64_t>> last_event_id(const Call& call) {
    std::string_view text = call.request.headers.get("Last-Event-ID");
    if (text.empty()) {
        text = call.query_value("last_event_id");
    }
    if (text.empty()) {
        return std::nullopt;
    }
    std::uint64_t sequence = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), sequence);
    if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) {
        return fail(
            Code::invalid_argument,
            "Last-Event-ID must be the 'id' of an event of this stream, a whole number",
            {{"field", "Last-Event-ID"}}
        );
    }
    return sequence;
}

StreamSlot::StreamSlot(std::shared_ptr<std::atomic<std::size_t>> count)
    : count_(std::move(count)) {}

StreamSlot::~StreamSlot() {
    if (count_) {
        count_->fetch_sub(1);
    }
}

Result<StreamSlot> StreamSlot::open(const Services& services) {
    const std::size_t before = services.streams->fetch_add(1);
    StreamSlot slot(services.streams);
    if (before >= services.options.streams_max) {
        return fail(
            Code::too_many_streams,
            "this server already has " + std::to_string(services.options.streams_max) +
                " event streams open; poll the job instead, or try again later"
        );
    }
    return slot;
}

Task<> stream_events(Call& call, const Services& services, EventStream stream) {
    net::Response head;
    head.headers = stream.headers;
    head.headers.set("Content-Type", "text/event-stream");
    head.headers.set("Cache-Control", "no-cache, no-transform");
    head.headers.set("X-Accel-Buffering", "no");  // a proxy must not collect events
    auto begun = co_await call.exchange.begin_stream(std::move(head));
    if (!begun || call.request.method == net::Method::head) {
        co_return;
    }
    TaskGroup group(call.exchange.executor());
    if (stream.subscription) {
        group.spawn("event stream client", end_with_client(call.exchange, stream.subscription));
    }
    std::exception_ptr failure;
    try {
        co_await pump(call.exchange, services.options.heartbeat, stream);
    } catch (...) {
        failure = std::current_exception();
    }
    group.cancel();
    co_await group.join();
    if (failure) {
        std::rethrow_exception(failure);
    }
    auto ended = co_await call.exchange.end_stream();
    static_cast<void>(ended);  // it makes no difference to a client that is gone
}

}  // namespace comfyd::api
