#include "app/machine_providers.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "app/config/settings.hpp"

namespace comfyd::app {
namespace {

using Made = Result<std::shared_ptr<fleet::MachineProvider>>;

struct Kind {
    std::string_view name;
    // nullptr: not in this build.
    Made (*make)(const ProviderSetting& setting, const MachineProviderParts& parts);
};

constexpr std::array kKinds{
    Kind{"process", nullptr},
    Kind{"docker", nullptr},
    Kind{"novita", nullptr},
    Kind{"runpod", nullptr},
};

Made make(const ProviderSetting& setting, const MachineProviderParts& parts) {
    const auto kind = std::ranges::find(kKinds, setting.kind, &Kind::name);
    if (kind != kKinds.end() && kind->make != nullptr) {
        return kind->make(setting, parts);
    }
    std::string known;
    for (const std::string& name : machine_provider_kinds()) {
        known += (known.empty() ? "" : ", ") + name;
    }
    return invalid(
        "the provider '" + setting.name + "' is of the kind '" + setting.kind +
        "', which this comfyd does not have; it has: " + (known.empty() ? "none" : known)
    );
}

}  // namespace

std::vector<std::string> machine_provider_kinds() {
    std::vector<std::string> names;
    for (const Kind& kind : kKinds) {
        if (kind.make != nullptr) {
            names.emplace_back(kind.name);
        }
    }
    return names;
}

Result<fleet::MachineProviders> make_machine_providers(const MachineProviderParts& parts) {
    fleet::MachineProviders providers;
    for (const ProviderSetting& setting : parts.config.fleet.providers) {
        auto provider = make(setting, parts);
        if (!provider) {
            return fail(std::move(provider.error()));
        }
        if ((*provider)->traits().dials_in && parts.config.public_url.empty()) {
            return invalid(
                "the machines of the provider '" + setting.name +
                "' have no address and call comfyd: set 'public_url'"
            );
        }
        providers[setting.name] = std::move(*provider);
    }
    return providers;
}

}  // namespace comfyd::app
