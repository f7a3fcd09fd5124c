// What the nodes of a double leave behind: files and the "ui" value of history and `executed`.
#pragma once

#include <cstddef>
#include <string>

#include "base/json.hpp"
#include "support/double/prompt.hpp"

namespace comfyd::support {

class Catalogue;
class Files;

// Empty when the node shows nothing. `dummies`: pictures show the dummy tensors of dummy.hpp, carry
// "sample", the text of theirs, and the metadata that ComfyUI would write.
json::object make_outputs(
    const Prompt& prompt,
    const std::string& node,
    const Catalogue& catalogue,
    Files& files,
    std::size_t output_bytes,
    bool dummies = false
);

// The largest literal batch_size among the ancestors; at least 1, at most 64.
int batch_size_above(const json::object& graph, const std::string& node);

}  // namespace comfyd::support
