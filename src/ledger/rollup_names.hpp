// Keeps the number of rows of an hour bounded: of a tenant that names more workflows than
// kRollupWorkflowsMax the others share one row. Lives on the writer's thread as long as the writer.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>

#include "jobs/stats.hpp"

namespace comfyd::ledger {

inline constexpr std::size_t kRollupWorkflowsMax = 200;  // of a tenant in an hour
inline constexpr char kRollupOthers[] = "(others)";

class RollupNames {
public:
    // True when an hour has begun.
    bool bound(jobs::StatsKey& key) {
        const bool is_new_hour = key.hour != hour_;
        if (is_new_hour) {
            hour_ = key.hour;
            known_.clear();
        }
        if (!key.workflow.empty()) {
            auto& known = known_[key.tenant];
            if (known.size() < kRollupWorkflowsMax) {
                known.insert(key.workflow);
            } else if (!known.contains(key.workflow)) {
                key.workflow = kRollupOthers;
            }
        }
        return is_new_hour;
    }

private:
    Time hour_{};                                         // that known_ is of
    std::map<std::string, std::set<std::string>> known_;  // workflows by tenant
};

}  // namespace comfyd::ledger
