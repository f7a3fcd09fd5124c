// What nodes that share one ledger ask of it beyond jobs::Ledger. Any node accepts jobs; an
// unfinished job is changed by the leader of its domain alone. Implemented by the ledger room
// (PostgreSQL).
//
// Members may be called on any executor; a Task continues on the executor that awaited it. Failures
// as of jobs::Ledger.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/task.hpp"
#include "jobs/ledger.hpp"
#include "jobs/term.hpp"

namespace comfyd::jobs {

// Where a reader of arrivals stands. The default: before all of them.
struct ArrivalCursor {
    std::uint64_t transaction = 0;
    JobId job{};
    // Within a reading of several pages: the oldest transaction that was under way at its first
    // one, with which the next reading begins.
    std::uint64_t next_reading = 0;
    // What was visible when the reading before began, and when this one did, as the ledger writes
    // it: while an old transaction stays open, what came after it is not read again and again.
    std::string seen{};
    std::string sees{};
};

struct ArrivalPage {
    // Some may be known to the reader already: none is left out, also of those whose transaction
    // began early and was committed late.
    std::vector<Unfinished> jobs;
    ArrivalCursor next;
    bool more = false;  // go on at once, with `next`
};

// What tells a reader whether it knows an arrival already: most are its own, and to read them whole
// costs more than all the rest. Asked on the reader's executor.
struct Arrival {
    JobId job{};
    State state = State::queued;
    int revision = 0;
};
using IsKnown = std::function<bool(const Arrival&)>;

// Something that a node wants of the leader of a domain.
struct Wish {
    enum class Kind { cancel = 0, cancel_waiting = 1, drain = 2, resume = 3, free_memory = 4 };

    std::int64_t id = 0;  // given by the ledger
    std::string domain = "main";
    Kind kind = Kind::cancel;
    std::optional<JobId> job{};
    std::string worker{};
    json::object details{};
};

// How far a listener has heard of a job.
struct Heard {
    JobId job;
    std::uint64_t sequence = 0;
};

class SharedLedger {
public:
    virtual ~SharedLedger() = default;

    // The ledger as the leader of a domain uses it: what it writes is refused with Code::lead_lost,
    // wholly, once the term has ended. The shared ledger outlives it.
    virtual std::unique_ptr<Ledger> under(Term term) = 0;

    // Unfinished jobs of the domain in the order of their transactions; at first all that there
    // are, then those that came, by a new accept or a retry. What `is_known` is left out.
    virtual Task<Result<ArrivalPage>> arrivals(
        std::string domain, ArrivalCursor after, int limit, IsKnown is_known = {}
    ) = 0;

    virtual Task<Result<>> wish(Wish wish) = 0;
    // The oldest first.
    virtual Task<Result<std::vector<Wish>>> wishes(std::string domain, int limit) = 0;
    virtual Task<Result<>> drop_wishes(std::vector<std::int64_t> ids) = 0;

    // Those of them of which there is more to hear.
    virtual Task<Result<std::vector<JobId>>> advanced(std::vector<Heard> heard) = 0;
};

}  // namespace comfyd::jobs
