#include "engine/registry.hpp"

#include <utility>

#include "base/assert.hpp"

namespace comfyd::engine {

void Registry::add(NodeClass node) {
    COMFYD_ASSERT(node.execute != nullptr && !node.name.empty());
    std::string name = node.name;
    const bool added = classes_.emplace(std::move(name), std::move(node)).second;
    COMFYD_ASSERT(added);
}

const NodeClass* Registry::find(std::string_view class_type) const {
    const auto found = classes_.find(class_type);
    return found == classes_.end() ? nullptr : &found->second;
}

}  // namespace comfyd::engine
