// What is told of something other than a change of one job: the end of a batch, a machine of the
// fleet. Plain values.
#pragma once

#include <string>

#include "base/json.hpp"
#include "base/time.hpp"

namespace comfyd::notify {

struct Announcement {
    std::string id;      // of the message; the same each time, and no other's
    std::string about;   // what it tells of
    std::string event;   // "batch.completed"
    Time at{};           // when that happened
    std::string source;  // "/v2/batches": where more is to be had
    json::object body;   // the same each time
};

}  // namespace comfyd::notify
