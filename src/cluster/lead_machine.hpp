// When a node asks for the lead of a domain, how long it believes to have it and when it lets it
// go. Decisions alone: it is told what came and what time it is, and says what is to be done.
// `cluster::Lead` does it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "cluster/leases.hpp"

namespace comfyd::cluster {

// Why a term has ended, as its leader saw it.
enum class LeadEnd {
    taken_over,    // another node leads: the table, the ledger or a worker said so
    unconfirmed,   // the lease could not be renewed in time
    session_lost,  // the session with the database is gone, so that others may take the lead
    resigned,
};
std::string_view to_string(LeadEnd end);

class LeadMachine {
public:
    // Ask again when something came, or at that time; nullopt: only when something came.
    struct Wait {
        std::optional<Millis> until;
    };
    // Requests to the table of leases; at most one is under way.
    struct Take {};
    struct Renew {
        jobs::Term term;
    };
    struct Resign {
        jobs::Term term;
    };
    // The term has begun, and has ended. stepped_down() is expected when all that was done under it
    // has stopped.
    struct Begin {
        Taken taken;
    };
    struct StepDown {
        LeadEnd why;
    };
    struct Rest {};  // after stop(): there is nothing more to do
    using Action = std::variant<Wait, Take, Renew, Resign, Begin, StepDown, Rest>;

    // What is to be done now, one after the other until it is Wait or Rest. Times are those of a
    // BootClock; a request counts as sent at `now`.
    Action next(Millis now);

    // Answers to requests.
    void took(const Result<std::optional<Taken>>& answer, Millis now);
    void renewed(const Result<>& answer, Millis now);
    void resigned(Millis now);
    void stepped_down(Millis now);
    void session_lost();
    // Somebody says that nobody leads: it is asked for at once.
    void may_be_free();
    // Somebody has refused what was done under this epoch.
    void refused(std::uint64_t epoch);
    // Lets the lead go, if it is held; others have time to take it before it is asked for again.
    void let_go();
    // The same, and it is asked for no more.
    void stop();

    bool leads() const { return phase_ == Phase::leading; }
    // The term; nullopt: it is not trusted, and will not be any more.
    std::optional<Millis> trusted_until() const;

private:
    enum class Phase { standing_by, leading, stepping_down, giving_back, at_rest };

    Action next_as_leader(Millis now);
    bool send(Millis now);

    Phase phase_ = Phase::standing_by;
    Taken taken_{};
    bool has_begun_ = false;
    std::optional<LeadEnd> end_;
    bool is_stopping_ = false;

    bool is_asking_ = false;         // a request is under way
    Millis sent_at_{0};              // the latest request
    bool has_broken_ = false;        // its session
    bool asks_again_ = false;        // it may have come too early
    Millis ask_at_ = Millis::min();  // when the next request is due
    Millis lease_until_{0};          // as long as the leader may believe in it
};

}  // namespace comfyd::cluster
