#include <utility>

#include "base/assert.hpp"
#include "comfy/frames.hpp"
#include "comfy/messages.hpp"

namespace comfyd::comfy {
namespace {

void append_u32(std::string& to, std::size_t number) {
    for (int shift = 24; shift >= 0; shift -= 8) {
        to += static_cast<char>(number >> shift & 0xFF);
    }
}

json::array to_array(const std::vector<std::string>& texts) {
    json::array list;
    list.reserve(texts.size());
    for (const std::string& text : texts) {
        list.emplace_back(text);
    }
    return list;
}

json::value text_or_null(const std::string& text) {
    return text.empty() ? json::value() : json::value(text);
}

json::object message(std::string_view type, json::object data) {
    json::object made;
    made.emplace("type", json::value(boost::json::string_view(type.data(), type.size())));
    made.emplace("data", std::move(data));
    return made;
}

struct ToJson {
    json::object operator()(const Status& from) const {
        json::object data{{"status", {{"exec_info", {{"queue_remaining", from.queue_remaining}}}}}};
        if (!from.sid.empty()) {
            data["sid"] = from.sid;
        }
        return message("status", std::move(data));
    }
    json::object operator()(const ExecutionStart& from) const {
        return message(
            "execution_start", {{"prompt_id", from.prompt_id}, {"timestamp", from.timestamp}}
        );
    }
    json::object operator()(const ExecutionCached& from) const {
        json::object data;
        data["nodes"] = to_array(from.nodes);
        data["prompt_id"] = from.prompt_id;
        data["timestamp"] = from.timestamp;
        return message("execution_cached", std::move(data));
    }
    json::object operator()(const Executing& from) const {
        json::object data;
        data["node"] = from.node ? json::value(*from.node) : json::value();
        if (from.node && !from.display_node.empty()) {
            data["display_node"] = from.display_node;
        }
        if (!from.prompt_id.empty()) {
            data["prompt_id"] = from.prompt_id;
        }
        return message("executing", std::move(data));
    }
    json::object operator()(const StepProgress& from) const {
        return message(
            "progress",
            {{"value", from.value},
             {"max", from.max},
             {"prompt_id", from.prompt_id},
             {"node", from.node}}
        );
    }
    json::object operator()(const ProgressState& from) const {
        json::object nodes;
        for (const NodeProgress& node : from.nodes) {
            nodes[node.node_id] = {
                {"value", node.value},
                {"max", node.max},
                {"state", node.finished ? "finished" : "running"},
                {"node_id", node.node_id},
                {"prompt_id", from.prompt_id},
                {"display_node_id", node.display_node_id},
                {"parent_node_id", text_or_null(node.parent_node_id)},
                {"real_node_id", node.real_node_id},
            };
        }
        json::object data;
        data["prompt_id"] = from.prompt_id;
        data["nodes"] = std::move(nodes);
        return message("progress_state", std::move(data));
    }
    json::object operator()(const Executed& from) const {
        json::object data;
        data["node"] = from.node;
        data["display_node"] = from.display_node;
        data["output"] = from.output;
        data["prompt_id"] = from.prompt_id;
        return message("executed", std::move(data));
    }
    json::object operator()(const ExecutionSuccess& from) const {
        return message(
            "execution_success", {{"prompt_id", from.prompt_id}, {"timestamp", from.timestamp}}
        );
    }
    json::object operator()(const ExecutionError& from) const {
        return message("execution_error", from.to_json());
    }
    json::object operator()(const ExecutionInterrupted& from) const {
        json::object data;
        data["prompt_id"] = from.prompt_id;
        data["node_id"] = from.node_id;
        data["node_type"] = from.node_type;
        data["executed"] = to_array(from.executed);
        data["timestamp"] = from.timestamp;
        return message("execution_interrupted", std::move(data));
    }
    json::object operator()(const FeatureFlags& from) const {
        return message("feature_flags", from.flags);
    }
    template <class Other>
    json::object operator()(const Other&) const {
        COMFYD_ASSERT(false && "this message does not travel as text");
        return {};
    }
};

}  // namespace

json::object ExecutionError::to_json() const {
    json::object data;
    data["prompt_id"] = prompt_id;
    data["node_id"] = node_id;
    data["node_type"] = node_type;
    data["executed"] = to_array(executed);
    data["exception_message"] = exception_message;
    data["exception_type"] = exception_type;
    data["traceback"] = to_array(traceback);
    data["current_inputs"] = current_inputs;
    data["current_outputs"] = current_outputs;
    if (timestamp) {
        data["timestamp"] = *timestamp;
    }
    return data;
}

json::object to_json(const Message& message) {
    return std::visit(ToJson{}, message);
}

std::string encode_text(const Message& message) {
    return json::serialize_python(to_json(message));
}

std::string encode_binary(const Preview& preview, bool with_metadata) {
    std::string frame;
    if (!with_metadata) {
        append_u32(frame, kFramePreview);
        append_u32(frame, preview.content_type == "image/png" ? kFormatPng : kFormatJpeg);
        return frame + preview.bytes;
    }
    const std::string metadata = json::serialize_python(json::object{
        {"node_id", preview.node_id},
        {"prompt_id", preview.prompt_id},
        {"display_node_id", preview.display_node_id},
        {"parent_node_id", text_or_null(preview.parent_node_id)},
        {"real_node_id", preview.real_node_id},
        {"image_type", preview.content_type},
    });
    append_u32(frame, kFramePreviewWithMetadata);
    append_u32(frame, metadata.size());
    return frame + metadata + preview.bytes;
}

std::string encode_binary(const NodeText& text) {
    std::string frame;
    append_u32(frame, kFrameText);
    append_u32(frame, text.node_id.size());
    return frame + text.node_id + text.text;
}

}  // namespace comfyd::comfy
