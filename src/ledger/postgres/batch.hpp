// One transaction of many writes: rows of the same kind from all of them go by one statement.
//
// Writes join it, it is run, and then each concludes what became of it. What is refused (a
// conflict, a taken key) writes no row and disturbs nobody: all that follows from a job's change is
// written only where that job's row was written by this very transaction. Hence the same batch may
// be sent again when its answer was lost.
#pragma once

#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/time.hpp"
#include "jobs/ledger.hpp"
#include "jobs/stats.hpp"
#include "jobs/term.hpp"
#include "ledger/postgres/blob_needs.hpp"
#include "ledger/postgres/connection.hpp"
#include "ledger/postgres/table.hpp"
#include "ledger/rollup_names.hpp"
#include "ledger/told_to.hpp"

namespace comfyd::ledger::postgres {

inline constexpr Millis kIdempotencyKeyLife = std::chrono::hours(24);

// The numbers in counters.kind.
enum class CounterKind { jobs = 0, outbox = 1 };

struct Circumstances {
    Time now;
    int slot = 0;                      // of this node's counters
    std::optional<jobs::Term> term{};  // under which it writes
    bool is_again = false;             // the answer to an earlier attempt was lost
    RollupNames* names = nullptr;      // of the writer
};

// What refuses the transaction when the term has ended, and keeps others from taking the lead until
// it is through.
Statement fence(const jobs::Term& term);

class Batch {
public:
    // `before`: those that are sent before it and not answered yet.
    explicit Batch(Circumstances circumstances, const std::vector<const Batch*>& before = {});

    // False: it has a write of this job already, or one before it has, which may have to be sent
    // again and then comes too late.
    bool touch(const JobId& job);

    // A statement of one write alone; the place of its answer.
    std::size_t add(Statement statement);
    const Rows& answer(std::size_t place) const { return own_answers_.at(place); }

    Statements statements() const;
    void read(std::vector<Rows> answers);

    // What follows from a job's change, whether it was made or changed.
    void add_event(const jobs::Event& event, const std::optional<std::string>& data);
    // To the job's own webhook, if that wants the event; and to others.
    void add_delivery(const jobs::Job& job, const jobs::Event& event);
    void add_deliveries(
        const jobs::Job& job, const jobs::Event& event, const std::vector<ToldTo>& told
    );
    void add_outputs(const jobs::Job& job, Time now);
    void add_stats(const JobId& job, jobs::StatsEntry entry);

    const Circumstances at;
    Table keys{{kText, kText, kUuid, kText, kText}};
    Table new_jobs;
    Table specs{{kUuid, kInteger, kText, kText, kText, kText, kText, kText, kText, kText}};
    Table changes;
    Table job_assets{{kUuid, kText}};
    Table secrets{{kUuid, kBytes}};
    Table ended{{kUuid}};
    Table events{{kUuid, kInteger, kInteger, kInteger, kInteger, kText}};
    Table deliveries{{kUuid, kInteger, kInteger, kText, kInteger, kText, kInteger}};
    Table further_deliveries{{kUuid, kText, kInteger, kInteger, kText, kInteger}};
    Table targets{{kUuid, kText, kBytes}};
    Table results{{kUuid, kText, kText, kText, kText}};
    Table no_results{{kUuid}};
    Table outputs;
    BlobNeeds blob_needs;
    Table contents{{kUuid, kText, kBytes}};
    Table output_hashes{{kText}};
    Table reused_hashes{{kText}};
    Table stats;

    std::unordered_set<std::string> held;  // idempotency keys
    std::unordered_set<JobId> made;        // after read()
    std::unordered_set<JobId> changed;

    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;

private:
    std::vector<const Batch*> before_;  // used while writes join
    std::unordered_set<JobId> touched_;
    bool begins_hour_ = false;  // of the sums
    Statements own_;
    std::vector<Rows> own_answers_;
};

// A write that shares a transaction with others.
class Write {
public:
    virtual ~Write() = default;
    virtual std::size_t bytes() const = 0;
    // False: another one in it is in its way; it waits for the next.
    virtual bool join(Batch& batch) = 0;
    virtual void conclude(const Batch& batch) = 0;
    // Asked afterwards, when it did not say.
    virtual Statements question(const Circumstances& at) { return (void)at, Statements(); }
    virtual void hear(const Circumstances& at, const std::vector<Rows>& answers) {
        (void)at, (void)answers;
    }
    virtual bool is_decided() const = 0;
    virtual void refuse(const Error& error) = 0;
};

template <class T>
class WriteOf : public Write {
public:
    using Value = T;
    bool is_decided() const override { return outcome.has_value(); }
    void refuse(const Error& error) override { outcome.emplace(fail(error)); }

    std::optional<Result<T>> outcome;
};

}  // namespace comfyd::ledger::postgres
