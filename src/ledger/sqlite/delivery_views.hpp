// The outbox table as people look at it, and what they do with dead letters.
#pragma once

#include <optional>

#include "ledger/sqlite/session.hpp"
#include "notify/deliveries.hpp"

namespace comfyd::ledger::sqlite {

inline constexpr int kDeliveriesLimitMax = 200;
// A page looks at no more rows than these.
inline constexpr int kDeliveriesLookedAtMax = 10'000;

Result<notify::DeliveryPage> list_deliveries(Database& db, const notify::DeliveryQuery& query);
Result<std::optional<notify::DeliveryView>> find_delivery(
    Database& db, const notify::DeliveryKey& key
);
// How many match, up to `limit`.
Result<int> count_dead(Database& db, const notify::DeadFilter& filter, int limit);

struct ReplayDead {
    using Value = int;
    notify::DeadFilter filter;
    Time now;
    int limit;

    std::size_t bytes() const { return 128; }
    Result<int> operator()(Session& session);
};
struct PurgeDead {
    using Value = int;
    notify::DeadFilter filter;
    int limit;

    std::size_t bytes() const { return 128; }
    Result<int> operator()(Session& session);
};

}  // namespace comfyd::ledger::sqlite
