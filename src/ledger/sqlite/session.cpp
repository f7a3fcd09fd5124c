#include "ledger/sqlite/session.hpp"

namespace comfyd::ledger::sqlite {
namespace {

constexpr char kAddToCounter[] =
    "INSERT INTO counters (kind, tenant, state, count) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (kind, tenant, state) DO UPDATE SET count = count + excluded.count";

}  // namespace

void CounterChanges::add(Kind kind, std::string_view tenant, int state, std::int64_t by) {
    changes_[{static_cast<int>(kind), std::string(tenant), state}] += by;
}

Result<> CounterChanges::write(Database& db) const {
    for (const auto& [key, by] : changes_) {
        if (by == 0) {
            continue;
        }
        const auto& [kind, tenant, state] = key;
        auto written = Query(db, kAddToCounter).bind(kind, tenant, state, by).run();
        if (!written) {
            return written;
        }
    }
    return {};
}

}  // namespace comfyd::ledger::sqlite
