#include "app/fleet_announcements.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace comfyd::app {
namespace {

constexpr std::string_view kPrefix = "fleet.";
constexpr std::string_view kAll = "fleet.*";

// By what the log says.
constexpr std::array kNames{
    std::pair("requested", "fleet.instance.requested"),
    std::pair("creating", "fleet.instance.creating"),
    std::pair("unclear", "fleet.instance.unclear"),
    std::pair("adopted", "fleet.instance.adopted"),
    std::pair("pulling", "fleet.instance.pulling"),
    std::pair("starting", "fleet.instance.starting"),
    std::pair("warming", "fleet.instance.warming"),
    std::pair("ready", "fleet.instance.ready"),
    std::pair("let_go", "fleet.instance.let_go"),
    std::pair("draining", "fleet.instance.draining"),
    std::pair("parked", "fleet.instance.parked"),
    std::pair("failing", "fleet.instance.failing"),
    std::pair("removing", "fleet.instance.removing"),
    std::pair("not_removed", "fleet.instance.not_removed"),
    std::pair("failed", "fleet.instance.failed"),
    std::pair("gone", "fleet.instance.removed"),
    std::pair("stray_removed", "fleet.stray.removed"),
    std::pair("resized", "fleet.pool.resized"),
    std::pair("paused", "fleet.pool.paused"),
    std::pair("resumed", "fleet.pool.resumed"),
    std::pair("scaled", "fleet.pool.scaled"),
    std::pair("budget_low", "fleet.budget.low"),
    std::pair("budget_spent", "fleet.budget.spent"),
    std::pair("out_of_stock", "fleet.provider.out_of_stock"),
    std::pair("refused", "fleet.provider.refused"),
    std::pair("provider_closed", "fleet.provider.closed"),
};

// One that a newer comfyd beside this one has noted is told to those who want all.
std::string name_of(const fleet::FleetEvent& event) {
    const auto found = std::ranges::find(kNames, event.what, [](const auto& name) {
        return std::string_view(name.first);
    });
    return found == kNames.end() ? std::string(kPrefix) + event.what : found->second;
}

const std::string& subject_of(const fleet::FleetEvent& event) {
    return !event.instance.empty()   ? event.instance
           : !event.pool.empty()     ? event.pool
           : !event.provider.empty() ? event.provider
                                     : event.tenant;
}

}  // namespace

std::vector<std::string> fleet_event_names() {
    std::vector<std::string> names{std::string(kAll)};
    for (const auto& [what, name] : kNames) {
        names.emplace_back(name);
    }
    return names;
}

bool wants_fleet(const jobs::Webhook& webhook) {
    return std::ranges::any_of(webhook.events, [](const std::string& event) {
        return event.starts_with(kPrefix);
    });
}

bool wants(const jobs::Webhook& webhook, const notify::Announcement& announcement) {
    return webhook.wants(announcement.event) || webhook.wants(kAll);
}

notify::Announcement announcement_of(const fleet::FleetEvent& event) {
    notify::Announcement told;
    // Numbers are those of a ledger: receivers may hear of several fleets of one name.
    told.id = "msg_fleet_" + event.fleet + "_" + std::to_string(event.number) + "_" +
              std::to_string(to_unix_ms(event.at));
    told.about = subject_of(event);
    told.event = name_of(event);
    told.at = event.at;
    told.source = "/admin/v1/fleet";
    told.body = {
        {"event", told.event},
        {"type", told.event},
        {"timestamp", to_rfc3339(event.at)},
        {"fleet", event.fleet},
        {"data",
         {{"number", event.number},
          {"what", event.what},
          {"why", event.why},
          {"pool", event.pool},
          {"instance", event.instance},
          {"provider", event.provider},
          {"tenant", event.tenant}}},
    };
    return told;
}

}  // namespace comfyd::app
