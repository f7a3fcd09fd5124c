#include "fleet/providers/runpod_pods.hpp"

#include <algorithm>
#include <array>
#include <tuple>

#include "base/text.hpp"
#include "comfy/members.hpp"
#include "fleet/providers/foreign_words.hpp"
#include "fleet/providers/json_elements.hpp"
#include "fleet/providers/machine_names.hpp"

namespace comfyd::fleet {
namespace {

constexpr std::size_t kVariablesMax = 50;

int stock_of(std::string_view level) {
    if (level == "HIGH") {
        return 3;
    }
    if (level == "MEDIUM") {
        return 2;
    }
    return level == "LOW" ? 1 : 0;
}

// Of the whole cloud, or of the one data centre that is wished for; nullopt: it has none there.
std::optional<std::string> level_of(const json::object& gpu, const std::string& region) {
    if (region.empty()) {
        return comfy::text_of(gpu, "availability");
    }
    for (const json::value& entry : elements_of(gpu, "dataCenters")) {
        const json::object* center = entry.if_object();
        if (center != nullptr && comfy::text_of(*center, "id") == region) {
            return comfy::text_of(*center, "availability");
        }
    }
    return std::nullopt;
}

std::string agent_port(const json::object& pod) {
    for (const std::string& port : comfy::texts_of(pod, "ports")) {
        if (port.ends_with("/http")) {
            return port.substr(0, port.find('/'));
        }
    }
    return "";
}

Machine::State state_of(std::string_view status) {
    using State = Machine::State;
    if (status == "PROVISIONING") {
        return State::creating;
    }
    if (status == "STARTING") {
        return State::starting;
    }
    if (status == "RUNNING") {
        return State::running;
    }
    if (status == "EXITED") {
        return State::stopped;
    }
    return status == "TERMINATED" ? State::gone : State::failed;
}

}  // namespace

std::vector<RankedOffer> read_catalog(
    const json::value& catalog, const OfferWish& wish, const std::string& cloud
) {
    std::vector<RankedOffer> offers;
    const json::object none;
    const json::object& body = catalog.is_object() ? catalog.get_object() : none;
    for (const json::value& entry : elements_of(body, "gpus")) {
        const json::object* gpu = entry.if_object();
        if (gpu == nullptr) {
            continue;
        }
        const std::string id = comfy::text_of(*gpu, "id");
        const std::string name = comfy::text_of(*gpu, "name");
        const std::string in_cloud = lower(cloud);
        const json::value* is_there = json::find(*gpu, in_cloud);
        const json::object* counts = comfy::object_of(*gpu, "maxCount");
        const auto place = place_of_gpu(wish.gpus, {id, name});
        const auto level = level_of(*gpu, wish.region);
        const bool is_fit =
            !id.empty() && place && level && is_there != nullptr && is_there->is_bool() &&
            is_there->get_bool() &&
            (counts == nullptr || comfy::integer_of(*counts, in_cloud) >= wish.gpus_each);
        if (!is_fit) {
            continue;
        }
        RankedOffer ranked;
        ranked.place = *place;
        ranked.stock = stock_of(*level);
        ranked.offer.id = cloud + "/" + id;
        ranked.offer.gpu = name.empty() ? id : name;
        // In units of 1e9: of those of 2^30 a GPU keeps some for itself.
        ranked.offer.gpu_memory_bytes =
            static_cast<std::uint64_t>(std::max<std::int64_t>(0, comfy::integer_of(*gpu, "memory"))
            ) *
            1'000'000'000;
        ranked.offer.region = wish.region;
        ranked.offer.available = ranked.stock == 0 ? 0 : -1;
        const json::object* prices = comfy::object_of(*gpu, "price");
        const auto price =
            prices != nullptr ? comfy::maybe_number(*prices, in_cloud) : std::nullopt;
        if (price && *price > 0) {
            ranked.offer.usd_per_hour = *price * std::max(1, wish.gpus_each);
        }
        // Without a price nobody knows whether it is too much.
        const bool is_too_dear =
            wish.usd_per_hour_max &&
            (!ranked.offer.usd_per_hour || *ranked.offer.usd_per_hour > *wish.usd_per_hour_max);
        if (!is_too_dear) {
            offers.push_back(std::move(ranked));
        }
    }
    return offers;
}

std::vector<Offer> rank(std::vector<RankedOffer> offers) {
    std::ranges::sort(offers, {}, [](const RankedOffer& ranked) {
        return std::tuple(
            ranked.stock == 0,
            ranked.place,
            ranked.offer.usd_per_hour.value_or(0),
            -ranked.stock,
            ranked.offer.id
        );
    });
    std::vector<Offer> sorted;
    for (RankedOffer& ranked : offers) {
        sorted.push_back(std::move(ranked.offer));
    }
    return sorted;
}

Result<json::object> make_pod(const RunPodOptions& options, const MachineOrder& order) {
    const MachineTemplate& made_from = order.made_from;
    const std::size_t slash = order.offer.id.find('/');
    if (slash == std::string::npos || made_from.gpus < 1 || made_from.image.empty()) {
        return fail(
            Code::invalid_argument,
            "'" + order.name + "' needs an image, a GPU and one of RunPod's offers"
        );
    }
    if (!made_from.registry_user.empty()) {
        return fail(
            Code::invalid_argument,
            "RunPod keeps logins to registries itself: name one by the provider's 'registry' "
            "instead of the template's"
        );
    }
    auto open = check_public_order(order);
    if (!open) {
        return fail(std::move(open.error()));
    }
    auto environment = environment_of(order);
    environment["COMFYD_API_URL"] = options.url;  // where an agent gives its pod back
    if (environment.size() > kVariablesMax) {
        return fail(
            Code::invalid_argument,
            "RunPod takes at most 50 variables, and '" + order.name + "' has " +
                std::to_string(environment.size())
        );
    }
    json::object gpu{{"id", order.offer.id.substr(slash + 1)}, {"count", made_from.gpus}};
    if (!options.cuda_min.empty()) {
        gpu["minCudaVersion"] = options.cuda_min;
    }
    json::object variables;
    for (const auto& [name, value] : environment) {
        variables[name] = value;
    }
    json::object body{
        {"name", order.name},
        {"image", made_from.image},
        {"gpu", std::move(gpu)},
        {"cloud", order.offer.id.substr(0, slash)},
        {"env", std::move(variables)},
        {"ports", json::array{std::to_string(order.port) + "/http"}},
    };
    if (!order.offer.region.empty()) {
        body["dataCenterIds"] = json::array{order.offer.region};
    } else if (!options.data_centers.empty()) {
        body["dataCenterIds"] =
            json::array(options.data_centers.begin(), options.data_centers.end());
    }
    if (made_from.disk_gb > 0) {
        body["disk"] = made_from.disk_gb;
    }
    if (!made_from.command.empty()) {
        body["args"] = shell_line(made_from.command);
    }
    if (!options.registry.empty()) {
        body["registry"] = options.registry;
    }
    if (!options.volume.empty()) {
        body["mounts"] = {
            {"network", json::array{{{"volumeId", options.volume}, {"path", options.volume_path}}}}
        };
    }
    return body;
}

std::optional<Machine> read_pod(const RunPodOptions& options, const json::value& pod) {
    const json::object* about = pod.if_object();
    if (about == nullptr || comfy::text_of(*about, "id").empty()) {
        return std::nullopt;
    }
    Machine machine{.id = comfy::text_of(*about, "id"), .name = comfy::text_of(*about, "name")};
    const std::string status = comfy::text_of(*about, "status");
    machine.state = state_of(status);
    if (machine.state == Machine::State::failed) {
        machine.reason = "RunPod calls it " + (status.empty() ? "nothing" : presentable(status));
    }
    machine.made_at = parse_rfc3339(comfy::text_of(*about, "createdAt"));
    machine.usd_per_hour = comfy::maybe_number(*about, "cost");
    const std::string port = agent_port(*about);
    if (machine.state == Machine::State::running && !port.empty()) {
        machine.url = agent_url(options.agent_url, machine.id, port);
    }
    return machine;
}

bool speaks_of_capacity(std::string_view words) {
    const std::string text = lower(words);
    constexpr std::array<std::string_view, 8> kPhrases = {
        "no longer any instances",
        "capacity",
        "no instances",
        "not available",
        "unavailable",
        "out of stock",
        "could not be placed",
        "not enough",
    };
    return std::ranges::any_of(kPhrases, [&](std::string_view phrase) {
        return text.find(phrase) != std::string::npos;
    });
}

Code meaning_of_create(const CloudRefusal& refusal) {
    switch (refusal.status) {
        case 400:
        case 403:  // this pool of GPUs is not for this account
        case 404:
            return Code::out_of_stock;
        default:
            return code_of_status(refusal.status);
    }
}

std::string read_log_events(std::string_view stream) {
    constexpr std::string_view kData = "data:";
    std::string text;
    while (!stream.empty()) {
        const std::size_t end = std::min(stream.find('\n'), stream.size());
        std::string_view line = trim(stream.substr(0, end), " \t\r");
        stream.remove_prefix(std::min(end + 1, stream.size()));
        if (!line.starts_with(kData)) {
            continue;
        }
        const auto event = json::parse_object(trim(line.substr(kData.size())));
        if (event) {
            text += comfy::text_of(*event, "line") + "\n";
        }
    }
    return text;
}

}  // namespace comfyd::fleet
