// Where the workers of `comfyd serve` come from, as the configuration says.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "app/config/config.hpp"
#include "fleet/provider.hpp"

namespace comfyd::app {

using WorkerProviders = std::vector<std::unique_ptr<fleet::WorkerProvider>>;

// The servers of the domain that it names, and engines of our own where they are wanted. A cluster
// has none: an engine would end with the node that leads.
Result<WorkerProviders> make_worker_providers(
    const Config& config, const std::filesystem::path& data, const std::string& domain
);

}  // namespace comfyd::app
