// Durable storage in one SQLite file: jobs, asset records, webhook deliveries and named workflows.
//
// Owned by the program's wiring; outlives everything that uses it, and every executor that awaits
// it outlives it. Writes are grouped: a thread of its own commits whatever has queued up with one
// fsync (synchronous=FULL), then resumes all who waited, each on its own executor. Reads run at
// once on the calling thread, but for that of reads_apart, and see every write that returned before
// them. After a failure of storage nothing is half-written, reads go on, and the next write is
// tried again.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "assets/store.hpp"
#include "base/error.hpp"
#include "base/task.hpp"
#include "base/time.hpp"
#include "jobs/ledger.hpp"
#include "jobs/notebook.hpp"
#include "jobs/workflow_store.hpp"
#include "notify/outbox.hpp"

namespace comfyd {
class Pool;
}

namespace comfyd::ledger {

class SqliteLedger final : public jobs::Ledger,
                           public jobs::WorkflowStore,
                           public jobs::Notebook,
                           public assets::Catalogue,
                           public notify::Outbox {
public:
    struct Options {
        std::filesystem::path
            path;  // of the database file; its folder is made when absent (mode 0700)
        std::uint64_t database_bytes_max = 0;  // 0: as large as the disk; else Code::storage_full
        std::uint64_t wal_bytes_soft = 16ULL * 1024 * 1024;  // checkpoint above it when idle
        std::uint64_t wal_bytes_max = 128ULL * 1024 * 1024;  // checkpoint above it in any case
        std::size_t queue_bytes_max =
            64ULL * 1024 * 1024;       // of writes that wait; new jobs above it: Code::queue_full
        Millis probe_interval{1'000};  // between attempts to write after a failure
        Millis busy_timeout{5'000};    // for other programs that hold the file, such as a backup
        // An executor that waits for no disk: what is read there is read on the pool.
        struct ReadsApart {
            Executor of;
            Pool* pool;  // outlives the ledger's users
        };
        std::optional<ReadsApart> reads_apart{};
    };

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
    struct Stats {
        std::uint64_t commits = 0;  // operations made durable
        std::uint64_t batches = 0;  // transactions, and fsyncs
        std::uint64_t failed_batches = 0;
        std::uint64_t last_batch_size = 0;
        std::uint64_t queue_depth = 0;
        std::uint64_t wal_bytes = 0;
        std::uint64_t checkpoints = 0;
        Latency latency;
    };

    // Makes, migrates or recovers the database. Code::storage_unavailable (also when another
    // process uses the folder), Code::storage_full, Code::schema_too_new. `clock` outlives the
    // ledger.
    static Result<std::unique_ptr<SqliteLedger>> open(Options options, Clock& clock);
    // Finishes what is queued, checkpoints and closes.
    ~SqliteLedger() override;

    // As the destructor, but the object stays: later calls answer Code::shutting_down. Blocks; not
    // on an executor whose reads are in progress on other threads.
    void stop();

    Stats stats() const;       // any thread
    Result<> healthy() const;  // outcome of the latest write; while it failed, one is tried every
                               // probe_interval. Any thread

    Task<Result<jobs::Accepted>> accept(jobs::NewJob job) override;
    Task<Result<jobs::Accepted>> find_key(std::string tenant, std::string key) override;
    Task<Result<std::optional<jobs::Job>>> find_reusable(std::string tenant, std::string reuse_key)
        override;
    Task<Result<>> commit(jobs::Change change) override;
    Task<Result<std::optional<jobs::Job>>> find(JobId id) override;
    Task<Result<std::optional<jobs::Spec>>> find_spec(JobId id) override;
    // A page may end early, with a cursor, when the filter matches very little of what there is.
    Task<Result<jobs::Page>> list(jobs::ListQuery query) override;
    Task<Result<std::vector<jobs::Event>>> events(JobId id, std::uint64_t after) override;
    Task<Result<jobs::WebhookStatus>> webhook_status(JobId id) override;
    Task<Result<jobs::StateCounts>> counts(std::optional<std::string> tenant) override;
    Task<Result<jobs::Stats>> stats(jobs::StatsQuery query) override;
    Task<Result<std::vector<jobs::Unfinished>>> unfinished(std::optional<JobId> after, int limit)
        override;
    Task<Result<jobs::Purged>> purge(Time before, int limit) override;
    Task<Result<>> discard(JobId id) override;

    Task<Result<jobs::WorkflowSaved>> save_workflow(jobs::WorkflowSave save) override;
    Task<Result<std::optional<jobs::NamedWorkflow>>> find_workflow(jobs::WorkflowName of) override;
    Task<Result<std::optional<jobs::WorkflowVersion>>> find_workflow_version(
        jobs::WorkflowName of, int version
    ) override;
    Task<Result<jobs::WorkflowPage>> list_workflows(
        std::string tenant, std::string after, int limit
    ) override;
    Task<Result<jobs::WorkflowVersionPage>> list_workflow_versions(
        jobs::WorkflowName of, std::optional<int> before, int limit
    ) override;
    Task<Result<jobs::NamedWorkflow>> set_workflow_label(
        jobs::WorkflowName of,
        std::string label,
        std::optional<int> version,
        std::optional<std::string> expected_tag
    ) override;
    Task<Result<jobs::NamedWorkflow>> remove_workflow_version(
        jobs::WorkflowName of, int version, std::optional<std::string> expected_tag
    ) override;
    Task<Result<>> remove_workflow(jobs::WorkflowName of, std::optional<std::string> expected_tag)
        override;

    Task<Result<>> write_note(std::string name, std::string text) override;
    Task<Result<std::optional<std::string>>> read_note(std::string name) override;

    Task<Result<>> add(assets::Asset asset) override;
    Task<Result<std::optional<assets::Asset>>> find(AssetId id) override;
    Task<Result<std::optional<assets::Asset>>> find_by_hash(std::string tenant, std::string hash)
        override;
    Task<Result<bool>> remove(AssetId id) override;
    Task<Result<bool>> is_referenced(std::string hash) override;
    Task<Result<std::optional<std::string>>> kept_bytes(std::string hash) override;
    Task<Result<std::vector<assets::Asset>>> expired(Time now, int limit) override;
    std::vector<std::string> take_loose() override;

    Task<Result<std::vector<notify::Delivery>>> due(Time now, int limit) override;
    Task<Result<std::optional<Time>>> next_due() override;
    Task<Result<>> delivered(notify::Delivery delivery, Time now) override;
    Task<Result<>> retry_at(notify::Delivery delivery, Time next_attempt_at, std::string error)
        override;
    Task<Result<>> put_aside(notify::Delivery delivery, Time next_attempt_at, std::string why)
        override;
    Task<Result<>> give_up(notify::Delivery delivery, Time now, std::string error) override;
    Task<Result<notify::Outbox::Counts>> counts() override;

private:
    class Impl;
    explicit SqliteLedger(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace comfyd::ledger
