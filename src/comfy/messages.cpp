#include "comfy/messages.hpp"

#include <array>
#include <utility>

#include "base/assert.hpp"
#include "comfy/members.hpp"

namespace comfyd::comfy {
namespace {

constexpr std::uint32_t kFramePreview = 1;
constexpr std::uint32_t kFrameText = 3;
constexpr std::uint32_t kFramePreviewWithMetadata = 4;
constexpr std::uint32_t kFormatJpeg = 1;
constexpr std::uint32_t kFormatPng = 2;

Malformed missing(std::string_view type, std::string_view member) {
    return {std::string(type) + " without a usable '" + std::string(member) + "'"};
}

Message decode_status(const json::object& data) {
    const json::object* status = object_of(data, "status");
    const json::object* info = status == nullptr ? nullptr : object_of(*status, "exec_info");
    if (info == nullptr || !maybe_number(*info, "queue_remaining")) {
        return missing("status", "queue_remaining");
    }
    return Status{integer_of(*info, "queue_remaining"), text_of(data, "sid")};
}

Message decode_execution_start(const json::object& data) {
    auto prompt = maybe_text(data, "prompt_id");
    if (!prompt) {
        return missing("execution_start", "prompt_id");
    }
    return ExecutionStart{std::move(*prompt), integer_of(data, "timestamp")};
}

Message decode_execution_cached(const json::object& data) {
    auto prompt = maybe_text(data, "prompt_id");
    if (!prompt) {
        return missing("execution_cached", "prompt_id");
    }
    return ExecutionCached{std::move(*prompt), texts_of(data, "nodes"), integer_of(data, "timestamp")};
}

Message decode_executing(const json::object& data) {
    const auto node = data.find("node");
    // An absent node must not be taken for null: null ends the prompt.
    if (node == data.end() || !(node->value().is_null() || node->value().is_string())) {
        return missing("executing", "node");
    }
    return Executing{text_of(data, "prompt_id"), maybe_text(data, "node"), text_of(data, "display_node")};
}

Message decode_progress(const json::object& data) {
    const auto value = maybe_number(data, "value");
    const auto max = maybe_number(data, "max");
    if (!value || !max) {
        return missing("progress", value ? "max" : "value");
    }
    return StepProgress{text_of(data, "prompt_id"), text_of(data, "node"), *value, *max};
}

Message decode_progress_state(const json::object& data) {
    auto prompt = maybe_text(data, "prompt_id");
    const json::object* nodes = object_of(data, "nodes");
    if (!prompt || nodes == nullptr) {
        return missing("progress_state", prompt ? "nodes" : "prompt_id");
    }
    ProgressState state{std::move(*prompt), {}};
    state.nodes.reserve(nodes->size());
    for (const auto& [id, entry] : *nodes) {
        const json::object* node = entry.if_object();
        if (node == nullptr) {
            continue;
        }
        state.nodes.push_back(NodeProgress{
            std::string(id.data(), id.size()),
            maybe_number(*node, "value").value_or(0),
            maybe_number(*node, "max").value_or(0),
            text_of(*node, "state") == "finished",
            text_of(*node, "display_node_id"),
            text_of(*node, "parent_node_id"),
            text_of(*node, "real_node_id"),
        });
    }
    return state;
}

Message decode_executed(const json::object& data) {
    auto prompt = maybe_text(data, "prompt_id");
    auto node = maybe_text(data, "node");
    if (!prompt || !node) {
        return missing("executed", prompt ? "node" : "prompt_id");
    }
    const json::object* output = object_of(data, "output");
    return Executed{
        std::move(*prompt),
        std::move(*node),
        text_of(data, "display_node"),
        output == nullptr ? json::value() : json::value(*output),
    };
}

Message decode_execution_success(const json::object& data) {
    auto prompt = maybe_text(data, "prompt_id");
    if (!prompt) {
        return missing("execution_success", "prompt_id");
    }
    return ExecutionSuccess{std::move(*prompt), integer_of(data, "timestamp")};
}

Message decode_execution_error(const json::object& data) {
    if (!maybe_text(data, "prompt_id")) {
        return missing("execution_error", "prompt_id");
    }
    return ExecutionError::from_json(data);
}

Message decode_execution_interrupted(const json::object& data) {
    auto prompt = maybe_text(data, "prompt_id");
    if (!prompt) {
        return missing("execution_interrupted", "prompt_id");
    }
    return ExecutionInterrupted{
        std::move(*prompt),
        text_of(data, "node_id"),
        text_of(data, "node_type"),
        texts_of(data, "executed"),
        integer_of(data, "timestamp"),
    };
}

Message decode_feature_flags(const json::object& data) { return FeatureFlags{data}; }

struct Kind {
    std::string_view type;
    Message (*decode)(const json::object& data);
};
constexpr std::array kKinds{
    Kind{"status", decode_status},
    Kind{"execution_start", decode_execution_start},
    Kind{"execution_cached", decode_execution_cached},
    Kind{"executing", decode_executing},
    Kind{"progress", decode_progress},
    Kind{"progress_state", decode_progress_state},
    Kind{"executed", decode_executed},
    Kind{"execution_success", decode_execution_success},
    Kind{"execution_error", decode_execution_error},
    Kind{"execution_interrupted", decode_execution_interrupted},
    Kind{"feature_flags", decode_feature_flags},
};

std::optional<std::uint32_t> take_u32(std::string_view& from) {
    if (from.size() < 4) {
        return std::nullopt;
    }
    std::uint32_t number = 0;
    for (const char c : from.substr(0, 4)) {
        number = number << 8 | static_cast<unsigned char>(c);
    }
    from.remove_prefix(4);
    return number;
}

void append_u32(std::string& to, std::size_t number) {
    for (int shift = 24; shift >= 0; shift -= 8) {
        to += static_cast<char>(number >> shift & 0xFF);
    }
}

Message decode_preview(std::string_view rest) {
    const auto format = take_u32(rest);
    if (!format || (*format != kFormatJpeg && *format != kFormatPng)) {
        return Malformed{"preview frame of an unknown picture format"};
    }
    Preview preview;
    preview.bytes = std::string(rest);
    preview.content_type = *format == kFormatPng ? "image/png" : "image/jpeg";
    return preview;
}

Message decode_preview_with_metadata(std::string_view rest) {
    const auto length = take_u32(rest);
    if (!length || *length > rest.size()) {
        return Malformed{"preview frame shorter than its metadata"};
    }
    const auto metadata = json::parse_object(rest.substr(0, *length));
    if (!metadata) {
        return Malformed{"preview metadata: " + metadata.error().message};
    }
    const std::string type = text_of(*metadata, "image_type");
    if (type != "image/png" && type != "image/jpeg") {
        return missing("preview", "image_type");
    }
    return Preview{
        std::string(rest.substr(*length)),
        type,
        text_of(*metadata, "prompt_id"),
        text_of(*metadata, "node_id"),
        text_of(*metadata, "display_node_id"),
        text_of(*metadata, "parent_node_id"),
        text_of(*metadata, "real_node_id"),
    };
}

Message decode_node_text(std::string_view rest) {
    const auto length = take_u32(rest);
    if (!length || *length > rest.size()) {
        return Malformed{"text frame shorter than its node id"};
    }
    return NodeText{std::string(rest.substr(0, *length)), std::string(rest.substr(*length))};
}

json::array to_array(const std::vector<std::string>& texts) {
    json::array list;
    list.reserve(texts.size());
    for (const std::string& text : texts) {
        list.emplace_back(text);
    }
    return list;
}

json::value text_or_null(const std::string& text) { return text.empty() ? json::value() : json::value(text); }

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
        return message("execution_start", {{"prompt_id", from.prompt_id}, {"timestamp", from.timestamp}});
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
            {{"value", from.value}, {"max", from.max}, {"prompt_id", from.prompt_id}, {"node", from.node}}
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
        return message("execution_success", {{"prompt_id", from.prompt_id}, {"timestamp", from.timestamp}});
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
    json::object operator()(const FeatureFlags& from) const { return message("feature_flags", from.flags); }
    template <class Other>
    json::object operator()(const Other&) const {
        COMFYD_ASSERT(false && "this message does not travel as text");
        return {};
    }
};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// The text with Python's number words replaced by null; strings are left alone.
std::string without_number_words(std::string_view text) {
    static constexpr std::array<std::string_view, 3> kWords{"-Infinity", "Infinity", "NaN"};
    std::string clean;
    clean.reserve(text.size());
    bool in_string = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (in_string && c == '\\' && i + 1 < text.size()) {
            clean += c;
            clean += text[++i];
            continue;
        }
        if (c == '"') {
            in_string = !in_string;
        }
        std::string_view word;
        if (!in_string && (c == '-' || is_letter(c))) {
            for (const std::string_view candidate : kWords) {
                word = text.substr(i).starts_with(candidate) ? candidate : word;
            }
        }
        if (word.empty()) {
            clean += c;
        } else {
            clean += "null";
            i += word.size() - 1;
        }
    }
    return clean;
}

}  // namespace

