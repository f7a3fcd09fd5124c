#include "fleet/instances/instance.hpp"

#include <algorithm>
#include <utility>

#include "base/crypto.hpp"

namespace comfyd::fleet {
namespace {

using enum InstanceState;

constexpr std::size_t kIdDigits = 12;
constexpr std::string_view kPrefix = "comfyd-";

struct Row {
    InstanceState state;
    std::string_view name;
    std::array<InstanceState, 7> next{};  // filled up with the state itself
    std::size_t count = 0;
};

template <class... Next>
constexpr Row row(InstanceState state, std::string_view name, Next... next) {
    return {state, name, {next...}, sizeof...(next)};
}

// A machine may be found further than it was when it was last looked at; it never goes back, but
// for one that was never made: the provider said no, and another may be asked.
constexpr std::array kTable{
    row(requested, "requested", creating, gone, failed),
    row(creating, "creating", requested, pulling, starting, warming, removing, failed),
    row(pulling, "pulling", starting, warming, removing),
    row(starting, "starting", warming, removing),
    row(warming, "warming", ready, removing),
    row(ready, "ready", draining, removing),
    row(draining, "draining", removing, parked),
    row(parked, "parked", starting, removing),
    row(removing, "removing", gone, failed),
    row(gone, "gone"),
    row(failed, "failed"),
};

const Row& row_of(InstanceState state) {
    return kTable.at(static_cast<std::size_t>(state));
}

bool is_small_letter_or_digit(char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

std::string text_of(const json::object& about, std::string_view key) {
    const json::value* found = json::find(about, key);
    return found != nullptr && found->is_string() ? std::string(found->get_string())
                                                  : std::string();
}

std::int64_t number_of(const json::object& about, std::string_view key, std::int64_t otherwise) {
    const json::value* found = json::find(about, key);
    return found != nullptr && found->is_int64() ? found->get_int64() : otherwise;
}

bool is_set(const json::object& about, std::string_view key) {
    const json::value* found = json::find(about, key);
    return found != nullptr && found->is_bool() && found->get_bool();
}

json::object describe(const Offer& offer) {
    json::object about{
        {"id", offer.id},
        {"gpu", offer.gpu},
        {"gpu_memory_bytes", static_cast<std::int64_t>(offer.gpu_memory_bytes)},
        {"region", offer.region},
        {"market", to_string(offer.market)},
    };
    if (offer.usd_per_hour) {
        about["usd_per_hour"] = *offer.usd_per_hour;
    }
    return about;
}

Offer read_offer(const json::object& about) {
    Offer offer;
    offer.id = text_of(about, "id");
    offer.gpu = text_of(about, "gpu");
    offer.gpu_memory_bytes = static_cast<std::uint64_t>(number_of(about, "gpu_memory_bytes", 0));
    offer.region = text_of(about, "region");
    offer.market =
        text_of(about, "market") == to_string(Market::spot) ? Market::spot : Market::on_demand;
    if (const auto price = json::find_number(about, "usd_per_hour"); price && *price) {
        offer.usd_per_hour = **price;
    }
    return offer;
}

}  // namespace

std::string_view to_string(InstanceState state) {
    return row_of(state).name;
}

std::optional<InstanceState> parse_instance_state(std::string_view name) {
    const auto found = std::ranges::find(kTable, name, &Row::name);
    return found == kTable.end() ? std::nullopt : std::optional(found->state);
}

bool can_follow(InstanceState from, InstanceState to) {
    const Row& row = row_of(from);
    const auto end = row.next.begin() + static_cast<std::ptrdiff_t>(row.count);
    return std::find(row.next.begin(), end, to) != end;
}

std::string Instance::name() const {
    return machine_name(fleet, id);
}

std::optional<Time> Instance::when(InstanceState reached) const {
    const auto found = since.find(reached);
    return found == since.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Time> Instance::begun() const {
    return when(is_woken() ? starting : creating);
}

json::object Instance::to_json() const {
    json::object times;
    for (const auto& [reached, at] : since) {
        times[to_string(reached)] = to_unix_ms(at);
    }
    return {
        {"id", id},
        {"fleet", fleet},
        {"domain", domain},
        {"pool", pool},
        {"state", to_string(state)},
        {"provider", provider},
        {"offer", describe(offer)},
        {"machine", machine},
        {"url", url},
        {"gpu", gpu},
        {"software", software},
        {"reason", reason},
        {"has_failed", has_failed},
        {"parks", parks},
        {"refusals", refusals},
        {"revision", static_cast<std::int64_t>(revision)},
        {"since", std::move(times)},
    };
}

std::optional<Instance> Instance::from_json(const json::object& about) {
    const auto state = parse_instance_state(text_of(about, "state"));
    Instance instance;
    instance.id = text_of(about, "id");
    if (!state || instance.id.empty()) {
        return std::nullopt;
    }
    instance.fleet = text_of(about, "fleet");
    instance.domain = text_of(about, "domain");
    instance.pool = text_of(about, "pool");
    instance.state = *state;
    instance.provider = text_of(about, "provider");
    if (const auto offer = json::find_object(about, "offer"); offer && *offer != nullptr) {
        instance.offer = read_offer(**offer);
    }
    instance.machine = text_of(about, "machine");
    instance.url = text_of(about, "url");
    instance.gpu = text_of(about, "gpu");
    instance.software = text_of(about, "software");
    instance.reason = text_of(about, "reason");
    instance.has_failed = is_set(about, "has_failed");
    instance.parks = is_set(about, "parks");
    instance.refusals = static_cast<int>(number_of(about, "refusals", 0));
    instance.revision = static_cast<std::uint64_t>(number_of(about, "revision", 0));
    if (const auto times = json::find_object(about, "since"); times && *times != nullptr) {
        for (const auto& entry : **times) {
            const auto reached = parse_instance_state(entry.key());
            if (reached && entry.value().is_int64()) {
                instance.since[*reached] = from_unix_ms(entry.value().get_int64());
            }
        }
    }
    return instance;
}

std::string new_instance_id() {
    std::array<std::uint8_t, kIdDigits / 2> bytes{};
    random_bytes(bytes.data(), bytes.size());
    return to_hex(bytes.data(), bytes.size());
}

std::string machine_name(std::string_view fleet, std::string_view instance) {
    return std::string(kPrefix).append(fleet).append("-").append(instance);
}

std::optional<std::string> instance_of(std::string_view machine_name, std::string_view fleet) {
    if (!machine_name.starts_with(kPrefix)) {
        return std::nullopt;
    }
    machine_name.remove_prefix(kPrefix.size());
    if (!machine_name.starts_with(fleet) || machine_name.size() != fleet.size() + 1 + kIdDigits ||
        machine_name[fleet.size()] != '-') {
        return std::nullopt;
    }
    machine_name.remove_prefix(fleet.size() + 1);
    return std::ranges::all_of(machine_name, is_small_letter_or_digit)
               ? std::optional(std::string(machine_name))
               : std::nullopt;
}

bool is_fleet_name(std::string_view name) {
    constexpr std::size_t kMost = 24;
    return !name.empty() && name.size() <= kMost && name.front() != '-' && name.back() != '-' &&
           std::ranges::all_of(name, [](char c) {
               return is_small_letter_or_digit(c) || c == '-';
           });
}

Result<Instance> moved(Instance instance, InstanceState to, Time now, std::string reason) {
    if (!can_follow(instance.state, to)) {
        return fail(
            Code::conflict,
            "the instance " + instance.id + " is " + std::string(to_string(instance.state)) +
                " and cannot become " + std::string(to_string(to))
        );
    }
    instance.state = to;
    instance.since[to] = now;
    instance.reason = std::move(reason);
    instance.revision += 1;
    return instance;
}

}  // namespace comfyd::fleet
