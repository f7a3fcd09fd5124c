// What other nodes leave in the ledger for the leader of a domain: jobs that they have accepted or
// brought back, and wishes. Looked for when somebody says that there is something, and else every
// so often, because nobody can be relied on to say it. Core executor.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/task.hpp"
#include "jobs/shared_ledger.hpp"

namespace comfyd::jobs {

class Newcomers {
public:
    static constexpr Millis kLookEvery{500};

    // All outlive it.
    struct Parts {
        Executor core;
        Clock& clock;
        SharedLedger& shared;
        std::string domain;
        std::function<bool(const JobId&)> knows;  // it is the dispatcher's already
        std::function<void(Unfinished)> take;
        std::function<Task<>(Wish)> fulfil;
    };
    explicit Newcomers(Parts parts)
        : p_(std::move(parts)), told_(p_.core), read_until_(p_.clock.now()) {}

    // The next of all that there are, to begin with; empty: that was the last, and what comes after
    // it is found by run().
    Task<Result<std::vector<Unfinished>>> read_back();
    // Until its task is cancelled.
    Task<> run();
    // There may be something now.
    void look() { told_.notify(); }

    // What was left there longer ago than this is found.
    Millis lag() const { return p_.clock.now() - read_until_; }

    // A job of the dispatcher has ended and is no longer known to it. What was read before that
    // does not bring it back; what another node has made of it since then does.
    void note_end(const Job& job);
    // It is not newer than its end.
    bool has_just_ended(const Job& job) const;

private:
    Task<> look_for_jobs();
    Task<> look_for_wishes();
    void meet(Unfinished job);

    Parts p_;
    Signal told_;
    ArrivalCursor cursor_;
    Time read_until_;  // what was there then is read
    bool has_read_back_ = false;
    // Revisions that ended since the latest look began, and between the one before and it.
    std::array<std::unordered_map<JobId, int>, 2> ended_;
    // Brought back by somebody, and known to the dispatcher: either it did so itself, or it has not
    // heard of the end before yet.
    std::unordered_map<JobId, Unfinished> brought_back_;
};

}  // namespace comfyd::jobs
