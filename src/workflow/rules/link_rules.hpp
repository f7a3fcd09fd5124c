// The parts of judging a prompt that look at a link's source and at a node as a whole. Pure; any
// thread.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "base/json.hpp"
#include "workflow/rules/input_rules.hpp"

namespace comfyd::workflow {

struct LinkSource {
    std::size_t node;         // its position in the prompt
    const json::value& type;  // of the linked slot
};

// `definitions` by position; `link` has two elements.
tl::expected<LinkSource, Raised> find_source(
    const json::object& prompt,
    const std::vector<const NodeDefinition*>& definitions,
    const json::array& link
);

// Adds an error for each input that the class's own check speaks of.
std::optional<Raised> run_own_check(
    const OwnCheck& own_check,
    const InputList& known,
    const json::object& inputs,
    const std::map<std::string, std::string>& received,
    json::array& errors
);

}  // namespace comfyd::workflow
