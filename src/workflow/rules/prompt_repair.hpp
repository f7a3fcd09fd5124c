// Makes an accepted prompt safe to hand to a worker. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "base/json.hpp"
#include "workflow/rules/prompt_rules.hpp"

namespace comfyd::workflow {

// A worker follows every link of the nodes that it runs, also those that no check has looked at
// because the class does not know the input; one that leads to a node that does not exist ends its
// execution thread for good. Such inputs are taken out. Numbers that JSON cannot say become the
// text that means them. What was done is told, one line each, the first few.
std::vector<std::string> repair(
    json::object& prompt, const std::vector<std::string>& outputs_to_execute
);

}  // namespace comfyd::workflow
