// Internal to net: listening on a socket in the file system, to which only our own user may
// connect.
#pragma once

#include <string>

#include "base/error.hpp"

namespace comfyd::net {

// A descriptor that listens. Makes the folder where there is none, for our user alone. What an
// ended server left under the name is removed. Code::conflict: somebody answers there, or it is no
// socket. Code::invalid_argument: no such place.
Result<int> listen_locally(const std::string& path, int backlog);

}  // namespace comfyd::net
