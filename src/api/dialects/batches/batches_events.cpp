// A batch as it goes on, by Server-Sent Events.
#include "api/dialects/batches/batches.hpp"
#include "api/sse.hpp"
#include "bulk/news.hpp"

namespace comfyd::api::batches {
namespace {

using jobs::Bulk;

constexpr Millis kLookAtProgress{500};

// One frame whenever something has changed; the last one tells the end.
Task<> stream(Call& call, const Tools& tools, Bulk bulk) {
    std::string shown;
    Millis silence{0};
    while (true) {
        const std::string now = json::serialize(encode_batch(bulk));
        std::string frames;
        if (has_ended(bulk.state)) {
            auto end = co_await bulk::describe_end(tools.bulks, bulk);
            if (end) {
                frames = sse_frame(to_string(bulk.state), json::serialize(*end));
                frames += sse_frame("close", "{}");
            }
        } else if (now != shown) {
            frames = sse_frame("progress", now);
        } else if (silence >= tools.services.options.heartbeat) {
            frames = ": still here\n\n";
        }
        if (!frames.empty()) {
            silence = Millis(0);
            shown = now;
            auto written = co_await call.exchange.write_stream(std::move(frames));
            if (!written || has_ended(bulk.state)) {
                co_return;
            }
        }
        const bool is_gone = co_await call.exchange.wait_closed(kLookAtProgress);
        if (is_gone || call.exchange.draining()) {
            co_return;
        }
        silence += kLookAtProgress;
        auto found = co_await tools.bulks.find_bulk(bulk.id);
        if (!found || !*found) {
            co_return;
        }
        bulk = std::move(**found);
    }
}

}  // namespace

Task<Result<>> send_events(Call& call, const Tools& tools, Bulk bulk) {
    auto slot = StreamSlot::open(tools.services);
    if (!slot) {
        co_return fail(std::move(slot.error()));
    }
    net::Response head;
    head.headers.set("Content-Type", "text/event-stream");
    head.headers.set("Cache-Control", "no-cache, no-transform");
    head.headers.set("X-Accel-Buffering", "no");
    auto begun = co_await call.exchange.begin_stream(std::move(head));
    if (!begun || call.request.method == net::Method::head) {
        co_return Result<>();
    }
    co_await stream(call, tools, std::move(bulk));
    auto ended = co_await call.exchange.end_stream();
    static_cast<void>(ended);  // it makes no difference to a client that is gone
    co_return Result<>();
}

}  // namespace comfyd::api::batches
