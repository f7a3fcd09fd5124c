// One node class: what it takes and gives, described once. GET /object_info, validation and
// execution all read this description, so that a node is one function that returns a NodeClass (see
// nodes/).
//
// A slot holds one value. ComfyUI's list slots (is_input_list, output_is_list) belong into
// Executor::call_node, the only place where values are bound to a call and taken from it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"
#include "engine/engine.hpp"
#include "engine/value.hpp"

namespace comfyd::engine {

class Call;

enum class Need { required, optional };

struct Input {
    std::string name{};
    std::string type{};  // ComfyUI's name: "IMAGE", "INT", …; "COMBO" for a choice
    std::optional<json::object> options{};  // default, min, max, step, …; nullopt: none are shown
    std::vector<std::string> choices{};     // of a COMBO
    // For a COMBO that offers files: asked each time.
    std::vector<std::string> (*list_choices)(const Folders& folders) = nullptr;
    Need need = Need::required;
};

Input link_input(std::string name, std::string type, std::optional<json::object> options = {});
// `type`: INT, FLOAT, STRING or BOOLEAN.
Input widget_input(std::string name, std::string type, json::object options);
Input combo_input(
    std::string name, std::vector<std::string> choices, std::optional<json::object> options = {}
);
Input file_input(
    std::string name,
    std::vector<std::string> (*list_choices)(const Folders& folders),
    json::object options
);

struct Output {
    std::string type{};
    std::string name{};  // empty: the type
};

// The two ways in which ComfyUI's own nodes are declared; they differ in how /object_info shows
// them.
enum class Schema { v1, v3 };

struct NodeResult {
    std::vector<Value> outputs{};      // one for each declared output
    std::optional<json::object> ui{};  // what the client is shown
};

// Why a node refuses an input before it runs.
struct Refusal {
    std::string text{};
    // Set where ComfyUI's own check fails with this Python exception instead of giving an answer.
    std::string exception_type{};
};

struct NodeClass {
    std::string name{};
    std::string display_name{};
    std::string description{};
    std::string category{};
    std::string python_module = "nodes";
    Schema schema = Schema::v1;
    bool output_node = false;
    std::vector<Input> inputs{};
    std::vector<std::pair<std::string, std::string>> hidden{};  // name, type
    std::vector<Output> outputs{};

    // Any thread of the pool. Expected failures of the node itself are node_error().
    Result<NodeResult> (*execute)(Call& call) = nullptr;

    // The node's own check of `checked_input`'s literal; it replaces the check of limits and
    // choices.
    std::string checked_input{};
    std::optional<Refusal> (*check)(const json::value& literal, const Folders& folders) = nullptr;

    // What the result depends on beside the inputs, such as the content of a file. An error means:
    // unknown, run the node again.
    Result<std::string> (*fingerprint)(const json::object& inputs, const Folders& folders) =
        nullptr;

    const Input* find_input(std::string_view input_name) const;
};

// ComfyUI's /object_info entry.
json::object describe(const NodeClass& node, const Folders& folders);
// The [type, options] pair of one input, as in /object_info and in validation errors.
json::array describe(const Input& input, Schema schema, const Folders& folders);
std::vector<std::string> choices_of(const Input& input, const Folders& folders);

// A failure of the node itself. `exception_type` is what ComfyUI's implementation would raise.
tl::unexpected<Error> node_error(std::string_view exception_type, std::string message);

}  // namespace comfyd::engine
