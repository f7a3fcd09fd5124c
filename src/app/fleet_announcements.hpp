// What operators' endpoints are told of the fleet: its events, under names of their own. Pure; any
// thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fleet/instances/store.hpp"
#include "jobs/job.hpp"
#include "notify/announcement.hpp"

namespace comfyd::app {

// What an endpoint may ask for: "fleet.instance.ready" and the others, and "fleet.*" for all.
std::vector<std::string> fleet_event_names();
// Of any of them.
bool wants_fleet(const jobs::Webhook& webhook);
bool wants(const jobs::Webhook& webhook, const notify::Announcement& announcement);

notify::Announcement announcement_of(const fleet::FleetEvent& event);

}  // namespace comfyd::app
