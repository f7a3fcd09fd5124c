// What check() answers with. Pure; any thread.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "workflow/check.hpp"

namespace comfyd::workflow {

// `findings` holds at least one.
Error findings_error(
    const std::vector<Finding>& findings, const std::set<std::string, std::less<>>& missing_classes
);

// `node_errors` as ComfyUI answers, perhaps from a worker: what is not in its form is left out.
std::vector<Finding> findings_of(const json::object& node_errors);

}  // namespace comfyd::workflow
