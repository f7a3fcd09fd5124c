// The bus that the configuration asks for.
#pragma once

#include <memory>
#include <string>

#include "cluster/bus.hpp"

namespace comfyd::cluster {

// `url`: of a Redis (cluster/redis/url.hpp), or empty: nodes find each other's changes by polling.
// Code::invalid_argument. Whether the server is there shows when the bus is up; it may come later.
Result<std::unique_ptr<Bus>> make_bus(
    Executor executor, const std::string& url, std::string cluster, NodeId self
);

}  // namespace comfyd::cluster
