#include "ledger/sqlite/writer.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <exception>
#include <string>

#include "base/log.hpp"
#include "ledger/sqlite/schema.hpp"

namespace comfyd::ledger::sqlite {
namespace {

constexpr int kPageBytes = 8 * 1024;
constexpr std::uint64_t kFrameHeadBytes = 24;
constexpr std::uint64_t kLittle = 1024 * 1024;  // of the log, takes about a millisecond
constexpr char kPageSize[] = "PRAGMA page_size";
constexpr char kAutoVacuum[] = "PRAGMA auto_vacuum";
constexpr char kPageCount[] = "PRAGMA page_count";
constexpr std::int64_t kRewrittenBytesMax = 64LL * 1024 * 1024;
constexpr char kLastNumber[] = "SELECT max(number) FROM job_details";
constexpr char kWriteProbe[] = "INSERT OR REPLACE INTO probes (id, at) VALUES (1, ?)";

// page_size and auto_vacuum only take effect on a new database. The log file is kept at most this
// long between uses, because overwriting is faster than appending.
std::string settings(const SqliteLedger::Options& options) {
    std::string script =
        "PRAGMA page_size = " + std::to_string(kPageBytes) +
        ";PRAGMA auto_vacuum = INCREMENTAL;PRAGMA journal_mode = WAL;PRAGMA synchronous = "
        "FULL;PRAGMA cache_size = -8192;"
        "PRAGMA temp_store = MEMORY;PRAGMA trusted_schema = OFF;PRAGMA journal_size_limit = " +
        std::to_string(options.wal_bytes_max);
    if (options.database_bytes_max > 0) {
        const auto pages = std::max<std::uint64_t>(1, options.database_bytes_max / kPageBytes);
        script += ";PRAGMA max_page_count = " + std::to_string(pages);
    }
    return script;
}

// A database from before pages were given back is rewritten once, where that is quick; a larger one
// uses its free pages again and stays as long as it is (docs/operations.md).
Result<> make_shrinkable(Database& db) {
    const auto vacuum = db.integer(kAutoVacuum);
    if (!vacuum) {
        return fail(vacuum.error());
    }
    const auto pages = db.integer(kPageCount);
    if (!pages) {
        return fail(pages.error());
    }
    const bool is_quick = *pages * kPageBytes <= kRewrittenBytesMax;
    return *vacuum == 0 && is_quick ? db.execute("VACUUM") : Result<>();
}

std::uint64_t begin_anew_above(const SqliteLedger::Options& options) {
    return std::min(4 * options.wal_bytes_soft, options.wal_bytes_max / 2);
}

int keep_log_length(void* into, sqlite3*, const char*, int pages) {
    *static_cast<int*>(into) = pages;
    return SQLITE_OK;
}

}  // namespace

Writer::Writer(const SqliteLedger::Options& options, Clock& clock)
    : options_(options),
      clock_(clock),
      disk_(
          "ledger",
          {.failures = 1, .open_first = options.probe_interval, .open_max = options.probe_interval}
      ),
      log_room_(options.path.string() + "-wal", begin_anew_above(options) + options.wal_bytes_soft),
      checkpointer_(options.path, options.busy_timeout) {}

Writer::~Writer() {
    stop();
}

Result<> Writer::open() {
    if (auto connected = connect(); !connected) {
        return connected;
    }
    thread_ = std::thread([this] { run(); });
    return {};
}

void Writer::stop() {
    {
        const Lock lock(mutex_);
        is_stopping_ = true;
    }
    wake_.notify_one();
    if (thread_.joinable()) {
        thread_.join();
    }
}

Result<> Writer::connect() {
    auto db = Database::open(options_.path, Mode::read_write, options_.busy_timeout);
    if (!db) {
        return fail(std::move(db.error()));
    }
    if (auto set = (*db)->execute(settings(options_)); !set) {
        return set;
    }
    if (auto migrated = migrate(**db, migrations()); !migrated) {
        return migrated;
    }
    if (auto made = make_shrinkable(**db); !made) {
        return made;
    }
    if (auto prepared = Rollups::prepare(**db); !prepared) {
        return prepared;
    }
    const auto last = (*db)->integer(kLastNumber);
    if (!last) {
        return fail(last.error());
    }
    next_number_ = *last + 1;
    const auto page_bytes = (*db)->integer(kPageSize);
    if (!page_bytes) {
        return fail(page_bytes.error());
    }
    page_bytes_ = static_cast<std::uint64_t>(*page_bytes);
    log_pages_ = 0;
    checkpointed_pages_ = 0;
    // Takes the place of SQLite's own hook, which would checkpoint inside a commit.
    sqlite3_wal_hook((*db)->handle(), keep_log_length, &log_pages_);
    db_ = std::move(*db);
    return {};
}

void Writer::enqueue(std::unique_ptr<Operation> operation, Urgency urgency) {
    std::optional<Error> refusal;
    {
        const Lock lock(mutex_);
        const std::size_t bytes = operation->bytes();
        if (is_stopping_) {
            refusal =
                Error(Code::shutting_down, "comfyd is stopping; send the request again later");
        } else if (bytes > kOperationBytesMax) {
            refusal = Error(
                Code::payload_too_large,
                "a record of " + std::to_string(bytes) +
                    " bytes is too large to store; the limit is " +
                    std::to_string(kOperationBytesMax)
            );
        } else if (urgency == Urgency::now_or_refused && queue_bytes_ > 0 &&
                   queue_bytes_ + bytes > options_.queue_bytes_max) {
            refusal =
                Error(Code::queue_full, "too many jobs wait to be stored; try again in a second");
        } else {
            if (urgency == Urgency::behind) {
                behind_.push_back(std::move(operation));
            } else {
                queue_bytes_ += bytes;
                queue_.push_back(std::move(operation));
            }
            if (is_waiting_) {
                is_waiting_ = false;
                wake_.notify_one();
            }
        }
    }
    if (refusal) {
        operation->set_failed(*refusal);
        Batch batch;
        batch.push_back(std::move(operation));
        resume_all(std::move(batch));
    }
}

void Writer::run() {
    Batch batch;
    while (wait_for_work(batch)) {
        if (batch.empty()) {
            probe();
            continue;
        }
        commit(batch);
        resume_all(std::exchange(batch, {}));
        checkpoint_if_long(false);
    }
    checkpointer_.stop();
    if (db_ && log_pages_ > 0) {
        checkpoint_here(SQLITE_CHECKPOINT_TRUNCATE);
    }
    db_.reset();
}

// False when stopping and nothing is left. An empty batch: the latest write failed some time ago.
bool Writer::wait_for_work(Batch& batch) {
    Lock lock(mutex_);
    if (queue_.empty() && !is_stopping_) {
        lock.unlock();
        checkpoint_if_long(true);
        log_room_.make(log_bytes(log_pages_));
        lock.lock();
    }
    const auto ready = [this]() COMFYD_REQUIRES(mutex_) {
        return !queue_.empty() || !behind_.empty() || is_stopping_;
    };
    is_waiting_ = true;
    if (failure_) {
        wake_.wait_for(lock, options_.probe_interval, ready);
    } else {
        wake_.wait(lock, ready);
    }
    is_waiting_ = false;
    if (!behind_.empty() && (queue_.empty() || ++batches_before_behind_ > kBatchesBeforeBehind)) {
        batches_before_behind_ = 0;
        batch.push_back(std::move(behind_.front()));
        behind_.pop_front();
        return true;
    }
    std::size_t bytes = 0;
    while (!queue_.empty() && batch.size() < kBatchOperationsMax && bytes < kBatchBytesMax) {
        bytes += queue_.front()->bytes();
        batch.push_back(std::move(queue_.front()));
        queue_.pop_front();
    }
    queue_bytes_ -= bytes;
    return !batch.empty() || !is_stopping_;
}

void Writer::commit(Batch& batch) {
    const bool only_adds =
        std::ranges::all_of(batch, [](const auto& operation) { return operation->only_adds(); });
    changes_ += only_adds ? 0 : 1;
    Result<> outcome;
    try {
        outcome = try_commit(batch);
    } catch (const std::exception& exception) {
        outcome = fail(
            Code::storage_unavailable,
            std::string("cannot write to the database: ") + exception.what()
        );
    }
    changes_ += only_adds ? 0 : 1;
    if (!outcome) {
        for (const auto& operation : batch) {
            operation->set_failed(outcome.error());
        }
        // A connection that met anything but a full disk may be in a state that we cannot know.
        if (outcome.error().code != Code::storage_full) {
            db_.reset();
        }
    }
    note_outcome(batch, outcome);
}

Result<> Writer::try_commit(Batch& batch) {
    if (!db_) {
        if (auto connected = connect(); !connected) {
            return connected;
        }
    }
    auto transaction = Transaction::begin(*db_);
    if (!transaction) {
        return fail(std::move(transaction.error()));
    }
    CounterChanges counters;
    rollups_.clear();
    Session session{*db_, counters, rollups_, clock_.now(), next_number_};
    for (const auto& operation : batch) {
        if (auto executed = operation->execute(session); !executed) {
            return executed;
        }
    }
    if (auto written = counters.write(*db_); !written) {
        return written;
    }
    if (auto written = rollups_.write(*db_, session.now); !written) {
        return written;
    }
    return (*transaction)->commit();
}

void Writer::note_outcome(const Batch& batch, const Result<>& outcome) {
    const auto now = std::chrono::steady_clock::now();
    outcome ? disk_.succeeded() : disk_.failed();
    bool is_new_failure = false;
    bool is_recovered = false;
    {
        const Lock lock(mutex_);
        if (outcome) {
            is_recovered = failure_.has_value();
            failure_.reset();
            stats_.batches += 1;
            stats_.commits += batch.size();
            stats_.last_batch_size = batch.size();
            for (const auto& operation : batch) {
                stats_.latency.add(now - operation->made_at());
            }
        } else {
            is_new_failure = !failure_ || failure_->code != outcome.error().code;
            failure_ = outcome.error();
            stats_.failed_batches += 1;
        }
        stats_.wal_bytes = log_bytes(log_pages_);
    }
    if (is_new_failure) {
        log::error(
            "the ledger cannot write",
            {{"code", to_string(outcome.error().code)}, {"error", outcome.error().message}}
        );
    } else if (is_recovered) {
        log::info("the ledger can write again");
    }
}

void Writer::probe() {
    const auto attempt = [this]() -> Result<> {
        if (!db_) {
            if (auto connected = connect(); !connected) {
                return connected;
            }
        }
        return Query(*db_, kWriteProbe).bind(clock_.now()).run();
    };
    const auto outcome = attempt();
    if (!outcome && outcome.error().code != Code::storage_full) {
        db_.reset();
    }
    note_outcome({}, outcome);
}

// Beside the commits. The log only begins anew where all of it is in the database, which beside
// commits is never so: the rest is brought there while nobody waits, at once where it is little and
// else now and then. A short log is quicker: it stays in the processor's caches.
void Writer::checkpoint_if_long(bool is_idle) {
    if (!db_) {
        return;
    }
    take_checkpoint();
    if (backlog() > options_.wal_bytes_max) {
        checkpointer_.wait();
        take_checkpoint();
        checkpoint_here(SQLITE_CHECKPOINT_RESTART);
    } else if (checkpointer_.is_busy()) {
        return;
    } else if (backlog() > options_.wal_bytes_soft) {
        checkpointer_.begin();
    } else if (is_idle && may_begin_anew_ &&
               (backlog() <= kLittle || log_bytes(log_pages_) > begin_anew_above(options_))) {
        may_begin_anew_ = false;
        checkpoint_here(SQLITE_CHECKPOINT_PASSIVE);
    }
}

void Writer::take_checkpoint() {
    if (const auto ended = checkpointer_.take()) {
        may_begin_anew_ = ended->has_value();
        note_checkpoint(*ended);
    }
    if (log_pages_ < checkpointed_pages_) {
        checkpointed_pages_ = 0;  // the log was begun anew
    }
}

std::uint64_t Writer::backlog() const {
    return log_bytes(log_pages_ - checkpointed_pages_);
}

std::uint64_t Writer::log_bytes(int pages) const {
    return static_cast<std::uint64_t>(pages) * (page_bytes_ + kFrameHeadBytes);
}

void Writer::checkpoint_here(int mode) {
    note_checkpoint(checkpoint(*db_, mode));
}

void Writer::note_checkpoint(const Result<int>& done) {
    if (!done) {
        log::warning("the ledger's log was not checkpointed", {{"error", done.error().message}});
    }
    // Also after a failure: the next attempt waits until as much has come again.
    checkpointed_pages_ = done ? *done : log_pages_;
    const Lock lock(mutex_);
    stats_.checkpoints += 1;
}

StorageStats Writer::stats() const {
    const Lock lock(mutex_);
    StorageStats stats = stats_;
    stats.queue_depth = queue_.size();
    stats.breaker = disk_.state();
    return stats;
}

Result<> Writer::healthy() const {
    const Lock lock(mutex_);
    if (failure_) {
        return fail(*failure_);
    }
    return {};
}

}  // namespace comfyd::ledger::sqlite
