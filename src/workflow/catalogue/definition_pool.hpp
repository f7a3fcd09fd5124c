// Shares equal definitions: the same class on a hundred workers is one object. Any thread.
#pragma once

#include <memory>
#include <string_view>

#include "workflow/catalogue/definition.hpp"

namespace comfyd::workflow {

// As NodeDefinition::from_object_info, but one that is alive and equal is given again.
Result<std::shared_ptr<const NodeDefinition>> shared_definition(
    std::string_view name, const json::object& info
);

// Of those that are alive, for tests and figures.
std::size_t shared_definition_count();

}  // namespace comfyd::workflow
