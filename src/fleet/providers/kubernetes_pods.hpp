// Pods as the Kubernetes API has them, and what its watch says. Internal to the provider
// `kubernetes`. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json.hpp"
#include "fleet/providers/cloud_api.hpp"
#include "fleet/providers/kubernetes.hpp"

namespace comfyd::fleet {

// The manifest of a machine's Pod. Code::invalid_argument.
Result<json::object> make_pod_manifest(const KubernetesOptions& options, const MachineOrder& order);

// Nullopt: it has no name.
std::optional<Machine> read_pod_object(const KubernetesOptions& options, const json::value& pod);

// Of 403: a quota that is used up is no stock, what else the cluster has against a Pod (a limit, a
// policy, an unknown runtime class) is a wrong order, and the rest are rights that are missing.
Code meaning_of_kubernetes(const CloudRefusal& refusal);

// What a watch has told so far. It goes on from `version`, unless that is too old.
class PodWatch {
public:
    // Begins at the version of a list.
    explicit PodWatch(std::string version) : version_(std::move(version)) {}

    struct Heard {
        bool has_changed = false;
        bool is_too_old = false;  // 410: list again
    };
    // Lines in pieces of any size. Code::protocol_error where one has no end; Code::upstream_error
    // for errors that it tells.
    Result<Heard> take(std::string_view piece);
    const std::string& version() const { return version_; }

private:
    std::string version_;
    std::string unfinished_;
};

}  // namespace comfyd::fleet
