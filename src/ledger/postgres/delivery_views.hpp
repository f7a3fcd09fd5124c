// The outbox table as people look at it, and what they do with dead letters.
#pragma once

#include <optional>
#include <vector>

#include "ledger/postgres/batch.hpp"
#include "ledger/postgres/telling.hpp"
#include "notify/deliveries.hpp"

namespace comfyd::ledger::postgres {

inline constexpr int kDeliveriesLimitMax = 200;

// The page, and where those end that it was chosen of: it looks at no more than 10,000.
Statements list_deliveries(const notify::DeliveryQuery& query);
Result<notify::DeliveryPage> read_delivery_page(
    const std::vector<Rows>& answers, const notify::DeliveryQuery& query, const Telling& telling
);
Statement find_delivery(const notify::DeliveryKey& key);
Result<std::optional<notify::DeliveryView>> read_delivery(const Rows& rows, const Telling& telling);
// One row, one number: no more than `limit`.
Statement count_dead(const notify::DeadFilter& filter, int limit);

// Writes that tell how many rows they changed.
class CountedChange : public WriteOf<int> {
public:
    std::size_t bytes() const override { return 256; }
    bool join(Batch& batch) override {
        place_ = batch.add(statement(batch.at));
        return true;
    }
    void conclude(const Batch& batch) override {
        outcome.emplace(static_cast<int>(batch.answer(place_)[0].integer(0)));
    }

protected:
    virtual Statement statement(const Circumstances& at) const = 0;

private:
    std::size_t place_ = 0;
};

class ReplayDead final : public CountedChange {
public:
    ReplayDead(notify::DeadFilter filter, Time now, int limit)
        : filter_(std::move(filter)), now_(now), limit_(limit) {}

protected:
    Statement statement(const Circumstances& at) const override;

private:
    notify::DeadFilter filter_;
    Time now_;
    int limit_;
};

class PurgeDead final : public CountedChange {
public:
    PurgeDead(notify::DeadFilter filter, int limit) : filter_(std::move(filter)), limit_(limit) {}

protected:
    Statement statement(const Circumstances& at) const override;

private:
    notify::DeadFilter filter_;
    int limit_;
};

class GiveUpWaiting final : public CountedChange {
public:
    GiveUpWaiting(std::string endpoint, Time now, const std::string& why, int limit);

protected:
    Statement statement(const Circumstances& at) const override;

private:
    std::string endpoint_;
    Time now_;
    std::string why_;
    int limit_;
};

}  // namespace comfyd::ledger::postgres
