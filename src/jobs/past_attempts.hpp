// The attempts of a job, as its stored events tell of them: what they ran on, how they ended and
// why. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "jobs/job.hpp"

namespace comfyd::jobs {

struct PastAttempt {
    int number = 0;
    std::string worker;
    Time started_at{};
    std::optional<Time> ended_at{};    // nullopt: it goes on
    std::optional<Failure> failure{};  // nullopt: it goes on, or did not fail
    std::optional<Time> retry_at{};    // set: another one was to follow
    bool is_of_this_life = true;       // since somebody last brought the job back

    // {"attempt","worker","started_at","ended_at","cause","code","message","node_id","retry_at"}
    json::object to_json() const;
};

// The oldest first.
std::vector<PastAttempt> past_attempts(const std::vector<Event>& events);

}  // namespace comfyd::jobs
