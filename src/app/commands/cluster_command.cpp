#include "app/commands/cluster_command.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "app/commands/ask_server.hpp"
#include "app/commands/cli.hpp"
#include "comfy/members.hpp"

namespace comfyd::app {
namespace {

// In milliseconds.
constexpr std::int64_t kWorthTelling = 500;    // of a clock that is off
constexpr std::int64_t kMissedAfter = 15'000;  // three times as long as a node is silent

std::string whole(const json::object& from, std::string_view key) {
    return std::to_string(json::find_int(from, key).value_or(std::nullopt).value_or(0));
}

bool is_true(const json::object& from, std::string_view key) {
    return json::find_bool(from, key).value_or(std::nullopt).value_or(false);
}

const json::array& list_of(const json::object& from, std::string_view key) {
    static const json::array kNone;
    const json::array* found = json::find_array(from, key).value_or(nullptr);
    return found == nullptr ? kNone : *found;
}

// By its name, where it is on the list.
std::string node_name(const json::object& cluster, const std::string& id) {
    for (const json::value& node : list_of(cluster, "nodes")) {
        if (node.is_object() && comfy::text_of(node.get_object(), "id") == id) {
            return comfy::text_of(node.get_object(), "name");
        }
    }
    return id;
}

std::string print_domain(const json::object& cluster, const json::object& domain) {
    const std::string leader = comfy::text_of(domain, "leader");
    std::string line = "domain " + comfy::text_of(domain, "domain") + ": ";
    if (leader.empty()) {
        return line + "nobody leads\n";
    }
    line += "led by " + node_name(cluster, leader);
    return line + ", epoch " + whole(domain, "epoch") + ", " + whole(domain, "queued") +
           " jobs wait\n";
}

std::string seconds(std::int64_t ms) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f s", static_cast<double>(ms) / 1000);
    return text;
}

std::string print_node(const json::object& node) {
    std::string line = "node " + comfy::text_of(node, "name") + " (" + comfy::text_of(node, "id") +
                       "), version " + comfy::text_of(node, "version");
    line += is_true(node, "is_this_node") ? ": this one" : "";
    if (const json::object* leads = json::find_object(node, "leads").value_or(nullptr)) {
        for (const auto& lead : *leads) {
            line += ", leads " + std::string(lead.key());
            if (lead.value().is_object()) {
                line += " with a lag of " + whole(lead.value().get_object(), "lag_ms") + " ms";
            }
        }
    }
    const std::int64_t ahead = comfy::integer_of(node, "clock_ahead_ms");
    if (std::abs(ahead) >= kWorthTelling) {
        line += ", its clock is " + seconds(std::abs(ahead)) + (ahead > 0 ? " ahead" : " behind");
    }
    const std::int64_t seen = comfy::integer_of(node, "seen_ms_ago");
    line += seen > kMissedAfter ? ", NOT SEEN for " + seconds(seen) : "";
    return line + "\n";
}

}  // namespace

std::string print_cluster(const json::object& cluster) {
    if (!is_true(cluster, "clustered")) {
        return "this server is one process by itself\n";
    }
    std::string out;
    for (const json::value& node : list_of(cluster, "nodes")) {
        out += node.is_object() ? print_node(node.get_object()) : "";
    }
    for (const json::value& domain : list_of(cluster, "domains")) {
        out += domain.is_object() ? print_domain(cluster, domain.get_object()) : "";
    }
    if (const json::object* bus = json::find_object(cluster, "bus").value_or(nullptr)) {
        out += is_true(*bus, "up") ? "Redis answers\n"
                                   : "no Redis: " + comfy::text_of(*bus, "problem") +
                                         "; nodes look into the ledger instead\n";
    }
    return out;
}

int run_cluster(ClusterFlags flags) {
    const Asked asked = ask_server({flags.url, flags.key, "/admin/v1/cluster"});
    if (!asked.answer) {
        return asked.exit_code;
    }
    std::fputs(
        flags.json ? (asked.text + "\n").c_str() : print_cluster(*asked.answer).c_str(), stdout
    );
    return kExitOk;
}

}  // namespace comfyd::app
