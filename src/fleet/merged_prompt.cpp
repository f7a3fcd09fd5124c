#include "fleet/merged_prompt.hpp"

#include <utility>

#include "fleet/worker_classes.hpp"

namespace comfyd::fleet {
Result<MergedPrompt> merge_prompts(
    std::vector<ToMerge> members, std::shared_ptr<const workflow::NodeClasses> classes
) {
    MergedPrompt done;
    std::vector<workflow::MergeInput> inputs;
    for (const ToMerge& member : members) {
        auto parsed = json::parse_object(member.workflow);
        if (!parsed) {
            return fail(std::move(parsed.error()));
        }
        const auto kept = done.workflows.emplace(member.place, std::move(*parsed)).first;
        workflow::MergeInput input;
        input.workflow = &kept->second;
        input.place = member.place;
        input.extra_pnginfo = member.extra_pnginfo ? &*member.extra_pnginfo : nullptr;
        inputs.push_back(input);
    }
    auto merged = workflow::merge(inputs, WorkerClasses(std::move(classes)));
    if (!merged) {
        return fail(std::move(merged.error()));
    }
    done.merged = std::move(*merged);
    done.prompt = json::serialize(done.merged.prompt);
    return done;
}

std::vector<workflow::JobNode> find_origins(
    const workflow::Merged* merged, const std::string& node
) {
    if (merged != nullptr) {
        const auto found = merged->origins.find(node);
        return found == merged->origins.end() ? std::vector<workflow::JobNode>() : found->second;
    }
    const auto own = workflow::own_node(node);
    return own ? std::vector{*own} : std::vector<workflow::JobNode>();
}

NodeOwners::NodeOwners(
    std::shared_ptr<const workflow::Merged> merged, std::vector<NodeOwner> members
)
    : merged_(std::move(merged)) {
    for (NodeOwner& member : members) {
        members_.emplace_back(std::move(member));
    }
}

std::optional<NodeOwner> NodeOwners::find(const std::string& node) const {
    for (const workflow::JobNode& origin : find_origins(merged_.get(), node)) {
        if (origin.job < members_.size() && members_[origin.job].is_here.load()) {
            return members_[origin.job].owner;
        }
    }
    return std::nullopt;
}

}  // namespace comfyd::fleet
