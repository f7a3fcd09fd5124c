#include "app/machines.hpp"

#include <utility>

#include "base/hop.hpp"

namespace comfyd::app {

std::shared_ptr<const workflow::Catalogue> OwnMachines::catalogue() const {
    return fleet_.catalogue();
}

Task<std::optional<workflow::PromptVerdict>> OwnMachines::judge(
    json::object prompt, std::vector<std::string> targets, Requirement requirement
) {
    return await_on(
        core_, fleet_.judge(std::move(prompt), std::move(targets), std::move(requirement))
    );
}

Task<bool> OwnMachines::has_input(std::string tenant, std::string name) {
    return await_on(core_, fleet_.has_input(std::move(tenant), std::move(name)));
}

Task<Result<>> OwnMachines::set_draining(std::string worker, bool draining) {
    return await_on(core_, office_.set_draining(std::move(worker), draining));
}

void OwnMachines::hear_ready(const std::string& worker) {
    office_.hear_ready(worker);
}

void OwnMachines::hear_stopping(const std::string& worker, bool is_stopping) {
    office_.hear_stopping(worker, is_stopping);
}

Task<std::uint64_t> OwnMachines::engine_ends() {
    return call_on(core_, [this] { return fleet_.engine_ends(); });
}

}  // namespace comfyd::app
