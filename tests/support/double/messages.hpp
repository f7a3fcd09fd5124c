// The text messages of ComfyUI's WebSocket, as bytes: written by hand because a busy double sends
// tens of thousands a second.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"

namespace comfyd::support {

std::string quote(std::string_view text);  // as a JSON string
std::int64_t unix_ms_now();

std::string status_message(std::size_t queue_remaining, std::string_view client_id = {});
// {"type": type, "data": data}
std::string message_of(std::string_view type, const json::object& data);
std::string executing_message(std::string_view prompt_id, std::string_view node);
std::string executed_message(
    std::string_view prompt_id, std::string_view node, const json::value& ui
);
std::string finished_message(std::string_view prompt_id);
std::string progress_message(
    std::string_view prompt_id, std::string_view node, std::string_view value, std::string_view max
);

// The nodes that have started, for progress_state.
class ProgressState {
public:
    explicit ProgressState(std::string_view prompt_id) : prompt_id_(quote(prompt_id)) {}
    void start(std::string_view node);
    void step(std::string value, std::string max);  // of the node that started last
    void finish();
    // Of a node that was not run but taken from the cache.
    void add_cached(std::string_view node);
    std::string message() const;

private:
    struct Node {
        std::string id;  // quoted
        std::string value;
        std::string max;
        bool finished = false;
    };
    std::string prompt_id_;
    std::vector<Node> nodes_;
};

// Binary frames.
std::string preview_frame(std::string_view png);
std::string preview_frame_with_metadata(
    std::string_view png, std::string_view prompt_id, std::string_view node
);

}  // namespace comfyd::support
