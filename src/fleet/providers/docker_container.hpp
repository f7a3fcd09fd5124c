// Containers as Docker's API has them: what one is made from, and what it says of those that there
// are. Internal to the provider `docker`. Pure.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "fleet/providers/docker.hpp"
#include "fleet/providers/docker_api.hpp"

namespace comfyd::fleet {

namespace label {
inline constexpr std::string_view kFleet = "comfyd.fleet";
inline constexpr std::string_view kInstance = "comfyd.instance";
inline constexpr std::string_view kPool = "comfyd.pool";
inline constexpr std::string_view kPort = "comfyd.port";       // that its agent listens on
inline constexpr std::string_view kGpus = "comfyd.gpus";       // with commas
inline constexpr std::string_view kPerGpu = "comfyd.per_gpu";  // that may share one of them
inline constexpr std::string_view kUrl = "comfyd.url";  // of its agent; absent: a published port
}  // namespace label

// One of GET /containers/json.
struct ContainerSummary {
    std::string name;
    std::string state;  // Docker's word
    std::map<std::string, std::string, std::less<>> labels;
    std::optional<Time> made_at;
    std::optional<std::string> published;  // where its agent's port is: "127.0.0.1:32768"

    std::string_view label(std::string_view name_of_label) const;
};
// What is none of ours (no label comfyd.fleet) is left out.
std::vector<ContainerSummary> read_containers(const json::value& list);

// What a container gets of the computer, so that no two have the same (docker_place.hpp).
struct ContainerPlace {
    std::vector<std::string> gpus{};
    int port = 0;
};

// The body of POST /containers/create.
json::object make_container(
    const DockerOptions& options,
    const DockerEngine& engine,
    const MachineOrder& order,
    const ContainerPlace& place
);

// The machine that a container is. `inspected`: GET /containers/{name}/json, for one that does not
// run. `is_being_made`: by a create that is under way.
Machine to_machine(
    const DockerOptions& options,
    const ContainerSummary& container,
    const json::object* inspected,
    bool is_being_made
);

// Why a container cannot be made or started, with what to do about it.
Error explain_start(const Error& said, bool wants_gpus);

// The text of frames as /logs gives them, both streams in their order; only the end of it where it
// is longer than `bytes_max`.
std::string text_of_frames(std::string_view frames, std::size_t bytes_max);

}  // namespace comfyd::fleet
