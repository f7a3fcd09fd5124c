#include "fleet/providers/kubernetes_pods.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.hpp"
#include "comfy/members.hpp"
#include "fleet/providers/foreign_words.hpp"
#include "fleet/providers/machine_names.hpp"

namespace comfyd::fleet {
namespace {

using State = Machine::State;

constexpr std::size_t kNameBytesMax = 63;
constexpr std::size_t kLineBytesMax = 4 * 1024 * 1024;
constexpr std::string_view kPort = "comfyd.port";

bool is_name(std::string_view text) {
    constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789-";
    return !text.empty() && text.size() <= kNameBytesMax &&
           text.find_first_not_of(kAllowed) == std::string_view::npos && text.front() != '-' &&
           text.back() != '-';
}

bool is_label(std::string_view text) {
    constexpr std::string_view kAllowed =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    constexpr std::string_view kEnds = "-_.";
    return text.empty() || (text.size() <= kNameBytesMax &&
                            text.find_first_not_of(kAllowed) == std::string_view::npos &&
                            kEnds.find(text.front()) == std::string_view::npos &&
                            kEnds.find(text.back()) == std::string_view::npos);
}

json::object make_limits(const KubernetesOptions& options, const MachineTemplate& made_from) {
    json::object limits;
    if (made_from.gpus > 0) {
        limits[options.gpu_resource] = std::to_string(made_from.gpus);
    }
    if (made_from.memory_bytes_max > 0) {
        limits["memory"] = std::to_string(made_from.memory_bytes_max);
    }
    if (made_from.cpus_max > 0) {
        limits["cpu"] = std::to_string(std::llround(made_from.cpus_max * 1000)) + "m";
    }
    if (made_from.disk_gb > 0) {
        limits["ephemeral-storage"] = std::to_string(made_from.disk_gb) + "Gi";
    }
    return limits;
}

json::object make_agent(const KubernetesOptions& options, const MachineOrder& order) {
    json::array variables;
    for (const auto& [name, value] : environment_of(order)) {
        variables.push_back(json::object{{"name", name}, {"value", value}});
    }
    json::object agent{
        {"name", "agent"},
        {"image", order.made_from.image},
        {"env", std::move(variables)},
        {"ports", json::array{json::object{{"containerPort", order.port}}}},
        {"resources", {{"limits", make_limits(options, order.made_from)}}},
    };
    if (!order.made_from.command.empty()) {
        agent["args"] = json::array(order.made_from.command.begin(), order.made_from.command.end());
    }
    json::array mounts;
    for (const auto& [claim, path] : options.claims) {
        mounts.push_back(json::object{{"name", claim}, {"mountPath", path}});
    }
    if (!mounts.empty()) {
        agent["volumeMounts"] = std::move(mounts);
    }
    return agent;
}

json::object make_spec(const KubernetesOptions& options, const MachineOrder& order) {
    json::object spec{
        {"restartPolicy", "Never"},
        {"containers", json::array{make_agent(options, order)}},
        {"terminationGracePeriodSeconds", options.grace.count()},
        {"automountServiceAccountToken", false},
        {"enableServiceLinks", false},
    };
    json::object selector;
    for (const auto& [name, value] : options.node_selector) {
        selector[name] = value;
    }
    if (order.made_from.gpus > 0) {
        if (!order.offer.gpu.empty()) {
            selector[options.gpu_label] = order.offer.gpu;
        }
        spec["tolerations"] = json::array{json::object{
            {"key", options.gpu_resource}, {"operator", "Exists"}, {"effect", "NoSchedule"}
        }};
    }
    if (!selector.empty()) {
        spec["nodeSelector"] = std::move(selector);
    }
    json::array logins;
    for (const std::string& secret : options.pull_secrets) {
        logins.push_back(json::object{{"name", secret}});
    }
    if (!logins.empty()) {
        spec["imagePullSecrets"] = std::move(logins);
    }
    json::array volumes;
    for (const auto& [claim, path] : options.claims) {
        volumes.push_back(
            json::object{{"name", claim}, {"persistentVolumeClaim", {{"claimName", claim}}}}
        );
    }
    if (!volumes.empty()) {
        spec["volumes"] = std::move(volumes);
    }
    if (!options.runtime_class.empty()) {
        spec["runtimeClassName"] = options.runtime_class;
    }
    return spec;
}

// Why it has no node yet, in the scheduler's words.
std::string why_unscheduled(const json::object& status) {
    const json::array* conditions = comfy::array_of(status, "conditions");
    for (std::size_t i = 0; conditions != nullptr && i < conditions->size(); ++i) {
        const json::object* condition = (*conditions)[i].if_object();
        if (condition != nullptr && comfy::text_of(*condition, "type") == "PodScheduled" &&
            comfy::text_of(*condition, "status") == "False") {
            return "no node has room for it: " + presentable(comfy::text_of(*condition, "message"));
        }
    }
    return "";
}

const json::object* agent_state(const json::object& status) {
    const json::array* containers = comfy::array_of(status, "containerStatuses");
    const json::object* agent =
        containers != nullptr && !containers->empty() ? (*containers)[0].if_object() : nullptr;
    return agent != nullptr ? comfy::object_of(*agent, "state") : nullptr;
}

bool is_image_trouble(std::string_view reason) {
    constexpr std::array<std::string_view, 7> kReasons = {
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "ErrImageNeverPull",
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
    };
    return std::ranges::find(kReasons, reason) != kReasons.end();
}

void judge_pending(Machine& machine, const json::object& status) {
    machine.reason = why_unscheduled(status);
    const json::object* state = agent_state(status);
    const json::object* waiting = state != nullptr ? comfy::object_of(*state, "waiting") : nullptr;
    if (waiting == nullptr) {
        machine.state = State::creating;
        return;
    }
    const std::string reason = comfy::text_of(*waiting, "reason");
    machine.state = is_image_trouble(reason) ? State::failed : State::pulling;
    if (machine.state == State::failed) {
        machine.reason = presentable(reason + ": " + comfy::text_of(*waiting, "message"));
    }
}

void judge_end(Machine& machine, const json::object& status) {
    const json::object* state = agent_state(status);
    const json::object* ended = state != nullptr ? comfy::object_of(*state, "terminated") : nullptr;
    std::string reason = comfy::text_of(status, "reason");  // Evicted
    const std::string message = comfy::text_of(status, "message");
    if (!reason.empty() && !message.empty()) {
        reason += ": " + message;
    }
    if (reason.empty() && ended != nullptr) {
        reason = comfy::text_of(*ended, "reason") + ", exit code " +
                 std::to_string(comfy::integer_of(*ended, "exitCode"));
    }
    machine.reason = presentable(reason);
}

}  // namespace

Result<json::object> make_pod_manifest(
    const KubernetesOptions& options, const MachineOrder& order
) {
    if (order.made_from.image.empty() || !is_name(order.name) || !is_label(order.fleet) ||
        !is_label(order.instance) || !is_label(order.pool)) {
        return fail(
            Code::invalid_argument,
            "'" + presentable(order.name) +
                "' needs an image, and names that Kubernetes takes: at most 63 letters, digits and "
                "hyphens"
        );
    }
    if (!order.made_from.registry_user.empty()) {
        return fail(
            Code::invalid_argument,
            "Kubernetes keeps logins to registries as Secrets: name one by the provider's "
            "'pull_secrets' instead of the template's"
        );
    }
    return json::object{
        {"apiVersion", "v1"},
        {"kind", "Pod"},
        {"metadata",
         {{"name", order.name},
          {"labels",
           {{"comfyd.fleet", order.fleet},
            {"comfyd.instance", order.instance},
            {"comfyd.pool", order.pool},
            {kPort, std::to_string(order.port)}}}}},
        {"spec", make_spec(options, order)},
    };
}

std::optional<Machine> read_pod_object(const KubernetesOptions& options, const json::value& pod) {
    const json::object* about = pod.if_object();
    const json::object* metadata =
        about != nullptr ? comfy::object_of(*about, "metadata") : nullptr;
    if (metadata == nullptr || comfy::text_of(*metadata, "name").empty()) {
        return std::nullopt;
    }
    const std::string name = comfy::text_of(*metadata, "name");
    Machine machine{.id = name, .name = name};
    machine.made_at = parse_rfc3339(comfy::text_of(*metadata, "creationTimestamp"));
    machine.usd_per_hour = options.usd_per_hour;
    const json::object none;
    const json::object* found = comfy::object_of(*about, "status");
    const json::object& status = found != nullptr ? *found : none;
    const std::string phase = comfy::text_of(status, "phase");
    if (phase == "Running") {
        machine.state = State::running;
        const json::object* labels = comfy::object_of(*metadata, "labels");
        const std::string port = labels != nullptr ? comfy::text_of(*labels, kPort) : "";
        const std::string ip = comfy::text_of(status, "podIP");
        const bool is_v6 = ip.find(':') != std::string::npos;
        if (!options.dials_in && !ip.empty() && !port.empty()) {
            machine.url = "http://" + (is_v6 ? "[" + ip + "]" : ip) + ":" + port;
        }
    } else if (phase == "Succeeded") {
        machine.state = State::stopped;
    } else if (phase == "Failed") {
        machine.state = State::failed;
        judge_end(machine, status);
    } else {
        judge_pending(machine, status);
    }
    // Its node goes, or somebody wants it to: it ends by then, and runs until then.
    machine.reclaimed_at = parse_rfc3339(comfy::text_of(*metadata, "deletionTimestamp"));
    const bool comes_no_more = machine.state == State::creating || machine.state == State::pulling;
    if (machine.reclaimed_at && comes_no_more) {
        machine.state = State::stopping;
    }
    return machine;
}

Code meaning_of_kubernetes(const CloudRefusal& refusal) {
    const auto says = [&refusal](std::string_view words) {
        return refusal.words.find(words) != std::string::npos;
    };
    if (refusal.status != 403) {
        return code_of_status(refusal.status);
    }
    if (says("quota")) {
        return Code::out_of_stock;
    }
    // `User "…" cannot create resource "pods"`, or what a rule of the cluster has against this Pod.
    return says(": User \"") || !says(" is forbidden: ") ? Code::forbidden : Code::invalid_argument;
}

Result<PodWatch::Heard> PodWatch::take(std::string_view piece) {
    Heard heard;
    unfinished_ += piece;
    std::size_t begin = 0;
    for (std::size_t end = unfinished_.find('\n'); end != std::string::npos;
         end = unfinished_.find('\n', begin)) {
        const auto event =
            json::parse_object(std::string_view(unfinished_).substr(begin, end - begin));
        begin = end + 1;
        const json::object* object = event ? comfy::object_of(*event, "object") : nullptr;
        if (object == nullptr) {
            continue;
        }
        const std::string type = comfy::text_of(*event, "type");
        if (type == "ERROR") {
            heard.is_too_old = comfy::integer_of(*object, "code") == 410;
            if (heard.is_too_old) {
                return heard;
            }
            return fail(
                Code::upstream_error,
                "Kubernetes: the watch ends: " + presentable(comfy::text_of(*object, "message"))
            );
        }
        heard.has_changed = heard.has_changed || type != "BOOKMARK";
        const json::object* metadata = comfy::object_of(*object, "metadata");
        const std::string version =
            metadata != nullptr ? comfy::text_of(*metadata, "resourceVersion") : "";
        version_ = version.empty() ? version_ : version;
    }
    unfinished_.erase(0, begin);
    if (unfinished_.size() > kLineBytesMax) {
        return fail(Code::protocol_error, "Kubernetes: an event of the watch has no end");
    }
    return heard;
}

}  // namespace comfyd::fleet
