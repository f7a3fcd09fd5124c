#include "comfy/server/frames.hpp"

#include <utility>

#include "base/json_weight.hpp"

namespace comfyd::comfy::server {
namespace {

std::shared_ptr<Frame> make_text(json::object message) {
    auto frame = std::make_shared<Frame>();
    frame->text_bytes = json::weight(message);
    frame->message = std::move(message);
    return frame;
}

}  // namespace

std::string Frame::encode(bool with_metadata) const {
    if (preview) {
        return encode_binary(*preview, with_metadata);
    }
    return text ? encode_binary(*text) : json::serialize_python(message);
}

FramePtr make_frame(std::string_view type, json::object data) {
    json::object message;
    message["type"] = type;
    message["data"] = std::move(data);
    return make_text(std::move(message));
}

FramePtr make_frame(const Message& message) {
    return make_text(to_json(message));
}

FramePtr make_frame(Preview preview) {
    auto frame = std::make_shared<Frame>();
    frame->preview = std::move(preview);
    return frame;
}

FramePtr make_frame(NodeText text) {
    auto frame = std::make_shared<Frame>();
    frame->text_bytes = text.text.size();
    frame->text = std::move(text);
    return frame;
}

FramePtr make_status(std::size_t unfinished, bool for_crowd) {
    Status status;
    status.queue_remaining = static_cast<std::int64_t>(unfinished);
    auto frame = make_text(to_json(status));
    frame->is_status = true;
    frame->for_crowd = for_crowd;
    return frame;
}

}  // namespace comfyd::comfy::server
