#include "fleet/providers/novita_instances.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "base/text.hpp"
#include "comfy/members.hpp"
#include "fleet/providers/foreign_words.hpp"
#include "fleet/providers/json_elements.hpp"
#include "fleet/providers/machine_names.hpp"

namespace comfyd::fleet {
namespace {

using State = Machine::State;

constexpr std::size_t kVariablesMax = 100;
constexpr std::size_t kVariableBytesMax = 2048;
constexpr std::size_t kCommandBytesMax = 2047;
constexpr int kPrecisionMax = 12;

std::optional<double> price_of(const json::object& pricing, std::string_view market) {
    const json::object* kind = comfy::object_of(pricing, market);
    const auto price = kind != nullptr ? number_in(*kind, "final_price") : std::nullopt;
    const double precision = number_in(pricing, "precision").value_or(0);
    const bool is_price = price && *price > 0 && precision >= 0 && precision <= kPrecisionMax;
    return is_price ? std::optional(*price / std::pow(10.0, std::floor(precision))) : std::nullopt;
}

// How many; 0: none, -1: not told. Whether it is a number or yes and no is not certain.
int available_of(const json::object& gpu, int gpus_each) {
    const json::value* found = json::find(gpu, "available");
    if (found != nullptr && found->is_bool()) {
        return found->get_bool() ? -1 : 0;
    }
    const auto count = number_in(gpu, "available");
    return count ? static_cast<int>(std::clamp(*count, 0.0, 1e6)) / std::max(1, gpus_each) : -1;
}

std::string text_or_id(const json::object& in, std::string_view key) {
    const json::object* nested = comfy::object_of(in, key);
    return nested != nullptr ? comfy::text_of(*nested, "id") : comfy::text_of(in, key);
}

State state_of(std::string_view word) {
    struct Row {
        std::string_view word;
        State state;
    };
    constexpr std::array kTable = {
        Row{"pending", State::creating},    Row{"tocreate", State::creating},
        Row{"creating", State::creating},   Row{"pulling", State::pulling},
        Row{"running", State::running},     Row{"tostart", State::starting},
        Row{"starting", State::starting},   Row{"torestart", State::starting},
        Row{"restarting", State::starting}, Row{"toreset", State::starting},
        Row{"resetting", State::starting},  Row{"migrating", State::starting},
        Row{"tostop", State::stopping},     Row{"stopping", State::stopping},
        Row{"freezing", State::stopping},   Row{"toremove", State::stopping},
        Row{"removing", State::stopping},   Row{"exited", State::stopped},
        Row{"stopped", State::stopped},     Row{"removed", State::gone},
    };
    std::string plain = lower(word);
    std::erase(plain, '_');
    const auto row = std::ranges::find(kTable, std::string_view(plain), &Row::word);
    return row != kTable.end() ? row->state : State::failed;
}

struct Status {
    std::string word;
    std::string trouble;
};

Status status_of(const json::object& instance) {
    const json::object* status = comfy::object_of(instance, "status");
    if (status == nullptr) {
        return {comfy::text_of(instance, "status"), ""};
    }
    Status read{comfy::text_of(*status, "status"), comfy::text_of(*status, "error")};
    if (!read.trouble.empty() && !comfy::text_of(*status, "message").empty()) {
        read.trouble += ": " + comfy::text_of(*status, "message");
    }
    return read;
}

// Of the names that version 1 has, in the spelling of version 2; and its own.
std::optional<Time> reclaimed_at(const json::object& instance, Time now) {
    std::string status = comfy::text_of(instance, "spot_status");
    status = status.empty() ? comfy::text_of(instance, "spotStatus") : status;
    auto seconds = number_in(instance, "spot_reclaim_time");
    seconds = seconds ? seconds : number_in(instance, "spotReclaimTime");
    if (seconds && *seconds > 0 && *seconds < 1e11) {
        return from_unix_ms(static_cast<std::int64_t>(*seconds) * 1000);
    }
    const bool is_told = status == "notified" || status == "reclaiming" || status == "terminated";
    return is_told ? std::optional(now) : std::nullopt;
}

std::optional<std::string> url_of(
    const NovitaOptions& options, const json::object& instance, const std::string& id
) {
    std::int64_t port = 0;
    for (const json::value& entry : elements_of(instance, "ports")) {
        const json::object* one = entry.if_object();
        if (one != nullptr && comfy::text_of(*one, "protocol") == "http" && port == 0) {
            port = comfy::integer_of(*one, "port");
        }
    }
    if (port == 0) {
        port = MachineOrder().port;  // where the record does not tell
    }
    const std::string region = region_in_hosts(text_or_id(instance, "region"));
    return agent_url(options.agent_url, id, std::to_string(port), region);
}

Result<> check_sizes(
    const std::string& name,
    const std::map<std::string, std::string>& environment,
    const std::string& command
) {
    const auto is_long = [](const auto& variable) {
        return variable.second.size() > kVariableBytesMax;
    };
    if (environment.size() > kVariablesMax || std::ranges::any_of(environment, is_long) ||
        command.size() > kCommandBytesMax) {
        return fail(
            Code::invalid_argument,
            "'" + name +
                "': Novita takes at most 100 variables of 2048 bytes and a command of 2047 bytes"
        );
    }
    return {};
}

}  // namespace

std::vector<Offer> read_products(const json::value& products, const OfferWish& wish) {
    struct Ranked {
        Offer offer;
        std::size_t place;
    };
    std::vector<Ranked> found;
    const json::object none;
    const json::object& body = products.is_object() ? products.get_object() : none;
    for (const json::value& entry : elements_of(body, "data")) {
        const json::object* product = entry.if_object();
        if (product == nullptr) {
            continue;
        }
        Offer offer{.id = comfy::text_of(*product, "id"), .gpu = comfy::text_of(*product, "name")};
        const json::object* pricing = comfy::object_of(*product, "pricing");
        const auto price =
            pricing != nullptr
                ? price_of(*pricing, wish.market == Market::spot ? "spot" : "postpaid")
                : std::nullopt;
        const auto place = place_of_gpu(wish.gpus, {offer.gpu, offer.id});
        const bool is_had =
            !offer.id.empty() && place && (price || wish.market == Market::on_demand);
        if (!is_had) {
            continue;  // without a price there is no spot
        }
        if (price) {
            offer.usd_per_hour = *price * std::max(1, wish.gpus_each);
        }
        const bool is_too_dear =
            wish.usd_per_hour_max && (!price || *offer.usd_per_hour > *wish.usd_per_hour_max);
        if (is_too_dear) {
            continue;
        }
        offer.market = wish.market;
        offer.region = wish.region;
        const json::object* spec = comfy::object_of(*product, "resource_spec");
        const json::object* gpu = spec != nullptr ? comfy::object_of(*spec, "gpu") : nullptr;
        if (gpu != nullptr) {
            const double memory_gb = std::clamp(number_in(*gpu, "memory_gb").value_or(0), 0.0, 1e5);
            offer.gpu_memory_bytes = static_cast<std::uint64_t>(memory_gb * 1e9);
            offer.available = available_of(*gpu, wish.gpus_each);
        }
        found.push_back({std::move(offer), *place});
    }
    std::ranges::sort(found, {}, [](const Ranked& ranked) {
        return std::tuple(
            ranked.offer.available == 0,
            ranked.place,
            ranked.offer.usd_per_hour.value_or(0),
            ranked.offer.id
        );
    });
    std::vector<Offer> offers;
    for (Ranked& ranked : found) {
        offers.push_back(std::move(ranked.offer));
    }
    return offers;
}

Result<json::object> make_instance(const NovitaOptions& options, const MachineOrder& order) {
    const MachineTemplate& made_from = order.made_from;
    if (order.offer.id.empty() || made_from.gpus < 1 || made_from.image.empty()) {
        return fail(
            Code::invalid_argument,
            "'" + order.name + "' needs an image, a GPU and one of Novita's offers"
        );
    }
    if (!made_from.registry_user.empty()) {
        return fail(
            Code::invalid_argument,
            "Novita keeps logins to registries itself: name one by the provider's 'registry' "
            "instead of the template's"
        );
    }
    auto open = check_public_order(order);
    if (!open) {
        return fail(std::move(open.error()));
    }
    const auto environment = environment_of(order);
    const std::string command = shell_line(made_from.command);
    auto sizes = check_sizes(order.name, environment, command);
    if (!sizes) {
        return fail(std::move(sizes.error()));
    }
    json::array variables;
    for (const auto& [name, value] : environment) {
        if (!value.empty()) {  // empty texts are refused
            variables.push_back(json::object{{"key", name}, {"value", value}});
        }
    }
    json::object resource{
        {"rootfs_size_gb", made_from.disk_gb > 0 ? made_from.disk_gb : options.disk_gb},
        {"gpu_num", made_from.gpus}
    };
    if (!options.cuda_min.empty()) {
        resource["min_cuda_version"] = options.cuda_min;
    }
    json::object body{
        {"name", order.name},
        {"product_id", order.offer.id},
        {"image", made_from.image},
        {"billing", {{"mode", order.offer.market == Market::spot ? "spot" : "postpaid"}}},
        {"resource", std::move(resource)},
        {"envs", std::move(variables)},
        {"ports", json::array{{{"port", order.port}, {"protocol", "http"}}}},
    };
    if (!command.empty()) {
        body["command"] = command;
    }
    if (!options.registry.empty()) {
        body["registry_auth_id"] = options.registry;
    }
    if (!order.offer.region.empty()) {
        body["candidate_regions"] = json::array{order.offer.region};
    } else if (!options.regions.empty()) {
        body["candidate_regions"] = json::array(options.regions.begin(), options.regions.end());
    }
    if (!options.volume.empty()) {
        body["volumes"] = json::array{
            {{"type", "network"}, {"id", options.volume}, {"mount_point", options.volume_path}}
        };
    }
    return body;
}

std::string region_in_hosts(std::string_view region) {
    std::string host = lower(region.substr(0, region.find(' ')));
    const std::size_t hyphen = host.rfind('-');
    if (hyphen != std::string::npos) {
        while (host.size() > hyphen + 2 && host[hyphen + 1] == '0') {
            host.erase(hyphen + 1, 1);
        }
    }
    const bool is_host =
        host.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos;
    return is_host ? host : "";
}

std::optional<Machine> read_instance(
    const NovitaOptions& options, const json::value& instance, Time now
) {
    const json::object* about = instance.if_object();
    if (about == nullptr || comfy::text_of(*about, "id").empty()) {
        return std::nullopt;
    }
    Machine machine{.id = comfy::text_of(*about, "id"), .name = comfy::text_of(*about, "name")};
    const Status status = status_of(*about);
    machine.state = state_of(status.word);
    machine.reclaimed_at = reclaimed_at(*about, now);
    if (machine.state == State::failed) {
        machine.reason = "Novita calls it " +
                         (status.word.empty() ? "nothing" : "'" + presentable(status.word) + "'");
    }
    if (!status.trouble.empty() && machine.state != State::running &&
        machine.state != State::gone) {
        machine.state = State::failed;
        machine.reason = presentable(status.trouble);
    }
    const auto created = number_in(*about, "created_at");
    if (created && *created > 0 && *created < 1e11) {
        machine.made_at = from_unix_ms(static_cast<std::int64_t>(*created) * 1000);
    }
    if (machine.state == State::running) {
        machine.url = url_of(options, *about, machine.id);
    }
    return machine;
}

std::string words_of_novita(const json::object& body) {
    const json::object* nested = comfy::object_of(body, "error");
    const std::string reason = comfy::text_of(body, "reason");
    std::string message = comfy::text_of(body, "message");
    if (message.empty()) {
        message =
            nested != nullptr ? comfy::text_of(*nested, "message") : comfy::text_of(body, "error");
    }
    return reason.empty() ? message : reason + ": " + message;
}

Code meaning_of_novita(const CloudRefusal& refusal) {
    const std::string words = lower(refusal.words);
    const auto says = [&](std::string_view part) { return words.find(part) != std::string::npos; };
    if (refusal.status >= 400 && refusal.status < 500) {
        if (refusal.status == 402 || says("balance") || says("arrear")) {
            return Code::balance_empty;
        }
        if (says("resource_not_found") || says("instance not found")) {
            return Code::not_found;
        }
        if (says("insufficient_resource") || says("insufficient resource") ||
            says("out of stock") || says("sold out")) {
            return Code::out_of_stock;
        }
        if (refusal.status == 403 && says("quota")) {  // of this kind; another may have some left
            return Code::out_of_stock;
        }
    }
    return code_of_status(refusal.status);
}

}  // namespace comfyd::fleet
