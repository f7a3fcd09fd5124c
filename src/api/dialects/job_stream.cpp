#include "api/dialects/job_stream.hpp"

#include <memory>
#include <optional>
#include <utility>

#include "api/sse.hpp"
#include "api/submission.hpp"

namespace comfyd::api {
namespace {

// For a client that comes back after the last event.
net::Response closed_stream(net::Headers headers) {
    net::Response response;
    response.headers = std::move(headers);
    response.headers.set("Content-Type", "text/event-stream");
    response.headers.set("Cache-Control", "no-cache");
    response.body = close_frame();
    return response;
}

std::string encode_frames(
    execution::EventEncoder& encoder,
    const std::function<json::object(json::object)>& event_shape,
    const jobs::Event& event
) {
    json::object message = encoder.encode(event);
    if (event_shape) {
        message = event_shape(std::move(message));
    }
    std::string frames = sse_frame("", json::serialize(message), event.sequence);
    if (encoder.is_last(event)) {
        frames += close_frame();
    }
    return frames;
}

EventStream make_stream(
    const Call& call,
    const Services& services,
    const StreamShape& shape,
    const StreamOpening& opening,
    std::shared_ptr<events::Subscription> subscription
) {
    const auto links = execution::links_of(call, services);
    EventStream stream;
    stream.subscription = std::move(subscription);
    stream.headers = shape.headers;
    stream.opened_at = opening.shown.view.job.sequence;
    if (!opening.since) {
        stream.initial = sse_frame(
            "", json::serialize(shape.state(opening.shown, links)), opening.first_after()
        );
    }
    auto encoder = std::make_shared<execution::EventEncoder>(opening.shown.view, links);
    stream.encode = [encoder,
                     event_shape = shape.event,
                     frames = services.frames,
                     form = std::string(shape.name) + '\n' +
                            base_url(call.request, services.options) +
                            '\n'](const events::EventPtr& event) -> FramePtr {
        if (event->type == jobs::EventType::preview) {
            return nullptr;
        }
        encoder->follow(*event);
        return frames->get(event, form + encoder->variant_of(*event), [&] {
            return std::optional(encode_frames(*encoder, event_shape, *event));
        });
    };
    return stream;
}

Task<> refuse(Call& call, const StreamShape& shape, Error error) {
    auto sent = co_await call.exchange.send(shape.refuse(error));
    static_cast<void>(sent);  // a client that is gone needs no answer
}

}  // namespace

std::string close_frame() {
    return sse_frame("close", "{}");
}

Task<Result<StreamOpening>> open_stream(
    const Call& call, const Services& services, std::optional<std::uint64_t> since
) {
    const auto id = co_await find_job_id(call, services, call.path_parameters.at(0));
    if (!id) {
        co_return fail(id.error());
    }
    auto view = co_await services.jobs.get(call.caller.tenant, *id);
    if (!view) {
        co_return fail(std::move(view.error()));
    }
    if (since) {
        auto checked = execution::check_sequence(view->job, *since);
        if (!checked) {
            co_return fail(std::move(checked.error()));
        }
    }
    auto shown = co_await execution::complete_view(services, std::move(*view));
    if (!shown) {
        co_return fail(std::move(shown.error()));
    }
    co_return StreamOpening{std::move(*shown), since};
}

Task<> stream_job(Call& call, const Services& services, StreamShape shape) {
    const auto since = last_event_id(call);
    if (!since) {
        co_await refuse(call, shape, since.error());
        co_return;
    }
    auto opening = co_await open_stream(call, services, *since);
    if (!opening) {
        co_await refuse(call, shape, std::move(opening.error()));
        co_return;
    }
    if (opening->is_over()) {
        auto sent = co_await call.exchange.send(closed_stream(std::move(shape.headers)));
        static_cast<void>(sent);
        co_return;
    }
    auto slot = StreamSlot::open(services);
    if (!slot) {
        co_await refuse(call, shape, std::move(slot.error()));
        co_return;
    }
    events::WatchOptions options;
    options.since = opening->first_after();
    auto subscription =
        co_await services.jobs.watch(call.caller.tenant, opening->shown.view.job.id, options);
    if (!subscription) {
        co_await refuse(call, shape, std::move(subscription.error()));
        co_return;
    }
    EventStream stream = make_stream(call, services, shape, *opening, std::move(*subscription));
    co_await stream_events(call, services, std::move(stream));
}

}  // namespace comfyd::api
