// A workflow as it was sent, brought into the form in which it is judged and run. Pure but for
// what is left to chance; any thread.
#pragma once

#include <optional>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/time.hpp"
#include "workflow/catalogue/catalogue.hpp"
#include "workflow/parameters/parameters.hpp"

namespace comfyd::admission {

struct Form {
    json::object graph;       // the nodes, with all values set
    workflow::Bound bound{};  // what was set by name
    // What the editor saved, where the graph was made of that. It decides for "a {red|blue} car" by
    // chance, so the graph may be another next time.
    std::optional<json::object> editor_format{};
};

// Out of its wrapper and, where that is wanted and the classes are known, out of the editor's save
// format; settled, with its parameters. All failures of workflow::convert_ui() and
// workflow::bind_parameters().
Result<Form> put_in_form(
    json::object workflow,
    const json::object& parameters,
    const workflow::Catalogue& catalogue,
    Time now,
    bool converts_editor_format = true
);

// The part of it that ComfyUI's own prompts need, too: classes that were replaced by others, lists
// of files, and folders that pictures tell of.
void settle_nodes(json::object& graph, const workflow::Catalogue& catalogue);

// What the editor itself would send of its save format. All failures of workflow::convert_ui().
Result<json::object> convert_editor_format(
    const json::object& graph, const workflow::Catalogue& catalogue, Time now
);

}  // namespace comfyd::admission
