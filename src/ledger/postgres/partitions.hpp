// Tables by job are split by weeks. Whoever finds a coming week without its part makes it, and
// drops those of weeks that have passed and that a purge has emptied.
#pragma once

#include <string>
#include <vector>

#include "base/time.hpp"
#include "ledger/postgres/procedure.hpp"

namespace comfyd::ledger::postgres {

inline constexpr int kWeeksAhead = 2;

// The beginning of the week that it lies in: a Monday.
Time week_of(Time time);

// The name of its part of jobs.
std::string jobs_part(Time week);
// What makes the parts of a week.
std::vector<std::string> make_week(Time week, bool moves);

// One week in a step. True: there may be more to do.
class TendPartitions final : public ProcedureOf<bool> {
public:
    Task<Done> run(Transaction& transaction) override;

private:
    Task<Done> make(Transaction& transaction, Time week);
    Task<Done> drop_empty(Transaction& transaction, std::vector<std::string> weeks);
};

}  // namespace comfyd::ledger::postgres
