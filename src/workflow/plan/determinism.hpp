// Whether a workflow gives the same outputs whenever it runs, and the key under which equal runs
// find each other (docs/reuse.md). ComfyUI does not say which nodes look at the clock, at the
// network or at files of their machine: known ones are listed here, those of custom packs are told
// by their names and inputs, and an operator can name more. In doubt a workflow varies. Pure; any
// thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "workflow/graph/graph.hpp"
#include "workflow/rules/prompt_rules.hpp"

namespace comfyd::workflow {

// The first node that may give something else next time, or that does more than its outputs show.
struct NotReusable {
    std::string node_id;
    std::string class_type;
    std::string reason;

    json::object to_json() const;
};

struct ReuseOptions {
    std::vector<std::string> targets{};      // output nodes to run; empty: all
    json::object extra_data{};               // of the prompt
    std::vector<std::string> never_nodes{};  // class names that vary; * as for SecurityPolicy
    std::string generation{};                // another one makes other keys of everything
    // Of workers, and what else decides on which of them it runs: those of another pool may have
    // other files under a name.
    std::string pool{};
};

// Of the nodes that are `needed`; nullopt: all are known to give the same again.
std::optional<NotReusable> why_not_reusable(
    const Graph& graph,
    const std::vector<bool>& needed,
    const PromptClasses& classes,
    const std::vector<std::string>& never_nodes
);

// 64 hex digits: the same for workflows whose runs give the same outputs under the same node ids.
// Input files count by the hash that their reference names, which must be that of their content.
tl::expected<std::string, NotReusable> make_reuse_key(
    const json::object& workflow, const PromptClasses& classes, const ReuseOptions& options
);

}  // namespace comfyd::workflow
