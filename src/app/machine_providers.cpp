#include "app/machine_providers.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "app/config/settings.hpp"
#include "app/local_comfyui.hpp"
#include "fleet/providers/provider_settings.hpp"

namespace comfyd::app {
namespace {

using Made = Result<std::shared_ptr<fleet::MachineProvider>>;

struct Kind {
    std::string_view name;
    Made (*make)(const ProviderSetting& setting, const MachineProviderParts& parts);
};

// Its settings are those of `comfyui`, and are told of by their names there.
Error as_written_for(const ProviderSetting& setting, Error error) {
    constexpr std::string_view kThere = "'comfyui.";
    if (setting.name == kLocalProvider) {
        return error;
    }
    for (auto at = error.message.find(kThere); at != std::string::npos;
         at = error.message.find(kThere, at)) {
        error.message.replace(at, kThere.size(), "'");
    }
    error.message = "provider '" + setting.name + "': " + error.message;
    return error;
}

Made make_process(const ProviderSetting& setting, const MachineProviderParts& parts) {
    auto local = local_pool_of(setting.options, parts.data);
    if (!local) {
        return fail(as_written_for(setting, std::move(local.error())));
    }
    local->provider.name = setting.name;
    // Each has a folder of its own: what lies there is what it has.
    if (setting.name != kLocalProvider) {
        local->provider.folder = parts.data / ("machines-" + setting.name);
    }
    return Made(fleet::make_process_provider(parts.core, std::move(local->provider)));
}

// `read`: its options out of the words of the configuration.
template <auto read, auto make_provider>
Made make_remote(const ProviderSetting& setting, const MachineProviderParts& parts) {
    auto options = read(setting.name, setting.options);
    if (!options) {
        return fail(std::move(options.error()));
    }
    auto made = make_provider(parts.core, std::move(*options), parts.clock);
    if (!made) {
        return fail(std::move(made.error()));
    }
    return Made(std::move(*made));
}

constexpr std::array kKinds{
    Kind{"process", make_process},
    Kind{"docker", make_remote<fleet::read_docker, fleet::make_docker>},
    Kind{"novita", make_remote<fleet::read_novita, fleet::make_novita>},
    Kind{"runpod", make_remote<fleet::read_runpod, fleet::make_runpod>},
    Kind{"vast", make_remote<fleet::read_vast, fleet::make_vast>},
    Kind{"salad", make_remote<fleet::read_salad, fleet::make_salad>},
    Kind{"kubernetes", make_remote<fleet::read_kubernetes, fleet::make_kubernetes>},
};

Made make(const ProviderSetting& setting, const MachineProviderParts& parts) {
    const auto kind = std::ranges::find(kKinds, setting.kind, &Kind::name);
    if (kind != kKinds.end()) {
        return kind->make(setting, parts);
    }
    std::string known;
    for (const Kind& there : kKinds) {
        known += (known.empty() ? "" : ", ") + std::string(there.name);
    }
    return invalid(
        "the provider '" + setting.name + "' is of the kind '" + setting.kind +
        "', which comfyd does not have; it has: " + known
    );
}

}  // namespace

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
