#include "ledger/sqlite/readers.hpp"

namespace comfyd::ledger::sqlite {
namespace {

// Small on purpose: another connection's commit empties it, and the system caches the file anyway.
constexpr char kSettings[] =
    "PRAGMA cache_size = -2048;PRAGMA temp_store = MEMORY;PRAGMA query_only = ON;"
    "PRAGMA trusted_schema = OFF";

}  // namespace

Result<> Readers::open() {
    return with([](Database& db) -> Result<> {
        constexpr static char kTouch[] = "SELECT count(*) FROM probes";
        return Query(db, kTouch).run();
    });
}

Result<std::unique_ptr<Database>> Readers::borrow() {
    {
        const Lock lock(mutex_);
        if (is_closed_) {
            return fail(Code::shutting_down, "comfyd is stopping; send the request again later");
        }
        if (!idle_.empty()) {
            auto db = std::move(idle_.back());
            idle_.pop_back();
            return db;
        }
    }
    auto db = Database::open(path_, Mode::read_only, busy_timeout_);
    if (!db) {
        return db;
    }
    if (auto set = (*db)->execute(kSettings); !set) {
        return fail(std::move(set.error()));
    }
    return db;
}

void Readers::give_back(std::unique_ptr<Database> db, bool is_broken) {
    const Lock lock(mutex_);
    if (!is_broken && !is_closed_) {
        idle_.push_back(std::move(db));
    }
}

void Readers::close() {
    const Lock lock(mutex_);
    is_closed_ = true;
    idle_.clear();
}

}  // namespace comfyd::ledger::sqlite
