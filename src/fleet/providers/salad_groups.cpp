#include "fleet/providers/salad_groups.hpp"

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

constexpr std::size_t kTextBytesMax = 1000;  // of a variable, and of a word of the command
constexpr std::size_t kWordsMax = 100;
constexpr int kLogLinesMax = 100;
constexpr std::chrono::hours kLogSpan{24};
constexpr std::int64_t kDiskUnit = 1LL << 30;

bool is_text(std::string_view text) {
    return text.size() <= kTextBytesMax && text.find_first_of("\r\n") == std::string_view::npos;
}

std::optional<double> price_of(const json::object& gpu, const std::string& priority) {
    for (const json::value& entry : elements_of(gpu, "prices")) {
        const json::object* price = entry.if_object();
        if (price != nullptr && comfy::text_of(*price, "priority") == priority) {
            const auto usd = number_in(*price, "price");
            return usd && *usd > 0 ? usd : std::nullopt;
        }
    }
    return std::nullopt;
}

// "RTX 4090 (24 GB)": what it is called, and what it has.
struct GpuName {
    std::string name;
    std::uint64_t bytes = 0;
};

GpuName read_name(const std::string& text) {
    const std::size_t bracket = text.find('(');
    GpuName read{std::string(trim(std::string_view(text).substr(0, bracket)))};
    if (bracket != std::string::npos) {
        const double gigabytes = std::strtod(text.c_str() + bracket + 1, nullptr);
        const bool is_told = gigabytes >= 1 && gigabytes < 1e5 &&
                             lower(text).find("gb", bracket) != std::string::npos;
        read.bytes = is_told ? static_cast<std::uint64_t>(gigabytes * 1e9) : 0;
    }
    return read;
}

json::array countries_of(const SaladOptions& options, const std::string& region) {
    return region.empty() ? json::array(options.countries.begin(), options.countries.end())
                          : json::array{lower(region)};
}

json::object make_resources(const SaladOptions& options, const MachineTemplate& made_from) {
    constexpr std::uint64_t kMegabyte = 1'000'000;
    const std::uint64_t megabytes = made_from.memory_bytes_max > 0
                                        ? made_from.memory_bytes_max / kMegabyte
                                        : static_cast<std::uint64_t>(options.memory_mb);
    return {
        {"cpu",
         made_from.cpus_max > 0 ? static_cast<std::int64_t>(std::ceil(made_from.cpus_max))
                                : options.cpus},
        {"memory", std::max<std::uint64_t>(megabytes, 1024)},
        {"storage_amount", (made_from.disk_gb > 0 ? made_from.disk_gb : options.disk_gb) * kDiskUnit
        },
    };
}

// A group that runs may have nothing that does: its computer went, and another is looked for.
State state_of(const json::object& state) {
    const std::string status = comfy::text_of(state, "status");
    const json::object none;
    const json::object* found = comfy::object_of(state, "instance_status_counts");
    const json::object& counts = found != nullptr ? *found : none;
    if (status == "pending") {
        return State::creating;
    }
    if (status == "deploying" || status == "running") {
        if (comfy::integer_of(counts, "running_count") > 0) {
            return State::running;
        }
        return comfy::integer_of(counts, "creating_count") > 0 ? State::pulling : State::creating;
    }
    return status == "stopped" || status == "succeeded" ? State::stopped : State::failed;
}

}  // namespace

std::vector<Offer> read_gpu_classes(
    const SaladOptions& options, const json::value& answer, const OfferWish& wish
) {
    struct Ranked {
        Offer offer;
        std::size_t place;
    };
    std::vector<Ranked> found;
    const json::object none;
    const json::object& body = answer.is_object() ? answer.get_object() : none;
    for (const json::value& entry : elements_of(body, "items")) {
        const json::object* gpu = entry.if_object();
        if (gpu == nullptr) {
            continue;
        }
        const GpuName told = read_name(comfy::text_of(*gpu, "name"));
        const auto place = place_of_gpu(wish.gpus, {told.name});
        const auto price = price_of(*gpu, options.priority);
        const std::int64_t gpus = std::max<std::int64_t>(1, comfy::integer_of(*gpu, "gpu_count"));
        const bool is_fit = !comfy::text_of(*gpu, "id").empty() && place && price &&
                            gpus == std::max(1, wish.gpus_each) &&
                            (!wish.usd_per_hour_max || *price <= *wish.usd_per_hour_max);
        if (!is_fit) {
            continue;
        }
        Offer offer{.id = comfy::text_of(*gpu, "id"), .gpu = told.name};
        offer.gpu_memory_bytes = told.bytes;
        offer.region = wish.region;
        offer.market = Market::spot;  // whatever was wished for
        offer.usd_per_hour = price;
        found.push_back({std::move(offer), *place});
    }
    std::ranges::sort(found, {}, [](const Ranked& ranked) {
        return std::tuple(ranked.place, *ranked.offer.usd_per_hour, ranked.offer.id);
    });
    std::vector<Offer> offers;
    for (Ranked& ranked : found) {
        offers.push_back(std::move(ranked.offer));
    }
    return offers;
}

json::object make_question(const SaladOptions& options, const Offer& offer) {
    json::object question = make_resources(options, {});
    question["gpu_classes"] = json::array{offer.id};
    if (json::array countries = countries_of(options, offer.region); !countries.empty()) {
        question["country_codes"] = std::move(countries);
    }
    return question;
}

