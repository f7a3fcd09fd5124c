// Options of providers out of the words of the configuration: a map of texts, in which lists are
// separated by commas. docs/providers.md has them all. Pure; any thread.
//
// Code::config_invalid names the provider and the setting that is wrong; one that there is not is
// wrong, too. What the settings mean together is checked by make_…().
#pragma once

#include <map>
#include <string>

#include "fleet/providers/docker.hpp"
#include "fleet/providers/kubernetes.hpp"
#include "fleet/providers/novita.hpp"
#include "fleet/providers/runpod.hpp"
#include "fleet/providers/salad.hpp"
#include "fleet/providers/vast.hpp"

namespace comfyd::fleet {

using ProviderWords = std::map<std::string, std::string>;

Result<DockerOptions> read_docker(const std::string& name, const ProviderWords& words);
Result<RunPodOptions> read_runpod(const std::string& name, const ProviderWords& words);
Result<NovitaOptions> read_novita(const std::string& name, const ProviderWords& words);
Result<VastOptions> read_vast(const std::string& name, const ProviderWords& words);
Result<SaladOptions> read_salad(const std::string& name, const ProviderWords& words);
Result<KubernetesOptions> read_kubernetes(const std::string& name, const ProviderWords& words);

}  // namespace comfyd::fleet