ExecutionError ExecutionError::from_json(const json::object& data) {
    ExecutionError error;
    error.prompt_id = text_of(data, "prompt_id");
    error.node_id = text_of(data, "node_id");
    error.node_type = text_of(data, "node_type");
    error.exception_type = text_of(data, "exception_type");
    error.exception_message = text_of(data, "exception_message");
    error.traceback = texts_of(data, "traceback");
    error.executed = texts_of(data, "executed");
    if (const json::value* inputs = json::find(data, "current_inputs")) {
        error.current_inputs = *inputs;
    }
    if (const json::value* outputs = json::find(data, "current_outputs")) {
        error.current_outputs = *outputs;
    }
    if (maybe_number(data, "timestamp")) {
        error.timestamp = integer_of(data, "timestamp");
    }
    return error;
}

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

Message decode_text(std::string_view frame) {
    const auto document = parse_python(frame);
    if (!document) {
        return Malformed{document.error().message};
    }
    const json::object* root = document->if_object();
    const auto type = root == nullptr ? std::nullopt : maybe_text(*root, "type");
    if (!type) {
        return Malformed{"message without a 'type'"};
    }
    for (const Kind& kind : kKinds) {
        if (kind.type == *type) {
            const json::object* data = object_of(*root, "data");
            return data == nullptr ? missing(kind.type, "data") : kind.decode(*data);
        }
    }
    return Unknown{*type};
}

Message decode_binary(std::string_view frame) {
    const auto kind = take_u32(frame);
    if (!kind) {
        return Malformed{"binary frame without a type"};
    }
    switch (*kind) {
        case kFramePreview:
            return decode_preview(frame);
        case kFrameText:
            return decode_node_text(frame);
        case kFramePreviewWithMetadata:
            return decode_preview_with_metadata(frame);
        default:
            return Unknown{"binary " + std::to_string(*kind)};
    }
}

std::string_view prompt_id_of(const Message& message) {
    return std::visit(
        [](const auto& of) -> std::string_view {
            if constexpr (requires { of.prompt_id; }) {
                return of.prompt_id;
            } else {
                return {};
            }
        },
        message
    );
}

json::object to_json(const Message& message) { return std::visit(ToJson{}, message); }

std::string encode_text(const Message& message) { return json::serialize_python(to_json(message)); }

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

Result<json::value> parse_python(std::string_view text) {
    auto document = json::parse(text);
    if (document) {
        return document;
    }
    const bool may_hold_words =
        text.find("NaN") != std::string_view::npos || text.find("Infinity") != std::string_view::npos;
    if (!may_hold_words) {
        return document;
    }
    return json::parse(without_number_words(text));
}

}  // namespace comfyd::comfy
