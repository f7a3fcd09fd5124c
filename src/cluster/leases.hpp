// The table by which nodes agree who leads a domain. Implemented by the ledger room (PostgreSQL).
//
// A lease lasts kLeaseLife by the clock of the database. Whoever holds one trusts it only for
// kTrust, counted from when the request for it was *sent*: so it stops before anybody else begins,
// however long answers take and however wrong its own clock is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/id.hpp"
#include "base/task.hpp"
#include "base/time.hpp"
#include "jobs/term.hpp"

namespace comfyd::cluster {

inline constexpr Millis kLeaseLife{6'000};
inline constexpr Millis kTrust{4'000};
inline constexpr Millis kRenewEvery{1'500};
inline constexpr Millis kTryEvery{500};
// From a leader's last look at its trust until what it sends has arrived: so long after the end of
// its lease nothing of it comes to a worker any more.
inline constexpr Millis kSendTime{1'000};

struct Taken {
    jobs::Term term;
    // Until then an earlier leader may still send to a worker what it had begun: kSendTime after
    // its lease runs out, whatever took the lead from it.
    Millis quiet_in{0};
};

// A row of the table, for those who look at the cluster.
struct Lease {
    jobs::Term term;       // node: nil when nobody leads
    Millis expires_in{0};  // by the database's clock; negative: it has run out
    std::uint64_t queued = 0;
};

class Leases {
public:
    virtual ~Leases() = default;

    // Takes the lead of a domain that has no leader: nobody held it yet, the holder resigned, its
    // lease ran out or its session with the database is gone; or it is `node` itself that holds it,
    // from a request whose answer it did not get. What the holder's session still has under way is
    // ended first. nullopt: another node leads.
    virtual Task<Result<std::optional<Taken>>> take(std::string domain, NodeId node) = 0;
    // Code::lead_lost when the term has ended. `queued` is shown to others.
    virtual Task<Result<>> renew(jobs::Term term, std::uint64_t queued) = 0;
    // Others may take the lead at once, and need not wait for anything to arrive: whoever resigns
    // has ended all that it sent. No failure when the term had ended.
    virtual Task<Result<>> resign(jobs::Term term) = 0;
    virtual Task<Result<std::vector<Lease>>> all() = 0;
};

}  // namespace comfyd::cluster
