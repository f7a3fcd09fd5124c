// One /object_info of several: a class as all the workers that have it take it together. Lenient
// where they differ, so that a prompt which one of them would take is taken: the choices and limits
// of all, required only what all require, any of the types. Pure; any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "workflow/catalogue/definition.hpp"

namespace comfyd::workflow {

class NodeClasses;

struct MergedClass {
    std::shared_ptr<const NodeDefinition> definition;
    // The different forms that workers have, where there is more than one.
    std::vector<std::shared_ptr<const NodeDefinition>> variants;
    // Whose choices are not the same in all of them; flat names. Not those that take uploads.
    std::vector<std::string> differing_inputs;
};

// In the order in which they are first met.
std::vector<MergedClass> merge_classes(
    const std::vector<std::shared_ptr<const NodeClasses>>& sources
);

// The information of one class. `infos` holds at least one.
json::object merge_infos(const std::vector<const json::object*>& infos);

}  // namespace comfyd::workflow
