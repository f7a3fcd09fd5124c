// What clients are told over the WebSocket, one message at a time. Pure.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.hpp"
#include "comfy/messages.hpp"

namespace comfyd::comfy::server {

// One message, for any number of sockets. Encoded by each socket on its own thread.
struct Frame {
    json::object message{};            // a text message
    std::optional<Preview> preview{};  // or a picture
    std::optional<NodeText> text{};    // or a text in a binary frame

    std::size_t text_bytes = 0;  // about, of a text message
    bool is_status = false;      // the length of the queue
    bool for_crowd = false;      // such a one, to so many that it may come later

    std::size_t picture_bytes() const { return preview ? preview->bytes.size() : 0; }
    bool is_binary() const { return preview || text; }
    // `with_metadata`: for a client that wants previews so.
    std::string encode(bool with_metadata) const;
};
using FramePtr = std::shared_ptr<const Frame>;

FramePtr make_frame(std::string_view type, json::object data);
// REQUIRES: a message that travels as text.
FramePtr make_frame(const Message& message);
FramePtr make_frame(Preview preview);
FramePtr make_frame(NodeText text);
// The length of the queue. `for_crowd`: so many are told that it may come later.
FramePtr make_status(std::size_t unfinished, bool for_crowd);

}  // namespace comfyd::comfy::server
