// Logic by Python's idea of what is true, the switch, and lists.
#include <memory>
#include <optional>
#include <utility>

#include "engine/nodes/call.hpp"
#include "engine/nodes/text/python_value.hpp"
#include "engine/nodes/values/values.hpp"
#include "engine/values/weight.hpp"

namespace comfyd::engine::nodes {
namespace {

Result<bool> is_true(const Value& value) {
    const std::optional<bool> known = python_bool(value);
    if (!known) {
        return node_error(
            "RuntimeError", "Boolean value of Tensor with more than one value is ambiguous"
        );
    }
    return *known;
}

Result<NodeResult> execute_not(Call& call) {
    const auto value = is_true(call.value("value"));
    if (!value) {
        return fail(value.error());
    }
    return NodeResult{.outputs = {!*value}};
}

// Stops at the first value that decides.
Result<NodeResult> decide(const Call& call, bool deciding) {
    for (const Call::Grown& grown : call.grown("values")) {
        const auto value = is_true(grown.value);
        if (!value) {
            return fail(value.error());
        }
        if (*value == deciding) {
            return NodeResult{.outputs = {deciding}};
        }
    }
    return NodeResult{.outputs = {!deciding}};
}

Result<NodeResult> execute_and(Call& call) {
    return decide(call, false);
}

Result<NodeResult> execute_or(Call& call) {
    return decide(call, true);
}

const char* chosen(const Call& call) {
    return call.flag("switch") ? "on_true" : "on_false";
}

Result<NodeResult> execute_switch(Call& call) {
    const char* input = chosen(call);
    return NodeResult{.outputs = {call.has(input) ? call.value(input) : Value(None{})}};
}

std::vector<std::string> needed_by_switch(const Call& call) {
    return {chosen(call)};
}

// The front end adds the number of the choice, which the class does not declare.
Value chosen_index(const Call& call) {
    const json::value* node = call.prompt().if_contains(call.node_id());
    const json::object* fields = node != nullptr ? node->if_object() : nullptr;
    const json::value* inputs = fields != nullptr ? fields->if_contains("inputs") : nullptr;
    const json::object* members = inputs != nullptr ? inputs->if_object() : nullptr;
    const json::value* index = members != nullptr ? members->if_contains("index") : nullptr;
    return index != nullptr && !index->is_array() ? from_json(*index) : Value(std::int64_t{0});
}

Result<NodeResult> execute_combo(Call& call) {
    return NodeResult{
        .outputs =
            {call.value("choice"), call.has("index") ? call.value("index") : chosen_index(call)}
    };
}

// The choices are written by the workflow's author, so every one is good.
std::optional<Refusal> accept_any(const json::value& /*literal*/, const Folders& /*folders*/) {
    return std::nullopt;
}

Result<NodeResult> execute_list(Call& call) {
    auto all = std::make_shared<List>();
    std::uint64_t bytes = 0;
    for (const Call::Grown& grown : call.grown("inputs")) {
        bytes += weight_of(grown.value);
    }
    const auto space = call.charge(bytes);
    if (!space) {
        return fail(space.error());
    }
    for (const Call::Grown& grown : call.grown("inputs")) {
        if (const auto* list = std::get_if<std::shared_ptr<const List>>(&grown.value)) {
            all->items.insert(all->items.end(), (*list)->items.begin(), (*list)->items.end());
        } else {
            all->items.push_back(grown.value);
        }
    }
    return NodeResult{.outputs = {std::shared_ptr<const List>(std::move(all))}};
}

}  // namespace

NodeClass not_node() {
    return {
        .name = "ComfyNotNode",
        .description = "True where a value is empty, 0 or false.",
        .execute = &execute_not,
        .takes_empty = true
    };
}

NodeClass and_node() {
    return {
        .name = "ComfyAndNode",
        .description = "True where all values are true.",
        .execute = &execute_and,
        .takes_empty = true
    };
}

NodeClass or_node() {
    return {
        .name = "ComfyOrNode",
        .description = "True where any value is true.",
        .execute = &execute_or,
        .takes_empty = true
    };
}

NodeClass switch_node() {
    return {
        .name = "ComfySwitchNode",
        .description = "Passes one of two inputs on; the other one is not even computed.",
        .execute = &execute_switch,
        .reads_views = true,
        .takes_empty = true,
        .needed = &needed_by_switch
    };
}

NodeClass custom_combo() {
    return {
        .name = "CustomCombo",
        .description = "A choice among options of your own, as text and as number.",
        .execute = &execute_combo,
        .takes_any_input = true,
        .checked_input = "choice",
        .check_name = "CustomComboNode.validate_inputs",
        .check = &accept_any
    };
}

NodeClass create_list() {
    return {
        .name = "CreateList",
        .description = "Makes one list of values and lists.",
        .execute = &execute_list,
        .reads_views = true,
        .takes_empty = true
    };
}

}  // namespace comfyd::engine::nodes
