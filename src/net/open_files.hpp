// How many files and sockets the process may have open, and how that is shared: connections of
// clients must never take what jobs need.
#pragma once

#include <cstddef>

namespace comfyd::net {

// Raises the soft limit to the hard one and says what it is now. At start.
std::size_t raise_open_files_limit();

// The connections that leave enough for files, the ledger and the sockets to `workers`.
std::size_t connections_within(std::size_t open_files, std::size_t workers);

}  // namespace comfyd::net
