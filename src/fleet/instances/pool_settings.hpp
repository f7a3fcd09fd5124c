// What an operator wrote of a pool that comfyd keeps machines for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "autoscale/settings.hpp"
#include "base/time.hpp"
#include "fleet/providers/machines.hpp"

namespace comfyd::fleet {

struct PoolSettings {
    std::string name;
    int size = 0;    // machines, where they are not scaled
    int parked = 0;  // of those too many, so many are stopped where their provider keeps the disk
    // How many by what waits; nullopt: as many as `size` says.
    std::optional<autoscale::Settings> scaling{};
    bool is_dry_run = false;  // it is told how many there would be, and `size` holds
    MachineTemplate made_from{};
    std::vector<OfferWish> offers{};  // in the order in which they are tried
    // A mark of all that decides what its machines can run, those places among it that have
    // software of their own.
    std::string software{};
    std::string warm_up{};                        // a workflow in API form; empty: none
    int slots = 1;                                // prompts at once of each
    double gpu_second_usd = 0;                    // where the offer tells no price
    Millis start_max = std::chrono::minutes(10);  // from the order to the first job
    Millis drain_max = std::chrono::minutes(5);   // for jobs on one that leaves

    // The same for equal templates: a template that was paused is another one once it is changed.
    std::string mark() const;
};

}  // namespace comfyd::fleet
