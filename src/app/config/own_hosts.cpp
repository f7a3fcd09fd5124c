#include "app/config/own_hosts.hpp"

#include <algorithm>
#include <set>

#include "net/host_rules.hpp"
#include "net/lines.hpp"

namespace comfyd::app {

std::vector<std::string> hosts_in(std::string_view url) {
    const auto scheme = url.find("://");
    if (scheme == std::string_view::npos) {
        return {};
    }
    std::string_view authority = url.substr(scheme + 3);
    authority = authority.substr(0, authority.find_first_of("/?#"));
    const auto at = authority.rfind('@');
    authority.remove_prefix(at == std::string_view::npos ? 0 : at + 1);
    std::vector<std::string> hosts;
    while (!authority.empty()) {
        const auto end = std::min(authority.find(','), authority.size());
        std::string_view host = net::without_port(authority.substr(0, end));
        if (host.starts_with('[') && host.ends_with(']')) {
            host = host.substr(1, host.size() - 2);
        }
        if (!host.empty()) {
            hosts.emplace_back(host);
        }
        authority.remove_prefix(std::min(end + 1, authority.size()));
    }
    return hosts;
}

std::vector<std::string> own_hosts(const Config& config) {
    std::set<std::string> all(config.guard_own_hosts.begin(), config.guard_own_hosts.end());
    const auto add = [&all](std::string_view url) {
        for (std::string& host : hosts_in(url)) {
            all.insert(std::move(host));
        }
    };
    add(config.public_url);
    add(config.ledger);
    add(config.events);
    for (const WorkerSetting& worker : config.workers) {
        if (!net::line_name(worker.url)) {
            add(worker.url);
        }
    }
    for (const assets::StoreSetting& store : config.stores) {
        for (const char* option : {"endpoint", "public_endpoint"}) {
            if (const auto set = store.options.find(option); set != store.options.end()) {
                add(set->second);
            }
        }
    }
    if (const auto endpoint = net::Endpoint::parse(config.listen);
        endpoint && endpoint->socket.empty()) {
        all.insert(endpoint->host);
    }
    return {all.begin(), all.end()};
}

}  // namespace comfyd::app
