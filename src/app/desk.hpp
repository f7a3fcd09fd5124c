// The desk at which submissions are admitted, over the parts of this program.
#pragma once

#include "admission/desk.hpp"
#include "app/machines.hpp"

namespace comfyd::app {

// All outlive the desk.
struct DeskParts {
    jobs::Service& jobs;
    assets::Store& assets;
    Machines& machines;
    Clock& clock;
};

admission::Desk make_desk(
    DeskParts parts, admission::Rules rules, std::shared_ptr<admission::FileNames> names
);

}  // namespace comfyd::app
