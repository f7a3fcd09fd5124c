// The node classes an engine knows. Filled once, then read from any thread.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "engine/node.hpp"

namespace comfyd::engine {

class Registry {
public:
    // REQUIRES: a complete description with a name that is not taken.
    void add(NodeClass node);
    const NodeClass* find(std::string_view class_type) const;
    const std::map<std::string, NodeClass, std::less<>>& classes() const { return classes_; }

private:
    std::map<std::string, NodeClass, std::less<>> classes_;
};

}  // namespace comfyd::engine
