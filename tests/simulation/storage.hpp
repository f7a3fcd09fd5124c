// The way of one process to the ledger, which outlives it. Operations wait until the schedule lets
// them through; they fail, meet another writer and, in a crash, are lost or done without an answer.
#pragma once

#include <deque>
#include <memory>

#include "jobs/ledger.hpp"
#include "ledger/memory_ledger.hpp"
#include "simulation/chance.hpp"
#include "simulation/journal.hpp"
#include "simulation/rules.hpp"

namespace comfyd::simulation {

// What the schedule does to the storage, of whatever process.
struct StorageTrouble {
    bool is_down = false;
    bool hides_events = false;    // of jobs, while all else can be read
    bool has_new_leader = false;  // another node leads: nothing of this process is stored
    int failures = 0;             // of the next operations
    int conflicts = 0;            // likewise: another writer was there before
};

class Storage final : public jobs::Ledger {
public:
    Storage(
        ledger::MemoryLedger& stored,
        StorageTrouble& trouble,
        Rules& rules,
        Chance& chance,
        Journal& journal
    )
        : stored_(stored), trouble_(trouble), rules_(rules), chance_(chance), journal_(journal) {}

    bool is_idle() const { return writes_.empty() && others_.empty(); }
    // One of the operations that wait; writes keep their order.
    void let_one_through();
    // The process dies: some of the writes that wait are done first, none is answered.
    void cut();

    Task<Result<jobs::Accepted>> accept(jobs::NewJob job) override;
    Task<Result<jobs::Accepted>> find_key(std::string tenant, std::string key) override;
    Task<Result<std::optional<jobs::Job>>> find_reusable(std::string tenant, std::string reuse_key)
        override;
    Task<Result<>> commit(jobs::Change change) override;
    Task<Result<std::optional<jobs::Job>>> find(JobId id) override;
    Task<Result<std::optional<jobs::Spec>>> find_spec(JobId id) override;
    Task<Result<jobs::Page>> list(jobs::ListQuery query) override;
    Task<Result<std::vector<jobs::Event>>> events(JobId id, std::uint64_t after) override;
    Task<Result<jobs::WebhookStatus>> webhook_status(JobId id) override;
    Task<Result<jobs::StateCounts>> counts(std::optional<std::string> tenant) override;
    Task<Result<jobs::Stats>> stats(jobs::StatsQuery query) override;
    Task<Result<std::vector<jobs::Unfinished>>> unfinished(std::optional<JobId> after, int limit)
        override;
    Task<Result<jobs::Purged>> purge(Time before, int limit) override;
    Task<Result<>> discard(JobId id) override;

private:
    struct Waiting {
        virtual ~Waiting() = default;
        virtual void go(bool is_done) = 0;
    };
    template <class Handler>
    struct Held;
    using Queue = std::deque<std::unique_ptr<Waiting>>;

    // False: it is lost with its process.
    Task<bool> wait_in(Queue& queue);
    template <class T>
    Task<Result<T>> read(Task<Result<T>> operation);
    // After a write: other things may happen before it is known.
    Task<bool> answer();
    std::optional<Error> find_trouble(const char* what);

    ledger::MemoryLedger& stored_;
    StorageTrouble& trouble_;
    Rules& rules_;
    Chance& chance_;
    Journal& journal_;
    Queue writes_;
    Queue others_;
    bool is_cut_ = false;
};

}  // namespace comfyd::simulation
