// What a write operation works with while its batch is open. Lives on the writer thread for one
// transaction.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "base/error.hpp"
#include "base/time.hpp"
#include "ledger/sqlite/database.hpp"
#include "ledger/sqlite/rollups.hpp"

namespace comfyd::ledger::sqlite {

// Sums up by how much the counters of a batch change, so that each is written once per transaction.
class CounterChanges {
public:
    enum class Kind { jobs = 0, outbox = 1 };

    void add(Kind kind, std::string_view tenant, int state, std::int64_t by);
    Result<> write(Database& db) const;

private:
    std::map<std::tuple<int, std::string, int>, std::int64_t> changes_;
};

struct Session {
    Database& db;
    CounterChanges& counters;
    Rollups& rollups;
    Time now;
    std::int64_t& next_number;  // of the next job
};

}  // namespace comfyd::ledger::sqlite
