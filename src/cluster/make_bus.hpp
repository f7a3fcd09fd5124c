// The bus that a URL names.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "cluster/bus.hpp"

namespace comfyd::cluster {

// As redis/url.hpp; empty: none, nodes find what others did in the ledger. Code::config_invalid.
Result<std::unique_ptr<Bus>> make_bus(
    Executor executor, std::string_view url, std::string cluster, NodeId self
);

}  // namespace comfyd::cluster
