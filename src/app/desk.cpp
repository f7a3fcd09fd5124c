#include "app/desk.hpp"

#include <utility>

#include "base/hop.hpp"

namespace comfyd::app {

admission::Desk make_desk(
    DeskParts parts, admission::Rules rules, std::shared_ptr<admission::FileNames> names
) {
    fleet::Fleet& fleet = parts.fleet;
    return {
        parts.jobs,
        parts.assets,
        parts.clock,
        [&fleet] { return fleet.catalogue(); },
        std::move(rules),
        [&fleet, core = parts.core](
            json::object prompt, std::vector<std::string> targets, Requirement requirement
        ) {
            return await_on(
                core, fleet.judge(std::move(prompt), std::move(targets), std::move(requirement))
            );
        },
        [&fleet, core = parts.core](std::string tenant, std::string name) {
            return await_on(core, fleet.has_input(std::move(tenant), std::move(name)));
        },
        std::move(names)
    };
}

}  // namespace comfyd::app
