#include "app/config/setting_kinds.hpp"

namespace comfyd::app {

std::vector<Setting> guard_settings() {
    return {
        words(
            "guard.own_hosts",
            "Further machines of yours that no URL of a client may lead to, by name or address.",
            &Config::guard_own_hosts
        ),
        words(
            "guard.shared_hosts",
            "Of comfyd's own hosts, those behind addresses that serve others too, such as a CDN's.",
            &Config::guard_shared_hosts
        ),
        words(
            "guard.nat64",
            "Prefixes of your own NAT64, such as 2001:db8:64::/96 (RFC 6052).",
            &Config::guard_nat64
        ),
    };
}

}  // namespace comfyd::app
