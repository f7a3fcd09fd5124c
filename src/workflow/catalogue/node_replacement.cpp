#include "workflow/catalogue/node_replacement.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/text.hpp"

namespace comfyd::workflow {
namespace {

// The inputs under their new names. Without a mapping they are what they were.
json::object map_inputs(const json::object& old_inputs, const json::object& rule) {
    const json::value* mapping = json::find(rule, "input_mapping");
    if (mapping == nullptr || !mapping->is_array()) {
        return old_inputs;
    }
    json::object inputs;
    for (const json::value& entry : mapping->get_array()) {
        const json::object* one = entry.if_object();
        const json::value* new_id = one != nullptr ? json::find(*one, "new_id") : nullptr;
        if (new_id == nullptr || !new_id->is_string()) {
            continue;
        }
        if (const json::value* set = one->if_contains("set_value")) {
            inputs[new_id->get_string()] = *set;
        } else if (const json::value* old_id = json::find(*one, "old_id");
                   old_id != nullptr && old_id->is_string()) {
            if (const json::value* value = old_inputs.if_contains(old_id->get_string())) {
                inputs[new_id->get_string()] = *value;
            }
        }
    }
    return inputs;
}

// The first rule whose class exists; nullptr: none.
const json::object* find_rule(const json::value& rules, const PromptClasses& classes) {
    if (!rules.is_array()) {
        return nullptr;
    }
    for (const json::value& candidate : rules.get_array()) {
        const json::object* rule = candidate.if_object();
        const json::value* new_class = rule != nullptr ? json::find(*rule, "new_node_id") : nullptr;
        if (new_class != nullptr && new_class->is_string() &&
            classes.find(view(new_class->get_string())) != nullptr) {
            return rule;
        }
    }
    return nullptr;
}

// The new place of an output, where the rule gives it another one.
const json::value* new_slot(const json::object& rule, const json::value& slot) {
    const json::value* mapping = json::find(rule, "output_mapping");
    if (mapping == nullptr || !mapping->is_array()) {
        return nullptr;
    }
    for (const json::value& entry : mapping->get_array()) {
        const json::object* one = entry.if_object();
        const json::value* old_slot = one != nullptr ? json::find(*one, "old_idx") : nullptr;
        if (old_slot != nullptr && *old_slot == slot) {
            return json::find(*one, "new_idx");
        }
    }
    return nullptr;
}

using Replaced = std::map<std::string, const json::object*, std::less<>>;  // node -> rule

void move_links(json::object& inputs, const Replaced& replaced) {
    for (auto& input : inputs) {
        json::array* link = input.value().if_array();
        if (link == nullptr || link->size() != 2 || !(*link)[0].is_string()) {
            continue;
        }
        const auto source = replaced.find(view((*link)[0].get_string()));
        const json::value* slot =
            source == replaced.end() ? nullptr : new_slot(*source->second, (*link)[1]);
        if (slot != nullptr) {
            (*link)[1] = *slot;
        }
    }
}

json::object* inputs_of(json::value& node) {
    json::value* inputs = node.is_object() ? node.get_object().if_contains("inputs") : nullptr;
    return inputs != nullptr ? inputs->if_object() : nullptr;
}

}  // namespace

void apply_replacements(
    json::object& prompt, const json::object& replacements, const PromptClasses& classes
) {
    if (replacements.empty()) {
        return;
    }
    Replaced replaced;
    for (auto& entry : prompt) {
        json::object* node = entry.value().if_object();
        json::value* class_type = node != nullptr ? node->if_contains("class_type") : nullptr;
        if (class_type == nullptr || !class_type->is_string() ||
            classes.find(view(class_type->get_string())) != nullptr) {
            continue;
        }
        const json::value* rules = replacements.if_contains(class_type->get_string());
        const json::object* rule = rules != nullptr ? find_rule(*rules, classes) : nullptr;
        if (rule == nullptr) {
            continue;
        }
        if (json::object* inputs = inputs_of(entry.value())) {
            *inputs = map_inputs(*inputs, *rule);
        }
        *class_type = rule->at("new_node_id");
        replaced.emplace(view(entry.key()), rule);
    }
    for (auto& entry : prompt) {
        json::object* inputs = replaced.empty() ? nullptr : inputs_of(entry.value());
        if (inputs != nullptr) {
            move_links(*inputs, replaced);
        }
    }
}

void join_replacements(json::object& into, const json::object& more) {
    for (const auto& entry : more) {
        if (!entry.value().is_array()) {
            continue;
        }
        json::value& known = into[entry.key()];
        if (!known.is_array()) {
            known.emplace_array();
        }
        for (const json::value& rule : entry.value().get_array()) {
            if (std::ranges::find(known.get_array(), rule) == known.get_array().end()) {
                known.get_array().push_back(rule);
            }
        }
    }
}

}  // namespace comfyd::workflow
