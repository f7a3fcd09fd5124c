// One node class. What it takes and gives is data: schema.json holds ComfyUI's own description of
// every class (names, types, defaults, limits), read at start-up; a NodeClass adds what it means.
// GET /object_info, validation and execution all read that one description.
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"
#include "engine/engine.hpp"
#include "engine/run/expansion.hpp"
#include "engine/values/value.hpp"

namespace comfyd::engine {

class Call;

struct NodeResult {
    std::vector<Value> outputs{};      // one for each declared output; a List where output_is_list
    std::optional<json::object> ui{};  // what the client is shown
    // Then `outputs` are its, and the node has its result when the added nodes have theirs.
    std::optional<Expansion> expansion{};
};

// Why a node refuses an input before it runs.
struct Refusal {
    std::string text{};
    // Set where ComfyUI's own check fails with this Python exception instead of giving an answer.
    std::string exception_type{};
};

// A combo that offers files, and how to list them.
struct FileInput {
    std::string input{};
    std::vector<std::string> (*list)(const Folders& folders) = nullptr;  // asked each time
};

struct NodeClass {
    std::string name{};         // a key of schema.json
    std::string description{};  // for the person who builds workflows

    // Any thread of the pool. Expected failures of the node itself are node_error().
    Result<NodeResult> (*execute)(Call& call) = nullptr;

    std::vector<FileInput> files{};

    // It takes pictures and masks as ImageView and MaskView too; otherwise it is given Image and
    // Mask.
    bool reads_views = false;

    // It takes pictures, masks and latents without a single pixel too; to others they are an error.
    bool takes_empty = false;

    // It is given inputs that its description does not name, too.
    bool takes_any_input = false;

    // ComfyUI's implementation is asynchronous: the node begins before others that are ready, and
    // those begin before it has ended.
    bool is_async = false;

    // The node's own check of `checked_input`; it replaces the check of limits and choices. What is
    // linked is null to it. `check_name` is what ComfyUI calls the check.
    std::string checked_input{};
    std::string check_name{};
    std::optional<Refusal> (*check)(const json::value& literal, const Folders& folders) = nullptr;

    // What the result depends on beside the inputs, such as the content of a file. An error means:
    // unknown, run the node again.
    Result<std::string> (*fingerprint)(const json::object& inputs, const Folders& folders) =
        nullptr;

    // For classes with lazy inputs: which of them the node needs, given those that it has. Asked
    // until it names none that is missing.
    std::vector<std::string> (*needed)(const Call& call) = nullptr;
};

// A failure of the node itself. `exception_type` is what ComfyUI's implementation would raise.
tl::unexpected<Error> node_error(std::string_view exception_type, std::string message);

// The same from deep inside a computation on numbers, where Python would raise it. The call of the
// node turns it into its error.
class NodeFailure : public std::exception {
public:
    NodeFailure(std::string_view exception_type, std::string message);
    const char* what() const noexcept override { return error_.message.c_str(); }
    const Error& error() const { return error_; }

private:
    Error error_;
};

}  // namespace comfyd::engine
