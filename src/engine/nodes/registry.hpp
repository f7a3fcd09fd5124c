// The node classes an engine knows, each with ComfyUI's description of it. Filled once, then read
// from any thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "engine/nodes/node.hpp"
#include "workflow/catalogue/definition.hpp"

namespace comfyd::engine {

struct RegisteredClass {
    NodeClass node;
    std::shared_ptr<const workflow::NodeDefinition> definition;  // shared with those who validate
};

class Registry {
public:
    // REQUIRES: a name that is not taken and that schema.json describes.
    void add(NodeClass node);
    // With a description of its own, in the form of an /object_info entry.
    void add(NodeClass node, json::object info);

    const RegisteredClass* find(std::string_view class_type) const;
    const std::map<std::string, RegisteredClass, std::less<>>& classes() const { return classes_; }

private:
    std::map<std::string, RegisteredClass, std::less<>> classes_;
};

// ComfyUI's /object_info entry, with the files of the moment.
json::object describe(const RegisteredClass& registered, const Folders& folders);

}  // namespace comfyd::engine
