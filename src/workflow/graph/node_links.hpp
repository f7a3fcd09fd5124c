// Workflows that come as {"nodes": {id: node}, "links": [...]}: the node map of the API format with
// its connections beside it. Pure; any thread.
#pragma once

#include "base/error.hpp"
#include "base/json.hpp"

namespace comfyd::workflow {

// Returns the API-format map; a workflow of another shape comes back as it is, for the checks that
// follow. A link is
//   ["from node", output number, "to node", "input name"], or
//   {"from": "4", "from_slot": 0, "to": "3", "to_input": "model"}, also with "from": ["4", 0] and
//   "to": ["3", "model"].
// An input that already holds a link keeps it. Code::invalid_workflow with "invalid_connections"
// for links that cannot be understood or point nowhere, unless the nodes already hold links: then
// the list only repeats them.
Result<json::object> merge_links(json::object workflow);

}  // namespace comfyd::workflow
