// The machines that comfyd is made of and works with, as the configuration names them: URLs of
// clients must not lead there. Pure.
#pragma once

#include <string>
#include <vector>

#include "app/config/config.hpp"

namespace comfyd::app {

// Names and addresses: where it listens and is found, workers, stores with an endpoint of their
// own, PostgreSQL, Redis, and what guard.own_hosts says. Each once.
std::vector<std::string> own_hosts(const Config& config);

// "postgres://user:secret@db1:5432,db2/name" -> {"db1", "db2"}.
std::vector<std::string> hosts_in(std::string_view url);

}  // namespace comfyd::app
