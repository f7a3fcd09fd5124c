#include "ledger/sqlite/checkpointer.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <utility>

namespace comfyd::ledger::sqlite {

Result<int> checkpoint(Database& db, int mode) {
    int in_log = 0;
    int done = 0;
    const int result = sqlite3_wal_checkpoint_v2(db.handle(), nullptr, mode, &in_log, &done);
    if (result != SQLITE_OK && result != SQLITE_BUSY) {
        return fail(db.error(result, "checkpoint"));
    }
    return std::max(0, done);
}

void Checkpointer::begin() {
    {
        const Lock lock(mutex_);
        is_wanted_ = true;
    }
    if (!thread_.joinable()) {
        thread_ = std::thread([this] { run(); });
    }
    changed_.notify_all();
}

bool Checkpointer::is_busy() const {
    const Lock lock(mutex_);
    return is_wanted_;
}

void Checkpointer::wait() {
    Lock lock(mutex_);
    changed_.wait(lock, [this]() COMFYD_REQUIRES(mutex_) { return !is_wanted_; });
}

std::optional<Result<int>> Checkpointer::take() {
    const Lock lock(mutex_);
    return std::exchange(ended_, std::nullopt);
}

void Checkpointer::stop() {
    {
        const Lock lock(mutex_);
        is_stopping_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) {
        thread_.join();
    }
    db_.reset();
}

void Checkpointer::run() {
    Lock lock(mutex_);
    const auto has_to_do = [this]() COMFYD_REQUIRES(mutex_) { return is_wanted_ || is_stopping_; };
    changed_.wait(lock, has_to_do);
    while (!is_stopping_) {
        lock.unlock();
        auto ended = checkpoint_once();
        lock.lock();
        ended_ = std::move(ended);
        is_wanted_ = false;
        changed_.notify_all();
        changed_.wait(lock, has_to_do);
    }
}

Result<int> Checkpointer::checkpoint_once() {
    if (!db_) {
        auto opened = Database::open(database_, Mode::read_write, busy_timeout_);
        if (!opened) {
            return fail(std::move(opened.error()));
        }
        db_ = std::move(*opened);
    }
    auto done = checkpoint(*db_, SQLITE_CHECKPOINT_PASSIVE);
    if (!done) {
        db_.reset();
    }
    return done;
}

}  // namespace comfyd::ledger::sqlite
