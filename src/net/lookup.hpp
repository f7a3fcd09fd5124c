// The addresses of a name. getaddrinfo cannot be interrupted, so nobody waits for it directly: when
// time is over it goes on by itself, and nobody hears of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "net/sockets.hpp"

namespace comfyd::net {

struct LookedUp {
    bool is_done = false;  // else time is over, or the task was cancelled
    error_code error{};
    std::vector<tcp::endpoint> endpoints{};
};
Task<LookedUp> look_up(Executor executor, std::string host, std::uint16_t port, Deadline deadline);

}  // namespace comfyd::net
