// Two names for what a workflow does. The content fingerprint: workflows with the same one make the
// same pictures; it depends on node classes, values, links and the contents of input files, not on
// node ids, titles or the order of keys. The batch key: the same without texts, seeds and input
// files, so that workflows with the same one can share a sampling batch. Pure; any thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/crypto.hpp"
#include "workflow/graph/graph.hpp"
#include "workflow/rules/prompt_rules.hpp"

namespace comfyd::workflow {

// The hash of an input file by the name that the workflow has for it; nullopt: not known, then the
// name counts.
using InputHashes = std::function<std::optional<std::string>(std::string_view name)>;

struct Fingerprints {
    std::string content;        // 64 hex digits; empty where an output needs a cycle
    std::string batch;          // likewise
    std::vector<Digest> nodes;  // the content of each with all that it needs, by position
};

// `outputs`: the nodes that are run for their own sake.
Fingerprints make_fingerprints(
    const Graph& graph,
    const std::vector<Graph::Position>& outputs,
    const PromptClasses& classes,
    const InputHashes& input_hashes = {}
);

// Values that differ between the requests of one batch.
bool is_batchable(std::string_view input, const json::value& value, const InputDefinition* known);

}  // namespace comfyd::workflow
