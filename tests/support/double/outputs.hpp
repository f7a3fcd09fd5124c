// What the nodes of a double leave behind: files and the "ui" value of history and `executed`.
#pragma once

#include <cstddef>
#include <string>

#include "base/json.hpp"
#include "support/double/prompt.hpp"

namespace comfyd::support {

class Catalogue;
class Files;

// Empty when the node shows nothing.
json::object make_outputs(
    const Prompt& prompt,
    const std::string& node,
    const Catalogue& catalogue,
    Files& files,
    std::size_t output_bytes
);

// The largest literal batch_size among the ancestors; at least 1, at most 64.
int batch_size_above(const json::object& graph, const std::string& node);

}  // namespace comfyd::support
