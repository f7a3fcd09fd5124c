// What the configuration means for the server: who may connect, how many and by which name. Pure.
#pragma once

#include "app/config/config.hpp"
#include "net/host_rules.hpp"
#include "net/server.hpp"

namespace comfyd::app {

// `open_files`: as many as the process may have.
net::ServerLimits server_limits(const Config& config, std::size_t open_files);

// The system allows fewer connections than the operator set.
bool has_fewer_than_asked_for(const Config& config, const net::ServerLimits& limits);

// By which names clients may address it.
net::HostRules host_rules(const Config& config);

}  // namespace comfyd::app
