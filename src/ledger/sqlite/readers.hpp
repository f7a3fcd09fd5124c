// Read-only connections. A read borrows one for its duration, so there are as many as threads ever
// read at once, and each keeps its prepared statements. Any thread.
#pragma once

#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/mutex.hpp"
#include "base/time.hpp"
#include "ledger/sqlite/database.hpp"

namespace comfyd::ledger::sqlite {

class Readers {
public:
    Readers(std::filesystem::path path, Millis busy_timeout)
        : path_(std::move(path)), busy_timeout_(busy_timeout) {}

    // Makes the first connection. While it is there, SQLite's index of the log stays in memory, and
    // frames of a commit that failed cannot be taken for good ones when the writer connects anew.
    Result<> open();
    // Runs `read(Database&)`, which returns a Result, on the calling thread.
    template <class Read>
    auto with(Read read) -> decltype(read(std::declval<Database&>())) {
        auto db = borrow();
        if (!db) {
            return fail(std::move(db.error()));
        }
        auto outcome = read(**db);
        give_back(std::move(*db), !outcome && outcome.error().code == Code::storage_unavailable);
        return outcome;
    }
    void close();

private:
    Result<std::unique_ptr<Database>> borrow();
    void give_back(std::unique_ptr<Database> db, bool is_broken);

    const std::filesystem::path path_;
    const Millis busy_timeout_;
    Mutex mutex_;
    std::vector<std::unique_ptr<Database>> idle_ COMFYD_GUARDED_BY(mutex_);
    bool is_closed_ COMFYD_GUARDED_BY(mutex_) = false;
};

}  // namespace comfyd::ledger::sqlite
