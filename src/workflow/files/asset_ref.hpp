// A file of the asset store in the place of an input's value:
//   {"__type": "core/ASSET", "info": {"id", "hash", "file_path", "name"}}
// It is told from other values, read and written here alone. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json.hpp"
#include "base/text.hpp"

namespace comfyd::workflow {

struct AssetRef {
    std::string id{};         // authoritative; may be empty when there is a hash
    std::string hash{};       // "blake3:…"; may be empty when there is an id
    std::string file_path{};  // the name that its extension is taken from; may be empty
    std::string name{};       // what clients are shown in its place; may be empty

    // nullopt: the value is none, or one that says nothing.
    static std::optional<AssetRef> read(const json::value& value);
    json::object to_json() const;
};

// The value stands for a file, though what it says of it may not be readable.
bool is_asset_ref(const json::value& value);

// Quick and rough: false means that there is none in the text of a workflow.
bool may_hold_asset_refs(std::string_view workflow);

// visit(value) for each reference in the value, at any depth.
template <class Value, class Visit>
void each_asset_ref_in(Value& value, const Visit& visit) {
    if (auto* list = value.if_array()) {
        for (auto& item : *list) {
            each_asset_ref_in(item, visit);
        }
    } else if (auto* members = value.if_object()) {
        if (is_asset_ref(value)) {
            visit(value);
            return;
        }
        for (auto& member : *members) {
            each_asset_ref_in(member.value(), visit);
        }
    }
}

// visit(node_id, input, value) for each reference in the inputs of a workflow's nodes.
template <class Workflow, class Visit>
void each_asset_ref(Workflow& workflow, const Visit& visit) {
    for (auto& node : workflow) {
        auto* members = node.value().if_object();
        auto* inputs = members != nullptr ? members->if_contains("inputs") : nullptr;
        if (inputs == nullptr || !inputs->is_object()) {
            continue;
        }
        for (auto& input : inputs->get_object()) {
            each_asset_ref_in(input.value(), [&](auto& value) {
                visit(view(node.key()), view(input.key()), value);
            });
        }
    }
}

}  // namespace comfyd::workflow
