// The list of the nodes that share a ledger: each says again and again that it is there, and what
// others may like to know of it. Nothing is decided by it; it is for those who look at the cluster.
// Implemented by the ledger room (PostgreSQL).
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/id.hpp"
#include "base/json.hpp"
#include "base/task.hpp"
#include "base/time.hpp"

namespace comfyd::cluster {

// Who was not seen for so long is taken from the list.
inline constexpr Millis kRosterKeeps{600'000};

struct RosterEntry {
    NodeId node;
    json::object about;
    Millis seen_ago{0};  // by the database's clock
};

class Roster {
public:
    virtual ~Roster() = default;

    // The node is there. Returns the database's time then.
    virtual Task<Result<Time>> sign_in(NodeId node, json::object about) = 0;
    virtual Task<Result<>> sign_out(NodeId node) = 0;
    // The one that was seen first comes first.
    virtual Task<Result<std::vector<RosterEntry>>> roster() = 0;
};

}  // namespace comfyd::cluster
