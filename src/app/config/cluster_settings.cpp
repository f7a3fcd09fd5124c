#include "app/config/setting_kinds.hpp"

namespace comfyd::app {

std::vector<Setting> cluster_settings() {
    return {
        address(
            "ledger",
            "postgres://…: the database that several nodes share; empty: a file in the data "
            "folder.",
            &Config::ledger
        ),
        address(
            "events",
            "redis://…, rediss://… or redis+sentinel://…: over it nodes tell each other at once.",
            &Config::events
        ),
        text("cluster.name", "Prefix of what the nodes use in Redis.", &Config::cluster_name),
        text(
            "cluster.node",
            "How this node is shown; empty: its host and process.",
            &Config::cluster_node
        ),
        secret(
            "cluster.secret",
            "What nodes seal secrets and sign links with: the same text, of 32 characters or more, "
            "on each.",
            &Config::cluster_secret
        ),
        text(
            "cluster.files",
            "Folder for assets that all nodes see; empty: the one in the data folder.",
            &Config::cluster_files
        ),
        words(
            "cluster.domains",
            "Pools with a leader of their own, as pool=domain; those not named are led together.",
            &Config::cluster_domains
        ),
        words(
            "cluster.leads",
            "Domains that this node may lead, those of its region for example; empty: all.",
            &Config::cluster_leads
        ),
    };
}

}  // namespace comfyd::app
