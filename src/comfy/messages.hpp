// The messages of ComfyUI's WebSocket, as values: decoded by the side that drives a worker, encoded
// by the side that serves the protocol. Pure functions; any thread.
//
// Decoding never fails and never throws: what is no message of ours becomes Unknown (a type that we
// do not know, as custom nodes may send) or Malformed (broken JSON, wrong types, missing members),
// which callers count and skip.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json.hpp"

namespace comfyd::comfy {

struct Status {
    std::int64_t queue_remaining = 0;
    std::string sid;  // only in the first message of a socket
};

struct ExecutionStart {
    std::string prompt_id;
    std::int64_t timestamp = 0;  // milliseconds
};

struct ExecutionCached {
    std::string prompt_id;
    std::vector<std::string> nodes;
    std::int64_t timestamp = 0;
};

// Without a node: the end of the prompt, however it ended; its history is complete then.
struct Executing {
    std::string prompt_id;  // empty in the message that greets a socket in mid-run
    std::optional<std::string> node;
    std::string display_node;
};

struct StepProgress {
    std::string prompt_id;
    std::string node;
    double value = 0;
    double max = 0;
};

struct NodeProgress {
    std::string node_id;
    double value = 0;
    double max = 0;
    bool finished = false;
    std::string display_node_id;
    std::string parent_node_id;  // empty: none
    std::string real_node_id;
};

// Every node that is running or finished.
struct ProgressState {
    std::string prompt_id;
    std::vector<NodeProgress> nodes;
};

struct Executed {
    std::string prompt_id;
    std::string node;
    std::string display_node;
    json::value output;  // the node's ui, or null
};

struct ExecutionSuccess {
    std::string prompt_id;
    std::int64_t timestamp = 0;
};

struct ExecutionError {
    std::string prompt_id;
    std::string node_id;
    std::string node_type;
    std::string exception_type;
    std::string exception_message;
    std::vector<std::string> traceback;
    std::vector<std::string> executed;
    json::value current_inputs;
    json::value current_outputs;
    std::optional<std::int64_t> timestamp;

    // Blocker nodes report themselves this way, and the prompt goes on.
    bool ends_prompt() const { return exception_type != "ExecutionBlocked"; }
    static ExecutionError from_json(const json::object& data);
    json::object to_json() const;
};

struct ExecutionInterrupted {
    std::string prompt_id;
    std::string node_id;
    std::string node_type;
    std::vector<std::string> executed;
    std::int64_t timestamp = 0;
};

struct FeatureFlags {
    json::object flags;
};

// A picture in a binary frame. Ids are empty in the older form, which has none.
struct Preview {
    std::string bytes;
    std::string content_type;  // "image/jpeg" or "image/png"
    std::string prompt_id;
    std::string node_id;
    std::string display_node_id;
    std::string parent_node_id;
    std::string real_node_id;
};

// A text in a binary frame; sent to every socket, whoever owns the prompt.
struct NodeText {
    std::string node_id;
    std::string text;
};

// A type of a custom node's own, or a binary frame of a kind that we do not know.
struct Unknown {
    std::string type;
    std::string prompt_id{};             // empty: it names none
    std::optional<json::object> data{};  // only of texts
};

struct Malformed {
    std::string reason;
};

using Message = std::variant<
    Status,
    ExecutionStart,
    ExecutionCached,
    Executing,
    StepProgress,
    ProgressState,
    Executed,
    ExecutionSuccess,
    ExecutionError,
    ExecutionInterrupted,
    FeatureFlags,
    Preview,
    NodeText,
    Unknown,
    Malformed>;

Message decode_text(std::string_view frame);
Message decode_binary(std::string_view frame);

// The prompt that the message is about; empty when it names none.
std::string_view prompt_id_of(const Message& message);

// {"type", "data"}. REQUIRES: a message that travels as text.
json::object to_json(const Message& message);
// to_json() in Python's spelling, as ComfyUI sends it.
std::string encode_text(const Message& message);
// `with_metadata`: for sockets that announced supports_preview_metadata.
std::string encode_binary(const Preview& preview, bool with_metadata);
std::string encode_binary(const NodeText& text);

// json::parse() for documents that Python wrote: NaN and Infinity, which Python writes and JSON
// does not have, are read as null.
Result<json::value> parse_python(std::string_view text, json::storage_ptr storage = {});

}  // namespace comfyd::comfy
