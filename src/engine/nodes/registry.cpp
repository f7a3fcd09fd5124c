#include "engine/nodes/registry.hpp"

#include <utility>

#include "base/assert.hpp"
#include "engine/nodes/schema.hpp"

namespace comfyd::engine {
namespace {

// Puts the names of files into the place of a combo's choices.
void offer_files(json::object& info, const FileInput& input, const Folders& folders) {
    json::array names;
    for (const std::string& name : input.list(folders)) {
        names.emplace_back(name);
    }
    for (const char* group : {"required", "optional"}) {
        json::value* inputs = info.at("input").as_object().if_contains(group);
        json::value* pair =
            inputs != nullptr ? inputs->as_object().if_contains(input.input) : nullptr;
        if (pair == nullptr) {
            continue;
        }
        json::array& config = pair->as_array();
        if (config.at(0).is_array()) {
            config[0] = std::move(names);
        } else {
            config.at(1).as_object()["options"] = std::move(names);
        }
        return;
    }
}

}  // namespace

void Registry::add(NodeClass node) {
    const json::value* info = node_schema().if_contains(node.name);
    COMFYD_ASSERT(info != nullptr);
    add(std::move(node), info->as_object());
}

void Registry::add(NodeClass node, json::object info) {
    COMFYD_ASSERT(node.execute != nullptr && !node.name.empty());
    auto definition = workflow::NodeDefinition::from_object_info(node.name, std::move(info));
    COMFYD_ASSERT(definition.has_value());
    std::string name = node.name;
    RegisteredClass registered{std::move(node), std::move(*definition)};
    const bool added = classes_.emplace(std::move(name), std::move(registered)).second;
    COMFYD_ASSERT(added);
}

const RegisteredClass* Registry::find(std::string_view class_type) const {
    const auto found = classes_.find(class_type);
    return found == classes_.end() ? nullptr : &found->second;
}

json::object describe(const RegisteredClass& registered, const Folders& folders) {
    json::object info;
    for (const auto& [key, value] : registered.definition->info()) {
        info[key] = value;
        if (key == "display_name") {
            info["description"] = registered.node.description;
        }
    }
    for (const FileInput& input : registered.node.files) {
        offer_files(info, input, folders);
    }
    return info;
}

}  // namespace comfyd::engine
