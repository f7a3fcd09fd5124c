#include "app/desk.hpp"

#include <utility>

namespace comfyd::app {

admission::Desk make_desk(
    DeskParts parts, admission::Rules rules, std::shared_ptr<admission::FileNames> names
) {
    Machines& machines = parts.machines;
    return {
        parts.jobs,
        parts.assets,
        parts.clock,
        [&machines] { return machines.catalogue(); },
        std::move(rules),
        [&machines](
            json::object prompt, std::vector<std::string> targets, Requirement requirement
        ) { return machines.judge(std::move(prompt), std::move(targets), std::move(requirement)); },
        [&machines](std::string tenant, std::string name) {
            return machines.has_input(std::move(tenant), std::move(name));
        },
        std::move(names)
    };
}

}  // namespace comfyd::app
