#include "fleet/providers/machine_names.hpp"

#include <algorithm>
#include <array>

#include "base/id.hpp"
#include "base/text.hpp"

namespace comfyd::fleet {

bool is_of_fleet(std::string_view name, std::string_view fleet) {
    const std::string prefix = "comfyd-" + std::string(fleet) + "-";
    if (fleet.empty() || !name.starts_with(prefix)) {
        return false;
    }
    const std::string_view instance = name.substr(prefix.size());
    return !instance.empty() &&
           (instance.find('-') == std::string_view::npos || Uuid::parse(instance).has_value());
}

std::optional<std::size_t> place_of_gpu(
    const std::vector<std::string>& wished, const std::vector<std::string>& names
) {
    if (wished.empty()) {
        return 0;
    }
    for (std::size_t place = 0; place < wished.size(); ++place) {
        const bool is_it = std::ranges::any_of(names, [&](const std::string& name) {
            return is_gpu(wished[place], name);
        });
        if (is_it) {
            return place;
        }
    }
    return std::nullopt;
}

std::map<std::string, std::string> environment_of(const MachineOrder& order) {
    std::map<std::string, std::string> made = order.made_from.environment;
    for (const auto& [name, value] : order.secrets) {
        made[name] = value;
    }
    made["SERVER_HOST"] = "0.0.0.0";
    made["SERVER_PORT"] = std::to_string(order.port);
    made["COMFYD_FLEET"] = order.fleet;
    made["COMFYD_POOL"] = order.pool;
    made["COMFYD_INSTANCE"] = order.instance;
    return made;
}

std::vector<std::string> secrets_of(const MachineOrder& order) {
    std::vector<std::string> secrets;
    for (const auto& [name, value] : order.secrets) {
        secrets.push_back(value);
    }
    // An operator may have put keys of others there.
    for (const auto& [name, value] : order.made_from.environment) {
        secrets.push_back(value);
    }
    secrets.push_back(order.made_from.registry_password);
    return secrets;
}

Result<> check_public_order(const MachineOrder& order) {
    const auto token = order.secrets.find("COMFYD_WORKER_TOKEN");
    if (token == order.secrets.end() || token->second.empty()) {
        return fail(
            Code::invalid_argument,
            "the machine '" + order.name +
                "' would be open to everybody: its agent has no COMFYD_WORKER_TOKEN"
        );
    }
    constexpr int kComfyUiPort = 8188;
    if (order.port == kComfyUiPort || order.port < 1 || order.port > 65'535) {
        return fail(
            Code::invalid_argument,
            "the port " + std::to_string(order.port) + " of '" + order.name +
                "' cannot be shown to the world: 8188 is ComfyUI's own, take another"
        );
    }
    return {};
}

std::optional<std::string> agent_url(
    std::string_view pattern,
    const std::string& id,
    const std::string& port,
    const std::string& region
) {
    constexpr std::string_view kAllowed =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    std::string url(pattern);
    const std::array<std::pair<std::string_view, const std::string&>, 3> values{
        {{"{id}", id}, {"{port}", port}, {"{region}", region}}
    };
    for (const auto& [mark, value] : values) {
        const std::size_t at = url.find(mark);
        if (at == std::string::npos) {
            continue;
        }
        if (value.empty() || value.find_first_not_of(kAllowed) != std::string::npos) {
            return std::nullopt;
        }
        url.replace(at, mark.size(), value);
    }
    return url;
}

std::string shell_line(const std::vector<std::string>& words) {
    constexpr std::string_view kPlain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,@%+";
    std::string line;
    for (const std::string& word : words) {
        line += line.empty() ? "" : " ";
        if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
            line += word;
            continue;
        }
        line += '\'';
        for (const char c : word) {
            line += c == '\'' ? "'\\''" : std::string(1, c);
        }
        line += '\'';
    }
    return line;
}

}  // namespace comfyd::fleet
