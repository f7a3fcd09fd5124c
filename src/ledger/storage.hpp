// All that is durable, behind one door: jobs, named workflows, bulks, notes, asset records,
// deliveries and endpoints of webhooks, tenants, keys and sessions, the register of models,
// machines of the fleet. One object implements every port, so that a change and what follows from
// it are one transaction. Which implementation it is says the URL that it was opened by.
//
// Owned by the program's wiring; outlives everything that uses it, and every executor that awaits
// it outlives it.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "assets/store.hpp"
#include "auth/identity_store.hpp"
#include "auth/session_store.hpp"
#include "base/circuit_breaker.hpp"
#include "base/error.hpp"
#include "base/task.hpp"
#include "base/time.hpp"
#include "cluster/leases.hpp"
#include "cluster/roster.hpp"
#include "fleet/instances/store.hpp"
#include "jobs/bulk_store.hpp"
#include "jobs/ledger.hpp"
#include "jobs/notebook.hpp"
#include "jobs/shared_ledger.hpp"
#include "jobs/workflow_store.hpp"
#include "models/register_store.hpp"
#include "notify/deliveries.hpp"
#include "notify/endpoint_store.hpp"
#include "notify/outbox.hpp"
#include "notify/routing.hpp"

namespace comfyd {
class Pool;
}

namespace comfyd::ledger {

// How long writes took from request to durable.
struct Latency {
    static constexpr std::array<double, 12> kBoundsSeconds{
        0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0
    };
    std::array<std::uint64_t, kBoundsSeconds.size() + 1> counts{
    };  // not cumulative; the last: above all bounds
    double sum_seconds = 0;

    void add(std::chrono::steady_clock::duration duration);
};

struct StorageStats {
    std::uint64_t commits = 0;  // operations made durable
    std::uint64_t batches = 0;  // transactions, and fsyncs
    std::uint64_t failed_batches = 0;
    std::uint64_t last_batch_size = 0;
    std::uint64_t queue_depth = 0;
    std::uint64_t wal_bytes = 0;
    std::uint64_t checkpoints = 0;
    Latency latency;
    // Open while the latest write failed; half-open while one finds out whether that has passed.
    // Writes are not refused because of it: each is tried, for as long as its storage promises.
    CircuitBreaker::State breaker = CircuitBreaker::State::closed;
};

// An executor that waits for no disk: what is read there is read on the pool.
struct ReadsApart {
    Executor of;
    Pool* pool;  // outlives the storage's users
};

class Storage : public jobs::Ledger,
                public jobs::WorkflowStore,
                public jobs::BulkStore,
                public jobs::Notebook,
                public assets::Catalogue,
                public notify::Outbox,
                public notify::Deliveries,
                public notify::EndpointStore,
                public auth::IdentityStore,
                public auth::SessionStore,
                public models::RegisterStore,
                public fleet::InstanceStore {
public:
    using assets::Catalogue::find;
    using jobs::Ledger::counts;
    using jobs::Ledger::find;
    using notify::Outbox::counts;

    // Ends it as its destruction would, but the object stays: later calls answer
    // Code::shutting_down. Blocks; not on an executor whose reads are in progress on other threads.
    virtual void stop() = 0;
    // Outcome of the latest write. Any thread, like the next.
    virtual Result<> healthy() const = 0;
    virtual StorageStats storage_stats() const = 0;

    // Rises with whatever is written but new jobs, before it can be seen and again after it: while
    // it is the same, all else reads the same, too. nullopt: others write here as well. Any thread.
    virtual std::optional<std::uint64_t> changes() const { return std::nullopt; }

    // What nodes that share it ask of it; nullptr: it is one node's alone.
    virtual jobs::SharedLedger* shared() { return nullptr; }
    virtual cluster::Leases* leases() { return nullptr; }
    virtual cluster::Roster* nodes() { return nullptr; }
};

struct OpenOptions {
    std::optional<ReadsApart> reads_apart{};
    std::string secret{};  // of nodes that share it; what they store sealed is sealed with it
    // Who is told of a change beside the job's own webhook, asked by the call that stores it;
    // outlives the storage. nullptr: nobody.
    const notify::Routing* routing = nullptr;
};

// "sqlite:PATH": a database file, which is made where it is absent. "postgres://…" or
// "postgresql://…": a database that nodes share. Code::config_invalid for other URLs; else as the
// implementation says. `clock` outlives it.
Result<std::unique_ptr<Storage>> open_storage(
    std::string_view url, const OpenOptions& options, Clock& clock
);

}  // namespace comfyd::ledger
