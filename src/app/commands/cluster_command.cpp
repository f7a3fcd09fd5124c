#include "app/commands/cluster_command.hpp"

#include <cstdio>
#include <utility>

#include "app/commands/ask_server.hpp"
#include "app/commands/cli.hpp"
#include "comfy/members.hpp"

namespace comfyd::app {
namespace {

std::string whole(const json::object& from, std::string_view key) {
    return std::to_string(json::find_int(from, key).value_or(std::nullopt).value_or(0));
}

bool is_true(const json::object& from, std::string_view key) {
    return json::find_bool(from, key).value_or(std::nullopt).value_or(false);
}

std::string print_domain(const json::object& domain) {
    const std::string leader = comfy::text_of(domain, "leader");
    std::string line = "domain " + comfy::text_of(domain, "domain") + ": ";
    if (leader.empty()) {
        return line + "nobody leads\n";
    }
    line += "led by " + (is_true(domain, "is_this_node") ? "this node" : "node " + leader);
    return line + ", epoch " + whole(domain, "epoch") + ", " + whole(domain, "queued") +
           " jobs wait\n";
}

}  // namespace

std::string print_cluster(const json::object& cluster) {
    if (!is_true(cluster, "clustered")) {
        return "this server is one process by itself\n";
    }
    std::string out;
    if (const json::object* node = json::find_object(cluster, "node").value_or(nullptr)) {
        out += "node " + comfy::text_of(*node, "name") + " (" + comfy::text_of(*node, "id") +
               "), version " + comfy::text_of(*node, "version") + "\n";
    }
    const json::array* domains = json::find_array(cluster, "domains").value_or(nullptr);
    for (const json::value& domain : domains == nullptr ? json::array() : *domains) {
        if (domain.is_object()) {
            out += print_domain(domain.get_object());
        }
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
