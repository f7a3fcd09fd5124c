// The desk at which submissions are admitted, over the parts of this program.
#pragma once

#include "admission/desk.hpp"
#include "fleet/fleet.hpp"

namespace comfyd::app {

// All outlive the desk.
struct DeskParts {
    jobs::Service& jobs;
    assets::Store& assets;
    fleet::Fleet& fleet;
    Executor core;  // the fleet's
    Clock& clock;
};

admission::Desk make_desk(
    DeskParts parts, admission::Rules rules, std::shared_ptr<admission::FileNames> names
);

}  // namespace comfyd::app
