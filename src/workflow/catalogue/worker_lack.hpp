// Why no worker can run a workflow, for every place that says so: what is missing, where it is
// least, and whether workers of another pool could. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "workflow/catalogue/catalogue.hpp"

namespace comfyd::workflow {

struct WorkerLack {
    std::string pool;  // that was asked for; empty: none
    // nullopt: no worker of the pool has told what it has.
    std::optional<Catalogue::Nearest> nearest;
    std::vector<std::string> other_pools;  // that have a worker which could run it
    // What there is, where the request says something of the machine (Catalogue::machines()).
    std::optional<json::array> machines{};

    // A sentence without a full stop.
    std::string message() const;
    // {"nearest_worker", "missing_there", "missing_files", "pool", "other_pools", "machines"}; the
    // last three only where a pool or a machine was asked for.
    json::object details() const;
    // Code::no_capable_worker, in the form of check().
    Error to_error() const;
};

// nullopt: some worker can run it, or nothing is known that speaks against it.
std::optional<WorkerLack> find_lack(const Catalogue& catalogue, const Requirement& requirement);
// A pool was asked for of which no worker has told what it has: whether it can run is not known.
std::optional<WorkerLack> find_silent_pool(
    const Catalogue& catalogue, const Requirement& requirement
);

}  // namespace comfyd::workflow
