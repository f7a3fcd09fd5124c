// Where the workers of `comfyd serve` come from, as the configuration says.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "app/config/config.hpp"
#include "fleet/instances/kept_pools.hpp"
#include "fleet/provider.hpp"

namespace comfyd::app {

using WorkerProviders = std::vector<std::unique_ptr<fleet::WorkerProvider>>;

// What machines that comfyd starts by itself are kept with. All references outlive the providers.
struct KeptParts {
    Executor core;
    const Clock& clock;
    fleet::Lane lane;
    Pool& pool;
    fleet::InstanceStore& store;
    fleet::Callers& callers;
    fleet::KeptPools::LoadOf load{};
    fleet::MandatePtr mandate{};  // null: nobody else leads
};

// The servers of the domain that the configuration names, the pools of it that comfyd keeps, and
// engines of our own where they are wanted. A cluster has none: an engine would end with the node
// that leads.
struct WorkerSources {
    WorkerProviders providers;
    fleet::KeptPools* kept = nullptr;  // among them; nullptr: there are no machines to be had
};
Result<WorkerSources> make_worker_providers(
    const Config& config, const KeptParts& parts, const std::string& domain
);

// Of the pools whose machines comfyd makes, by name.
std::map<std::string, std::string> software_of_pools(const Config& config);

}  // namespace comfyd::app
