#include "app/config/serving.hpp"

#include <algorithm>
#include <utility>

#include "net/open_files.hpp"

namespace comfyd::app {

net::ServerLimits server_limits(const Config& config, std::size_t open_files) {
    net::ServerLimits limits;
    limits.body_bytes_max =
        static_cast<std::uint64_t>(std::max(config.upload_mb_max, config.body_mb_max)) << 20;
    const auto wanted = static_cast<std::size_t>(config.connections_max);
    limits.connections_max =
        std::min(wanted, net::connections_within(open_files, config.workers.size()));
    const auto endpoint = net::Endpoint::parse(config.listen);
    if (config.connections_per_address != 0) {
        limits.strangers_per_address_max = static_cast<std::size_t>(config.connections_per_address);
    } else if (endpoint && !endpoint->is_loopback()) {
        limits.strangers_per_address_max = limits.connections_max / 4;
    }
    limits.bodies_bytes_max =
        static_cast<std::uint64_t>(std::max(config.bodies_mb_max, config.body_mb_max)) << 20;
    limits.stall_timeout = std::chrono::seconds(config.stall_timeout_s);
    limits.header_timeout = std::chrono::seconds(config.header_timeout_s);
    limits.idle_timeout = std::chrono::seconds(config.idle_timeout_s);
    return limits;
}

bool has_fewer_than_asked_for(const Config& config, const net::ServerLimits& limits) {
    const bool is_set = config.connections_max != Config().connections_max;
    return is_set && limits.connections_max < static_cast<std::size_t>(config.connections_max);
}

net::HostRules host_rules(const Config& config) {
    const auto endpoint = net::Endpoint::parse(config.listen);
    // Beyond loopback every request needs a key, which no foreign page has.
    if (endpoint && !endpoint->is_loopback() && config.hosts.empty()) {
        return {};
    }
    std::vector<std::string> names = config.hosts;
    if (const auto url = net::Url::parse(config.public_url)) {
        names.push_back(url->host);
    }
    return net::HostRules(std::move(names));
}

}  // namespace comfyd::app
