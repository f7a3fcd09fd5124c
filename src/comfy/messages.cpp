#include "comfy/messages.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <boost/json/monotonic_resource.hpp>

#include "comfy/frames.hpp"
#include "comfy/members.hpp"
#include "comfy/progress_state.hpp"

namespace comfyd::comfy {
namespace {

// A copy stays in the memory of its original unless it is told otherwise.
using OwnMemory = json::storage_ptr;

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
    return ExecutionCached{
        std::move(*prompt), texts_of(data, "nodes"), integer_of(data, "timestamp")
    };
}

Message decode_executing(const json::object& data) {
    const auto node = data.find("node");
    // An absent node must not be taken for null: null ends the prompt.
    if (node == data.end() || !(node->value().is_null() || node->value().is_string())) {
        return missing("executing", "node");
    }
    return Executing{
        text_of(data, "prompt_id"), maybe_text(data, "node"), text_of(data, "display_node")
    };
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
        output == nullptr ? json::value() : json::value(*output, OwnMemory()),
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

Message decode_feature_flags(const json::object& data) {
    return FeatureFlags{json::object(data, OwnMemory())};
}

struct Kind {
    std::string_view type;
    Message (*decode)(const json::object& data);
    bool is_frequent = false;  // and nothing of the document is kept
};
constexpr std::array kKinds{
    Kind{"status", decode_status},
    Kind{"execution_start", decode_execution_start},
    Kind{"execution_cached", decode_execution_cached},
    Kind{"executing", decode_executing, true},
    Kind{"progress", decode_progress, true},
    Kind{"progress_state", decode_progress_state, true},
    Kind{"executed", decode_executed},
    Kind{"execution_success", decode_execution_success},
    Kind{"execution_error", decode_execution_error},
    Kind{"execution_interrupted", decode_execution_interrupted},
    Kind{"feature_flags", decode_feature_flags},
};

// Workers write the type first.
bool is_frequent(std::string_view frame) {
    constexpr std::string_view kStart = R"({"type": ")";
    if (!frame.starts_with(kStart)) {
        return false;
    }
    frame.remove_prefix(kStart.size());
    return std::any_of(kKinds.begin(), kKinds.end(), [frame](const Kind& kind) {
        return kind.is_frequent && frame.starts_with(kind.type) &&
               frame.substr(kind.type.size()).starts_with('"');
    });
}

Message decode_document(const Result<json::value>& document) {
    if (!document) {
        return Malformed{document.error().message};
    }
    const json::object* root = document->if_object();
    const auto type = root == nullptr ? std::nullopt : maybe_text(*root, "type");
    if (!type) {
        return Malformed{"message without a 'type'"};
    }
    const json::object* data = object_of(*root, "data");
    for (const Kind& kind : kKinds) {
        if (kind.type == *type) {
            return data == nullptr ? missing(kind.type, "data") : kind.decode(*data);
        }
    }
    return data == nullptr
               ? Unknown{*type}
               : Unknown{*type, text_of(*data, "prompt_id"), json::object(*data, OwnMemory())};
}

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

Message decode_text(std::string_view frame) {
    if (frame.starts_with(R"({"type": "progress_state")")) {
        if (auto state = read_progress_state(frame)) {
            return std::move(*state);
        }
    }
    if (!is_frequent(frame)) {
        return decode_document(parse_python(frame));
    }
    std::array<unsigned char, 8 * 1024> memory;
    boost::json::monotonic_resource scratch(memory.data(), memory.size());
    return decode_document(parse_python(frame, &scratch));
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

}  // namespace comfyd::comfy
