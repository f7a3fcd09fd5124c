// Who is told of an event beside the job's own webhook, in the texts that the outbox keeps.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "jobs/job.hpp"
#include "notify/routing.hpp"

namespace comfyd::ledger {

struct ToldTo {
    std::string endpoint;
    std::string target;
};

// Made on the thread of whoever writes, by the routes that hold then; nullptr: there are none.
inline std::vector<ToldTo> told_to(
    const notify::Routing* routing, const jobs::Job& job, const jobs::Event& event
) {
    std::vector<ToldTo> told;
    if (routing != nullptr && event.is_durable()) {
        for (const notify::Recipient& one : routing->now()->of(job, event)) {
            told.push_back({one.endpoint, notify::encode_target(one.target)});
        }
    }
    return told;
}

}  // namespace comfyd::ledger
