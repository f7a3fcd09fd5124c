// Brings what SQLite's log holds into the database while commits go on, with a thread and a
// connection of its own: a checkpoint of 16 MB takes some ten milliseconds, for which nobody's
// commit should wait.
//
// Used by the writer's thread alone. The thread starts with the first checkpoint.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

#include "base/error.hpp"
#include "base/mutex.hpp"
#include "base/time.hpp"
#include "ledger/sqlite/database.hpp"

namespace comfyd::ledger::sqlite {

// Pages of the log that are in the database then. `mode`: SQLITE_CHECKPOINT_….
Result<int> checkpoint(Database& db, int mode);

class Checkpointer {
public:
    Checkpointer(std::filesystem::path database, Millis busy_timeout)
        : database_(std::move(database)), busy_timeout_(busy_timeout) {}
    ~Checkpointer() { stop(); }
    Checkpointer(const Checkpointer&) = delete;
    Checkpointer& operator=(const Checkpointer&) = delete;

    // REQUIRES: !is_busy().
    void begin();
    bool is_busy() const;
    void wait();
    // Of one that has ended since the last call.
    std::optional<Result<int>> take();
    void stop();

private:
    void run();
    Result<int> checkpoint_once();

    const std::filesystem::path database_;
    const Millis busy_timeout_;
    std::unique_ptr<Database> db_;  // the thread's

    mutable Mutex mutex_;
    Condition changed_;
    bool is_wanted_ COMFYD_GUARDED_BY(mutex_) = false;
    bool is_stopping_ COMFYD_GUARDED_BY(mutex_) = false;
    std::optional<Result<int>> ended_ COMFYD_GUARDED_BY(mutex_);
    std::thread thread_;
};

}  // namespace comfyd::ledger::sqlite
