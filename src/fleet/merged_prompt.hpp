// The prompt that the workflows of several jobs become, and whose its nodes are.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "fleet/comfy_attempt.hpp"
#include "workflow/catalogue/catalogue.hpp"
#include "workflow/merge/merge.hpp"

namespace comfyd::fleet {

struct ToMerge {
    std::size_t place;
    std::string workflow;
    std::optional<json::object> extra_pnginfo;
};

struct MergedPrompt {
    std::map<std::size_t, json::object> workflows;  // by place, as they were
    workflow::Merged merged;
    std::string prompt;
};

// Parses, merges and writes them: long for large workflows, so for the pool.
// Code::invalid_workflow, Code::conflict.
Result<MergedPrompt> merge_prompts(
    std::vector<ToMerge> members, std::shared_ptr<const workflow::NodeClasses> classes
);

// The members that a node of the prompt belongs to, and what each calls the node. `merged`:
// nullptr: the prompt was found again, and only what the ids of its nodes tell is known.
std::vector<workflow::JobNode> find_origins(
    const workflow::Merged* merged, const std::string& node
);

// Whose the nodes of a merged prompt are. Asked on the worker's executor while the core lets
// members go.
class NodeOwners {
public:
    // `merged`: as in find_origins(). `members`: by place.
    NodeOwners(std::shared_ptr<const workflow::Merged> merged, std::vector<NodeOwner> members);

    void let_go(std::size_t place) { members_[place].is_here.store(false); }
    // nullopt: nobody wants what it makes.
    std::optional<NodeOwner> find(const std::string& node) const;

private:
    struct Member {
        explicit Member(NodeOwner the_owner) : owner(std::move(the_owner)) {}
        const NodeOwner owner;
        std::atomic<bool> is_here{true};
    };
    const std::shared_ptr<const workflow::Merged> merged_;
    std::deque<Member> members_;
};

}  // namespace comfyd::fleet
