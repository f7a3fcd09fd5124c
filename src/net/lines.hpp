// The port of connections to peers that have no address but have called us: machines behind NAT.
// Who keeps their lines implements it; a Client uses it for requests whose `socket` is
// "worker://NAME". Any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/deadline.hpp"
#include "base/task.hpp"
#include "net/descriptor.hpp"

namespace comfyd::net {

class Lines {
public:
    virtual ~Lines() = default;

    // Our end of a new connection to the peer of that name. Waits until it has a line free.
    // Code::connection_failed: it has not called, or has none free by the deadline.
    virtual Task<Result<Descriptor>> open(std::string name, Deadline deadline) = 0;
};

// The name in "worker://NAME": 1 to 128 letters, digits, '.', '_' and '-'. nullopt: it is no such
// text.
std::optional<std::string> line_name(std::string_view text);

}  // namespace comfyd::net
