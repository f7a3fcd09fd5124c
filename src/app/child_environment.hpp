#pragma once

#include <string>
#include <vector>

namespace comfyd::app {

// What our child processes get of our environment: what says how to compute and to debug, and no
// secret.
std::vector<std::string> child_environment();

}  // namespace comfyd::app
