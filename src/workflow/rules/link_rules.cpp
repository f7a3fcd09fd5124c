#include "workflow/rules/link_rules.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "workflow/graph/python_text.hpp"

namespace comfyd::workflow {

tl::expected<LinkSource, Raised> find_source(
    const json::object& prompt,
    const std::vector<const NodeDefinition*>& definitions,
    const json::array& link
) {
    if (link[0].is_array() || link[0].is_object()) {
        const std::string kind(python_type(link[0]));
        return tl::unexpected(Raised{
            "TypeError", "cannot use '" + kind + "' as a dict key (unhashable type: '" + kind + "')"
        });
    }
    const auto found = link[0].is_string() ? prompt.find(link[0].get_string()) : prompt.end();
    if (found == prompt.end()) {
        return tl::unexpected(Raised{"KeyError", python_repr(link[0])});
    }
    const auto node = static_cast<std::size_t>(found - prompt.begin());
    const NodeDefinition& definition = *definitions[node];
    if (const auto slot = slot_index(link[1], definition.outputs().size())) {
        return LinkSource{node, definition.output_type(*slot)};
    }
    const std::string sequence = definition.is_v3() ? "list" : "tuple";
    if (!link[1].is_int64() && !link[1].is_uint64() && !link[1].is_bool()) {
        return tl::unexpected(Raised{
            "TypeError",
            sequence + " indices must be integers or slices, not " +
                std::string(python_type(link[1]))
        });
    }
    return tl::unexpected(Raised{"IndexError", sequence + " index out of range"});
}

namespace {

// What Python says to a call that lacks arguments.
std::optional<Raised> call_without(const OwnCheck& own_check, const json::object& inputs) {
    std::vector<std::string_view> missing;
    for (const std::string& name : own_check.inputs) {
        if (!own_check.python_name.empty() && !inputs.contains(name)) {
            missing.push_back(name);
        }
    }
    if (missing.empty()) {
        return std::nullopt;
    }
    std::string names;
    for (std::size_t i = 0; i < missing.size(); ++i) {
        const char* between = i == 0                   ? ""
                              : i + 1 < missing.size() ? ", "
                              : missing.size() == 2    ? " and "
                                                       : ", and ";
        names += between + ("'" + std::string(missing[i]) + "'");
    }
    return Raised{
        "TypeError",
        own_check.python_name + "() missing " + std::to_string(missing.size()) +
            " required positional argument" + (missing.size() == 1 ? "" : "s") + ": " + names
    };
}

// Nothing has run yet, so there is nothing to see of what is linked.
json::object as_seen_by(const OwnCheck& own_check, const json::object& inputs) {
    json::object seen = inputs;
    for (const std::string& name : own_check.inputs) {
        json::value* value = seen.if_contains(name);
        if (value != nullptr && value->is_array() && value->get_array().size() == 2) {
            *value = nullptr;
        }
    }
    return seen;
}

}  // namespace

std::optional<Raised> run_own_check(
    const OwnCheck& own_check,
    const InputList& known,
    const json::object& inputs,
    const std::map<std::string, std::string>& received,
    json::array& errors
) {
    if (!own_check.check) {
        return std::nullopt;
    }
    if (auto raised = call_without(own_check, inputs)) {
        return raised;
    }
    const auto refusal = own_check.check(as_seen_by(own_check, inputs), received);
    if (!refusal) {
        return std::nullopt;
    }
    if (!refusal->exception_type.empty()) {
        return Raised{refusal->exception_type, refusal->text};
    }
    const auto add = [&](std::string_view name) {
        json::object extra;
        extra["input_name"] = name;
        errors.push_back(make_prompt_error(
            "custom_validation_failed",
            "Custom validation failed for node",
            std::string(name) + (refusal->text.empty() ? "" : " - " + refusal->text),
            std::move(extra)
        ));
    };
    for (const auto& entry : inputs) {
        const std::string_view name(entry.key().data(), entry.key().size());
        const bool named = own_check.all_inputs ||
                           std::ranges::find(own_check.inputs, name) != own_check.inputs.end();
        if (named && std::ranges::any_of(known, [&](const InputDefinition& input) {
                return input.name == name;
            })) {
            add(name);
        }
    }
    if (own_check.link_types) {
        add("input_types");
    }
    return std::nullopt;
}

std::optional<std::size_t> slot_index(const json::value& slot, std::size_t count) {
    std::int64_t index = 0;
    if (slot.is_bool()) {
        index = slot.get_bool() ? 1 : 0;
    } else if (slot.is_int64()) {
        index = slot.get_int64();
    } else {
        return std::nullopt;
    }
    const auto size = static_cast<std::int64_t>(count);
    if (index < -size || index >= size) {
        return std::nullopt;
    }
    return static_cast<std::size_t>(index < 0 ? index + size : index);
}

}  // namespace comfyd::workflow
