// Internal to net: names of sockets, which are addresses with a port or files. Pure.
#pragma once

#include <string>

#include "base/error.hpp"
#include "net/sockets.hpp"

namespace comfyd::net {

// Code::invalid_argument: a path that is too long to be the name of a socket.
Result<SocketName> local_name(const std::string& path);

bool is_local(const SocketName& name);

// REQUIRES: not is_local(name).
tcp::endpoint to_tcp(const SocketName& name);

}  // namespace comfyd::net
