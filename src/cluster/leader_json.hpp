// What is asked of a leader and what it answers, as JSON between nodes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "jobs/leader.hpp"

namespace comfyd::cluster {

json::object to_json(const jobs::LedJob& job);
std::optional<jobs::LedJob> led_job_from_json(const json::value& from);

json::object to_json(const jobs::Forecast::Live& live);
jobs::Forecast::Live live_from_json(const json::object& from);

json::object to_json(const jobs::Waiting& waiting);
// What a node of another version tells of a queue may not be understood, and is left out.
jobs::Waiting waiting_from_json(const json::object& from);

json::object to_json(const jobs::Load& load);
jobs::Load load_from_json(const json::object& from);

json::object to_json(const jobs::WorkerInfo& worker);
jobs::WorkerInfo worker_from_json(const json::object& from);

}  // namespace comfyd::cluster
