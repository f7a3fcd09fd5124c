// Jobs and their events as JSON between nodes. Everything but the bytes of small outputs and of
// previews is in it.
#pragma once

#include "base/error.hpp"
#include "base/json.hpp"
#include "jobs/job.hpp"

namespace comfyd::cluster {

json::object to_json(const jobs::Job& job);
// Code::protocol_error.
Result<jobs::Job> job_from_json(const json::object& from);

json::object to_json(const jobs::Event& event);
// Code::protocol_error.
Result<jobs::Event> event_from_json(const json::object& from);

}  // namespace comfyd::cluster
