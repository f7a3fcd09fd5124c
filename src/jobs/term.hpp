// The lead of a domain by one node, from taking it to losing it. Epochs of a domain only rise, so
// that whoever keeps things (the ledger, a worker) can tell a leader from one that was.
#pragma once

#include <cstdint>
#include <string>

#include "base/id.hpp"

namespace comfyd::jobs {

struct Term {
    std::string domain;
    std::uint64_t epoch = 0;
    NodeId node;

    friend bool operator==(const Term&, const Term&) = default;
};

}  // namespace comfyd::jobs
