// What nodes ask of each other by way of the tables: arrivals, wishes, how far jobs have come.
#pragma once

#include <string>
#include <vector>

#include "jobs/shared_ledger.hpp"
#include "ledger/postgres/batch.hpp"

namespace comfyd::ledger::postgres {

inline constexpr int kArrivalLimitMax = 10'000;

// All arrivals whole, or at first only what tells whether they are known, and then those that are
// not.
Statements find_arrivals(const std::string& domain, const jobs::ArrivalCursor& after, int limit);
Result<jobs::ArrivalPage> read_arrivals(
    const std::vector<Rows>& answers, const jobs::ArrivalCursor& after, int limit
);
Statements glance_at_arrivals(
    const std::string& domain, const jobs::ArrivalCursor& after, int limit
);
struct ArrivalGlance {
    std::vector<jobs::Arrival> all;
    jobs::ArrivalCursor next;
    bool more = false;
};
ArrivalGlance read_glance(
    const std::vector<Rows>& answers, const jobs::ArrivalCursor& after, int limit
);
Statement find_arrived(const std::vector<JobId>& ids);
Result<std::vector<jobs::Unfinished>> read_arrived(const Rows& rows);

class AddWish final : public WriteOf<void> {
public:
    explicit AddWish(jobs::Wish wish) : wish_(std::move(wish)) {}
    std::size_t bytes() const override { return 256; }
    bool join(Batch& batch) override;
    void conclude(const Batch&) override { outcome.emplace(); }

private:
    jobs::Wish wish_;
};
class DropWishes final : public WriteOf<void> {
public:
    explicit DropWishes(std::vector<std::int64_t> ids) : ids_(std::move(ids)) {}
    std::size_t bytes() const override { return 64 + 8 * ids_.size(); }
    bool join(Batch& batch) override;
    void conclude(const Batch&) override { outcome.emplace(); }

private:
    std::vector<std::int64_t> ids_;
};
Statement find_wishes(const std::string& domain, int limit);
Result<jobs::Wish> read_wish(const Row& row);

Statement find_advanced(const std::vector<jobs::Heard>& heard);
std::vector<JobId> read_advanced(const Rows& rows);

}  // namespace comfyd::ledger::postgres
