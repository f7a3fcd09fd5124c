// The workers of a cluster: asked at once where this node leads them, and through their leader
// otherwise.
#pragma once

#include "app/cluster_node.hpp"
#include "app/machines.hpp"

namespace comfyd::app {

class ClusterMachines final : public Machines {
public:
    // Both outlive it. Before the node is started: it answers what other nodes ask of workers.
    ClusterMachines(Executor core, ClusterNode& node);

    std::shared_ptr<const workflow::Catalogue> catalogue() const override;
    Task<std::optional<workflow::PromptVerdict>> judge(
        json::object prompt, std::vector<std::string> targets, Requirement requirement
    ) override;
    Task<bool> has_input(std::string tenant, std::string name) override;
    // What another node leads is drained soon, not at once.
    Task<Result<>> set_draining(std::string worker, bool draining) override;
    void hear_stopping(const std::string& worker, bool is_stopping) override;
    void hear_ready(const std::string& worker) override;
    Task<std::uint64_t> engine_ends() override;

private:
    // All on the core.
    Task<std::optional<workflow::PromptVerdict>> judge_here(
        json::object prompt, std::vector<std::string> targets, Requirement requirement
    );
    Task<std::optional<workflow::PromptVerdict>> judge_anywhere(
        json::object prompt, std::vector<std::string> targets, Requirement requirement
    );
    Task<bool> find_here(std::string tenant, std::string name);
    Task<bool> find_anywhere(std::string tenant, std::string name);
    Task<Result<>> drain_anywhere(std::string worker, bool draining);
    Task<Result<json::value>> answer_judge(json::value details);
    Task<Result<json::value>> answer_has_input(json::value details);
    Task<Result<json::value>> answer_drain(json::value details);

    Executor core_;
    ClusterNode& node_;
};

}  // namespace comfyd::app
