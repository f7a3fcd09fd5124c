// The only connection that writes or checkpoints, and the thread that owns it.
//
// It takes what has queued up, runs it in one transaction with one fsync, and then resumes
// everybody who waited: one post per executor and batch. An operation that is refused (a conflict)
// does not disturb the others; a failure of storage fails the whole batch, leaves the database as
// it was, and is tried again with the next batch. The log is checkpointed while nobody waits, or
// when it grew too long. SQLite before 3.51.3 can corrupt a database when two connections
// checkpoint at once; here there is never a second.
//
// What is written behind waits until nothing else does, or some batches have gone before it; it is
// a transaction of its own.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/dependency.hpp"
#include "base/error.hpp"
#include "base/mutex.hpp"
#include "base/task.hpp"
#include "base/time.hpp"
#include "ledger/sqlite/checkpointer.hpp"
#include "ledger/sqlite/database.hpp"
#include "ledger/sqlite/log_room.hpp"
#include "ledger/sqlite/operation.hpp"
#include "ledger/sqlite_ledger.hpp"

namespace comfyd::ledger::sqlite {

inline constexpr std::size_t kBatchOperationsMax = 256;
inline constexpr std::size_t kBatchBytesMax = 8 * 1024 * 1024;
inline constexpr int kBatchesBeforeBehind = 8;
inline constexpr std::size_t kOperationBytesMax = 256 * 1024 * 1024;

class Writer {
public:
    Writer(const SqliteLedger::Options& options, Clock& clock);
    ~Writer();

    // Makes or migrates the database and starts the thread.
    Result<> open();
    // Finishes what is queued, checkpoints and closes. What comes later is answered with
    // Code::shutting_down.
    void stop();

    // Any thread. `may_refuse`: Code::queue_full when too much waits already.
    template <class Work>
    Task<Result<typename Work::Value>> write(Work work, bool may_refuse);
    template <class Work>
    Task<Result<typename Work::Value>> write_behind(Work work);

    std::uint64_t changes() const { return changes_.load(); }  // Storage::changes()
    StorageStats stats() const;
    Result<> healthy() const;

private:
    using Batch = std::vector<std::unique_ptr<Operation>>;

    enum class Urgency { now, now_or_refused, behind };

    template <class Work>
    Task<Result<typename Work::Value>> await_write(Work work, Urgency urgency);
    void enqueue(std::unique_ptr<Operation> operation, Urgency urgency);
    void run();
    bool wait_for_work(Batch& batch);
    void commit(Batch& batch);
    Result<> try_commit(Batch& batch);
    void note_outcome(const Batch& batch, const Result<>& outcome);
    Result<> connect();
    void probe();
    void checkpoint_if_long(bool is_idle);
    void take_checkpoint();
    std::uint64_t backlog() const;
    std::uint64_t log_bytes(int pages) const;
    void checkpoint_here(int mode);
    void note_checkpoint(const Result<int>& done);

    const SqliteLedger::Options options_;
    Clock& clock_;
    Dependency disk_;

    // Owned by the thread once it runs.
    std::unique_ptr<Database> db_;
    std::int64_t next_number_ = 1;
    Rollups rollups_;
    std::uint64_t page_bytes_ = 0;
    LogRoom log_room_;
    int log_pages_ = 0;           // in the log after the latest commit
    int checkpointed_pages_ = 0;  // of them already in the database
    Checkpointer checkpointer_;
    bool may_begin_anew_ = false;  // since the latest checkpoint, not tried yet

    std::atomic<std::uint64_t> changes_{1};
    mutable Mutex mutex_;
    Condition wake_;
    std::deque<std::unique_ptr<Operation>> queue_ COMFYD_GUARDED_BY(mutex_);
    std::size_t queue_bytes_ COMFYD_GUARDED_BY(mutex_) = 0;
    std::deque<std::unique_ptr<Operation>> behind_ COMFYD_GUARDED_BY(mutex_);
    int batches_before_behind_ COMFYD_GUARDED_BY(mutex_) = 0;  // since something waits there
    bool is_waiting_ COMFYD_GUARDED_BY(mutex_) = false;
    bool is_stopping_ COMFYD_GUARDED_BY(mutex_) = false;
    std::optional<Error> failure_ COMFYD_GUARDED_BY(mutex_);  // of the latest write
    StorageStats stats_ COMFYD_GUARDED_BY(mutex_);

    std::thread thread_;
};

template <class Work>
Task<Result<typename Work::Value>> Writer::write(Work work, bool may_refuse) {
    return await_write(std::move(work), may_refuse ? Urgency::now_or_refused : Urgency::now);
}

template <class Work>
Task<Result<typename Work::Value>> Writer::write_behind(Work work) {
    return await_write(std::move(work), Urgency::behind);
}

template <class Work>
Task<Result<typename Work::Value>> Writer::await_write(Work work, Urgency urgency) {
    // Asio hands on what is to be begun from frame to frame, and a job with its texts is large.
    auto boxed = std::make_unique<Work>(std::move(work));
    return await_operation<typename Work::Value>(
        [this, urgency, work = std::move(boxed)](Executor executor, auto handler) mutable {
            enqueue(
                std::make_unique<AwaitedOperation<Work, decltype(handler)>>(
                    executor, std::move(work), std::move(handler)
                ),
                urgency
            );
        }
    );
}

}  // namespace comfyd::ledger::sqlite
