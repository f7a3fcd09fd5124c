#include "support/double/messages.hpp"

#include <chrono>
#include <utility>

#include "support/double/pictures.hpp"

namespace comfyd::support {

std::string quote(std::string_view text) {
    return json::serialize_python(json::value(text));
}

std::int64_t unix_ms_now() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

std::string status_message(std::size_t queue_remaining, std::string_view client_id) {
    std::string text =
        R"({"type": "status", "data": {"status": {"exec_info": {"queue_remaining": )";
    text += std::to_string(queue_remaining) + "}}";
    if (!client_id.empty()) {
        text += R"(, "sid": )" + quote(client_id);
    }
    return text + "}}";
}

std::string message_of(std::string_view type, const json::object& data) {
    return R"({"type": )" + quote(type) + R"(, "data": )" + json::serialize_python(data) + "}";
}

std::string executing_message(std::string_view prompt_id, std::string_view node) {
    const std::string id = quote(node);
    return R"({"type": "executing", "data": {"node": )" + id + R"(, "display_node": )" + id +
           R"(, "prompt_id": )" + quote(prompt_id) + "}}";
}

std::string executed_message(
    std::string_view prompt_id, std::string_view node, const json::value& ui
) {
    return message_of(
        "executed",
        {{"node", node}, {"display_node", node}, {"output", ui}, {"prompt_id", prompt_id}}
    );
}

std::string finished_message(std::string_view prompt_id) {
    return R"({"type": "executing", "data": {"node": null, "prompt_id": )" + quote(prompt_id) +
           "}}";
}

std::string progress_message(
    std::string_view prompt_id, std::string_view node, std::string_view value, std::string_view max
) {
    std::string text = R"({"type": "progress", "data": {"value": )";
    text += value;
    text += R"(, "max": )";
    text += max;
    return text + R"(, "prompt_id": )" + quote(prompt_id) + R"(, "node": )" + quote(node) + "}}";
}

void ProgressState::start(std::string_view node) {
    nodes_.push_back({quote(node), "0.0", "1.0", false});
}

void ProgressState::step(std::string value, std::string max) {
    nodes_.back().value = std::move(value);
    nodes_.back().max = std::move(max);
}

void ProgressState::finish() {
    nodes_.back().value = nodes_.back().max;
    nodes_.back().finished = true;
}

void ProgressState::add_cached(std::string_view node) {
    nodes_.push_back({quote(node), "1", "1", true});
}

std::string ProgressState::message() const {
    std::string text =
        R"({"type": "progress_state", "data": {"prompt_id": )" + prompt_id_ + R"(, "nodes": {)";
    for (const auto& node : nodes_) {
        text += &node == nodes_.data() ? "" : ", ";
        text +=
            node.id + R"(: {"value": )" + node.value + R"(, "max": )" + node.max + R"(, "state": )";
        text += node.finished ? R"("finished")" : R"("running")";
        text += R"(, "node_id": )" + node.id + R"(, "prompt_id": )" + prompt_id_ +
                R"(, "display_node_id": )" + node.id +
                R"(, "parent_node_id": null, "real_node_id": )" + node.id + "}";
    }
    return text + "}}}";
}

std::string preview_frame(std::string_view png) {
    constexpr unsigned kPreview = 1;
    constexpr unsigned kPng = 2;
    return big_endian(kPreview) + big_endian(kPng) + std::string(png);
}

std::string preview_frame_with_metadata(
    std::string_view png, std::string_view prompt_id, std::string_view node
) {
    constexpr unsigned kPreviewWithMetadata = 4;
    const std::string id = quote(node);
    const std::string metadata = R"({"node_id": )" + id + R"(, "prompt_id": )" + quote(prompt_id) +
                                 R"(, "display_node_id": )" + id +
                                 R"(, "parent_node_id": null, "real_node_id": )" + id +
                                 R"(, "image_type": "image/png"})";
    return big_endian(kPreviewWithMetadata) + big_endian(static_cast<unsigned>(metadata.size())) +
           metadata + std::string(png);
}

}  // namespace comfyd::support