int read_availability(const SaladOptions& options, const json::value& answer) {
    const json::object* body = answer.if_object();
    const auto count = body != nullptr
                           ? comfy::maybe_number(*body, "available_gpu_" + options.priority)
                           : std::nullopt;
    return count && std::isfinite(*count) ? static_cast<int>(std::clamp(*count, 0.0, 1e6)) : -1;
}

Result<json::object> make_group(const SaladOptions& options, const MachineOrder& order) {
    const MachineTemplate& made_from = order.made_from;
    const auto wrong = [&](const std::string& what) {
        return fail(Code::invalid_argument, "'" + order.name + "' " + what);
    };
    if (order.offer.id.empty() || made_from.gpus < 1 || made_from.image.empty()) {
        return wrong("needs an image, a GPU and one of Salad's kinds of them");
    }
    if (!order.secrets.contains("COMFYD_GATEWAY")) {
        return wrong("has no address at Salad, and is not told whom to call");
    }
    auto open = check_public_order(order);
    if (!open) {
        return fail(std::move(open.error()));
    }
    json::object environment;
    for (const auto& [name, value] : environment_of(order)) {
        if (!is_text(value)) {
            return wrong(
                "has a variable that Salad does not take: " + presentable(name) +
                " has more than 1000 bytes, or lines"
            );
        }
        if (!value.empty()) {  // empty texts are refused
            environment[name] = value;
        }
    }
    const bool is_command = std::ranges::all_of(made_from.command, [](const std::string& word) {
        return !word.empty() && is_text(word);
    });
    if (!is_command || made_from.command.size() > kWordsMax) {
        return wrong(
            "has a command that Salad does not take: 100 words of 1000 bytes, none empty or with "
            "lines"
        );
    }
    json::object resources = make_resources(options, made_from);
    resources["gpu_classes"] = json::array{order.offer.id};
    json::object container{
        {"image", made_from.image},
        {"resources", std::move(resources)},
        {"priority", options.priority},
        {"environment_variables", std::move(environment)},
        {"image_caching", true},
    };
    if (!made_from.command.empty()) {
        container["command"] = json::array(made_from.command.begin(), made_from.command.end());
    }
    if (!made_from.registry_user.empty()) {
        container["registry_authentication"] = {
            {"basic",
             {{"username", made_from.registry_user}, {"password", made_from.registry_password}}}
        };
    }
    json::object group{
        {"name", order.name},
        {"container", std::move(container)},
        {"replicas", 1},
        {"autostart_policy", true},
        {"restart_policy", "never"},  // an agent that ends itself has given its machine back
    };
    if (json::array countries = countries_of(options, order.offer.region); !countries.empty()) {
        group["country_codes"] = std::move(countries);
    }
    return group;
}

std::optional<Machine> read_group(const json::value& group) {
    const json::object* about = group.if_object();
    if (about == nullptr || comfy::text_of(*about, "name").empty()) {
        return std::nullopt;
    }
    // Its name is what all calls know it by.
    Machine machine{.id = comfy::text_of(*about, "name"), .name = comfy::text_of(*about, "name")};
    const json::object none;
    const json::object* found = comfy::object_of(*about, "current_state");
    const json::object& state = found != nullptr ? *found : none;
    machine.state = state_of(state);
    machine.reason = presentable(comfy::text_of(state, "description"));
    if (machine.state == State::failed && machine.reason.empty()) {
        const std::string status = comfy::text_of(state, "status");
        machine.reason = "Salad calls it " + (status.empty() ? "nothing" : presentable(status));
    }
    machine.made_at = parse_rfc3339(comfy::text_of(*about, "create_time"));
    return machine;
}

json::object make_log_question(
    const SaladOptions& options, const std::string& group, int lines, Time now
) {
    return {
        {"query",
         "resource.type = \"container\" and resource.labels.project_name = \"" + options.project +
             "\" and resource.labels.container_group_name = \"" + group + "\""},
        {"start_time", to_rfc3339(now - kLogSpan)},
        {"end_time", to_rfc3339(now)},
        {"page_size", std::clamp(lines, 1, kLogLinesMax)},
        {"sort_order", "desc"},
    };
}

std::string read_log_entries(const json::value& answer) {
    std::string text;
    const json::object* body = answer.if_object();
    if (body == nullptr) {
        return text;
    }
    for (const json::value& entry : elements_of(*body, "items")) {
        const json::object* line = entry.if_object();
        if (line == nullptr) {
            continue;
        }
        const json::object* structured = comfy::object_of(*line, "json_log");
        const std::string words = structured != nullptr ? json::serialize(*structured)
                                                        : comfy::text_of(*line, "text_log");
        text.insert(0, words + "\n");
    }
    return text;
}

Code meaning_of_salad(const CloudRefusal& refusal) {
    const std::string words = lower(refusal.words);
    const auto says = [&](std::string_view part) { return words.find(part) != std::string::npos; };
    if (refusal.status >= 400 && refusal.status < 500 && refusal.status != 429) {
        if (refusal.status == 402 || says("credit") || says("balance") || says("billing") ||
            says("payment")) {
            return Code::balance_empty;
        }
        if (says("quota") || says("capacity") || says("no longer available")) {
            return Code::out_of_stock;
        }
        if (says("already")) {  // somebody made it between our look and our order
            return Code::conflict;
        }
    }
    return code_of_status(refusal.status);
}

}  // namespace comfyd::fleet
