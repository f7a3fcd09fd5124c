#include "fleet/providers/docker_container.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.hpp"
#include "comfy/members.hpp"
#include "fleet/providers/foreign_words.hpp"
#include "fleet/providers/json_elements.hpp"
#include "fleet/providers/machine_names.hpp"

namespace comfyd::fleet {
namespace {

constexpr int kKilled = 137;
constexpr int kTerminated = 143;

std::string join(const std::vector<std::string>& parts) {
    std::string text;
    for (const std::string& part : parts) {
        text += text.empty() ? part : "," + part;
    }
    return text;
}

bool is_published(const DockerOptions& options) {
    return options.network.empty();
}

std::string url_of(
    const DockerOptions& options, const MachineOrder& order, const ContainerPlace& place
) {
    const std::string host = options.network == "host" ? "127.0.0.1" : order.name;
    return "http://" + host + ":" + std::to_string(place.port);
}

// Docker asks a driver for devices; podman knows them as CDI names only.
void add_gpus(
    json::object& host,
    const DockerOptions& options,
    const DockerEngine& engine,
    const MachineOrder& order,
    const ContainerPlace& place
) {
    const bool is_cdi = engine.is_podman || options.gpu_driver == "cdi";
    json::array names;
    for (const std::string& gpu : place.gpus) {
        names.emplace_back(is_cdi ? "nvidia.com/gpu=" + gpu : gpu);
    }
    if (names.empty() && is_cdi) {
        for (int index = 0; index < order.made_from.gpus; ++index) {
            names.emplace_back("nvidia.com/gpu=" + std::to_string(index));
        }
    }
    if (engine.is_podman) {
        json::array devices;
        for (const json::value& name : names) {
            devices.push_back(json::object{{"PathOnHost", name}});
        }
        host["Devices"] = std::move(devices);
        return;
    }
    json::array capabilities;
    capabilities.push_back(json::array{"gpu"});
    json::object request{{"Driver", options.gpu_driver}, {"Capabilities", std::move(capabilities)}};
    if (names.empty()) {
        request["Count"] = order.made_from.gpus;
    } else {
        request["DeviceIDs"] = std::move(names);
    }
    host["DeviceRequests"] = json::array{std::move(request)};
}

json::object make_host(
    const DockerOptions& options,
    const DockerEngine& engine,
    const MachineOrder& order,
    const ContainerPlace& place
) {
    json::object host{
        {"RestartPolicy", {{"Name", "no"}}},
        {"LogConfig", {{"Type", "json-file"}, {"Config", {{"max-size", "10m"}, {"max-file", "3"}}}}
        },
    };
    const MachineTemplate& made_from = order.made_from;
    if (made_from.memory_bytes_max > 0) {
        host["Memory"] = made_from.memory_bytes_max;
        host["MemorySwap"] = made_from.memory_bytes_max;  // no swap beside it
    }
    if (made_from.cpus_max > 0) {
        host["NanoCpus"] = static_cast<std::int64_t>(std::llround(made_from.cpus_max * 1e9));
    }
    if (options.shm_bytes > 0) {
        host["ShmSize"] = options.shm_bytes;
    }
    if (!options.volumes.empty()) {
        host["Binds"] = json::array(options.volumes.begin(), options.volumes.end());
    }
    if (is_published(options)) {
        host["PortBindings"] = {
            {std::to_string(place.port) + "/tcp",
             json::array{{{"HostIp", "127.0.0.1"}, {"HostPort", ""}}}}
        };
    } else {
        host["NetworkMode"] = options.network;
    }
    if (made_from.gpus > 0) {
        add_gpus(host, options, engine, order, place);
    }
    return host;
}

std::optional<std::string> find_published(const json::object& container, std::string_view port) {
    for (const json::value& entry : elements_of(container, "Ports")) {
        const json::object* mapping = entry.if_object();
        if (mapping == nullptr ||
            std::to_string(comfy::integer_of(*mapping, "PrivatePort")) != port) {
            continue;
        }
        const std::int64_t outside = comfy::integer_of(*mapping, "PublicPort");
        if (outside > 0) {
            return "127.0.0.1:" + std::to_string(outside);
        }
    }
    return std::nullopt;
}

// Why one that does not run any more has ended.
void judge_end(Machine& machine, const json::object* inspected) {
    const json::object* state =
        inspected != nullptr ? comfy::object_of(*inspected, "State") : nullptr;
    if (state == nullptr) {
        machine.state = Machine::State::stopped;
        return;
    }
    const std::int64_t exit_code = comfy::integer_of(*state, "ExitCode");
    const json::value* oom = json::find(*state, "OOMKilled");
    const bool was_out_of_memory = oom != nullptr && oom->is_bool() && oom->get_bool();
    const std::string error = presentable(comfy::text_of(*state, "Error"));
    const bool was_asked = (exit_code == 0 || exit_code == kTerminated) && error.empty();
    machine.state =
        was_asked && !was_out_of_memory ? Machine::State::stopped : Machine::State::failed;
    if (was_out_of_memory) {
        machine.reason = "it took more memory than it may have";
    } else if (!error.empty()) {
        machine.reason = error;
    } else if (exit_code == kKilled) {  // podman never says whether it was for want of memory
        machine.reason =
            "it was killed (exit code 137): perhaps it took more memory than it may have";
    } else if (!was_asked) {
        machine.reason = "it ended with exit code " + std::to_string(exit_code);
    }
}

}  // namespace

std::string_view ContainerSummary::label(std::string_view name_of_label) const {
    const auto found = labels.find(name_of_label);
    return found == labels.end() ? std::string_view() : std::string_view(found->second);
}

std::vector<ContainerSummary> read_containers(const json::value& list) {
    std::vector<ContainerSummary> read;
    for (const json::value& entry : elements_of(list)) {
        const json::object* container = entry.if_object();
        const json::object* labels =
            container != nullptr ? comfy::object_of(*container, "Labels") : nullptr;
        if (labels == nullptr || !labels->contains(label::kFleet)) {
            continue;
        }
        ContainerSummary summary;
        for (const auto& [name, value] : *labels) {
            if (value.is_string()) {
                summary.labels[std::string(view(name))] = view(value.get_string());
            }
        }
        const auto names = comfy::texts_of(*container, "Names");
        summary.name = names.empty() ? "" : names.front();
        if (summary.name.starts_with('/')) {
            summary.name.erase(0, 1);
        }
        summary.state = comfy::text_of(*container, "State");
        const std::int64_t created = comfy::integer_of(*container, "Created");
        if (created > 0) {
            summary.made_at = from_unix_ms(created * 1000);
        }
        summary.published = find_published(*container, summary.label(label::kPort));
        if (!summary.name.empty()) {
            read.push_back(std::move(summary));
        }
    }
    return read;
}

json::object make_container(
    const DockerOptions& options,
    const DockerEngine& engine,
    const MachineOrder& order,
    const ContainerPlace& place
) {
    auto environment = environment_of(order);
    environment["SERVER_PORT"] = std::to_string(place.port);
    if (options.network == "host") {
        environment["SERVER_HOST"] = "127.0.0.1";
    }
    json::array variables;
    for (const auto& [name, value] : environment) {
        variables.emplace_back(name + "=" + value);
    }
    json::object labels{
        {label::kFleet, order.fleet},
        {label::kInstance, order.instance},
        {label::kPool, order.pool},
        {label::kPort, std::to_string(place.port)},
    };
    if (!place.gpus.empty()) {
        labels[label::kGpus] = join(place.gpus);
        if (order.made_from.per_gpu > 0) {
            labels[label::kPerGpu] = std::to_string(order.made_from.per_gpu);
        }
    }
    json::object body{
        {"Image", order.made_from.image},
        {"Env", std::move(variables)},
        {"HostConfig", make_host(options, engine, order, place)},
    };
    if (is_published(options)) {
        body["ExposedPorts"] = {{std::to_string(place.port) + "/tcp", json::object()}};
    } else {
        labels[label::kUrl] = url_of(options, order, place);
    }
    body["Labels"] = std::move(labels);
    if (!order.made_from.command.empty()) {
        body["Cmd"] = json::array(order.made_from.command.begin(), order.made_from.command.end());
    }
    return body;
}

Machine to_machine(
    const DockerOptions& options,
    const ContainerSummary& container,
    const json::object* inspected,
    bool is_being_made
) {
    using State = Machine::State;
    Machine machine{.id = container.name, .name = container.name};
    machine.made_at = container.made_at;
    machine.usd_per_hour = options.usd_per_hour;
    const std::string& state = container.state;
    if (state == "running" || state == "paused") {
        machine.state = State::running;
        machine.reason = state == "paused" ? "somebody has paused it" : "";
        const std::string url(container.label(label::kUrl));
        if (!url.empty()) {
            machine.url = url;
        } else if (container.published) {
            machine.url = "http://" + *container.published;
        }
    } else if (state == "restarting") {
        machine.state = State::starting;
    } else if (state == "removing" || state == "stopping") {
        machine.state = State::stopping;
    } else if (state == "created" || state == "configured" || state == "initialized") {
        // Whoever made it has ended before it could start it: nobody will.
        machine.state = is_being_made ? State::creating : State::made;
        machine.reason = is_being_made ? "" : "it was made and never started";
    } else if (state == "dead") {
        machine.state = State::failed;
        machine.reason = "Docker could not remove it whole";
    } else {
        judge_end(machine, inspected);
    }
    return machine;
}

Error explain_start(const Error& said, bool wants_gpus) {
    const std::string words = lower(said.message);
    const bool is_about_gpus = words.find("could not select device driver") != std::string::npos ||
                               words.find("nvidia") != std::string::npos ||
                               words.find("cdi") != std::string::npos;
    const bool is_unclear = said.code != Code::not_found && said.code != Code::conflict &&
                            said.code != Code::invalid_argument &&
                            said.code != Code::upstream_error;
    if (is_unclear) {
        return said;
    }
    if (wants_gpus && is_about_gpus) {
        return Error(
            Code::invalid_argument,
            "the container engine can give no GPU to a container: install the NVIDIA Container "
            "Toolkit, or set the template's gpus to 0 (" +
                said.message + ")"
        );
    }
    return Error(Code::invalid_argument, "the container cannot be started: " + said.message);
}

std::string text_of_frames(std::string_view frames, std::size_t bytes_max) {
    constexpr std::size_t kHeadBytes = 8;
    std::string text;
    while (frames.size() >= kHeadBytes && frames[0] <= 2 && frames[1] == 0) {
        std::size_t length = 0;
        for (const std::size_t at : {4u, 5u, 6u, 7u}) {
            length = length << 8 | static_cast<unsigned char>(frames[at]);
        }
        frames.remove_prefix(kHeadBytes);
        text += frames.substr(0, length);
        frames.remove_prefix(std::min(length, frames.size()));
    }
    if (text.empty()) {
        text = frames;  // with a terminal there are none
    }
    if (text.size() > bytes_max) {
        text.erase(0, text.size() - bytes_max);
        text.erase(0, std::min(text.find('\n') + 1, text.size()));  // from a whole line on
    }
    return text;
}

}  // namespace comfyd::fleet
