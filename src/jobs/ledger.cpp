#include "jobs/ledger.hpp"

namespace comfyd::jobs {

Task<Result<std::optional<Stamp>>> Ledger::stamp(JobId) {
    co_return std::optional<Stamp>();
}

}  // namespace comfyd::jobs
