#include "fleet/providers/vast_contracts.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <tuple>

#include "base/text.hpp"
#include "comfy/members.hpp"
#include "fleet/providers/foreign_words.hpp"
#include "fleet/providers/json_elements.hpp"
#include "fleet/providers/machine_names.hpp"

namespace comfyd::fleet {
namespace {

using State = Machine::State;

constexpr int kOffersMax = 64;
constexpr std::size_t kEnvironmentBytesMax = 32'768;
constexpr std::size_t kCommandBytesMax = 4096;
constexpr double kBidMin = 0.001;
constexpr double kBidMax = 128;

json::object is(std::string_view how, json::value what) {
    return {{how, std::move(what)}};
}

// Vast tells what a GPU is and how it is built in by one name; it looks for names by the letter.
json::array names_of(const std::string& kind) {
    std::string plain;
    std::string_view rest = kind;
    while (!rest.empty()) {
        const std::size_t end = std::min(rest.find_first_of(" _"), rest.size());
        const std::string word(rest.substr(0, end));
        rest.remove_prefix(std::min(end + 1, rest.size()));
        const std::string same = lower(word);
        if (!word.empty() && same != "nvidia" && same != "geforce") {
            plain += (plain.empty() ? "" : " ") + word;
        }
    }
    json::array names;
    for (const char* suffix : {"", " SXM", " SXM2", " SXM4", " SXM5", " PCIE"}) {
        for (const char* prefix : {"", "Tesla "}) {
            std::string name = prefix + plain + suffix;
            names.emplace_back(name);
            std::ranges::replace(name, ' ', '_');  // its own examples have both
            if (name != view(names.back().as_string())) {
                names.emplace_back(name);
            }
        }
    }
    return names;
}

// As people write a price.
std::string price_text(double usd) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.3f", usd);
    return text.data();
}

// "Sweden, SE" -> "SE"
std::string country_of(const json::object& offer) {
    const std::string place = comfy::text_of(offer, "geolocation");
    const std::size_t comma = place.rfind(',');
    return presentable(trim(comma == std::string::npos ? place : place.substr(comma + 1)));
}

bool is_number(std::string_view text) {
    return !text.empty() && text.size() < 19 &&
           text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string id_in(const json::object& in, std::string_view key) {
    const std::int64_t id = comfy::integer_of(in, key);
    return id > 0 ? std::to_string(id) : std::string();
}

// Of the registry that an image comes from, as `docker login` takes it.
Result<std::string> login_of(const MachineTemplate& made_from) {
    const std::size_t slash = made_from.image.find('/');
    const std::string first = made_from.image.substr(0, slash);
    const bool is_host =
        slash != std::string::npos && first.find_first_of(".:") != std::string::npos;
    const std::string& user = made_from.registry_user;
    const std::string& password = made_from.registry_password;
    constexpr std::string_view kQuoting = " \t\r\n'\"\\";
    if ((user + password).find_first_of(kQuoting) != std::string::npos || password.empty()) {
        return fail(
            Code::invalid_argument,
            "Vast takes a login to a registry as one line: neither its user nor its password may "
            "be "
            "empty, or have spaces, quotes or backslashes"
        );
    }
    return "-u " + user + " -p " + password + " " + (is_host ? first : std::string("docker.io"));
}

// A machine's port on the address that it shares with others.
std::optional<std::string> url_of(const json::object& contract) {
    const std::string address = comfy::text_of(contract, "public_ipaddr");
    const json::object* ports = comfy::object_of(contract, "ports");
    const bool is_address =
        !address.empty() && address.find_first_not_of("0123456789.") == std::string::npos;
    if (ports == nullptr || !is_address) {
        return std::nullopt;
    }
    const std::string inside = std::to_string(MachineOrder().port) + "/tcp";
    for (const json::value& entry : elements_of(*ports, inside)) {
        const json::object* mapped = entry.if_object();
        const std::string port = mapped != nullptr ? comfy::text_of(*mapped, "HostPort") : "";
        if (is_number(port) && port.size() <= 5) {
            return "http://" + address + ":" + port;
        }
    }
    return std::nullopt;
}

State state_of(std::string_view status) {
    if (status.empty() || status == "created") {
        return State::creating;
    }
    if (status == "loading") {
        return State::pulling;
    }
    // Others: exited, offline, unknown. None of them gets better by itself, and the disk costs.
    return status == "running" ? State::running : State::failed;
}

// It is tried again and again, and never starts.
bool is_stuck(std::string_view words) {
    const std::string text = lower(words);
    return text.find("oci runtime create failed") != std::string::npos ||
           text.find("error response from daemon") != std::string::npos;
}

}  // namespace

json::object make_search(
    const VastOptions& options, const OfferWish& wish, const std::string& kind
) {
    json::array order;
    order.emplace_back(json::array{"dph_total", "asc"});
    json::object search{
        {"limit", kOffersMax},
        {"type", wish.market == Market::spot ? "bid" : "ondemand"},
        {"verified", is("eq", true)},
        {"rentable", is("eq", true)},
        {"rented", is("eq", false)},
        {"num_gpus", is("eq", std::max(1, wish.gpus_each))},
        {"reliability", is("gte", options.reliability_min)},
        {"disk_space", is("gte", options.disk_gb)},
        {"allocated_storage", options.disk_gb},
        {"order", std::move(order)},
    };
    if (!kind.empty()) {
        search["gpu_name"] = is("in", names_of(kind));
    }
    if (!wish.region.empty()) {
        search["geolocation"] = is("in", json::array{wish.region});
    }
    if (wish.usd_per_hour_max) {
        search["dph_total"] = is("lte", *wish.usd_per_hour_max);
    }
    if (!options.cuda_min.empty()) {
        search["cuda_max_good"] = is("gte", std::strtod(options.cuda_min.c_str(), nullptr));
    }
    if (!options.dials_in) {
        search["direct_port_count"] = is("gte", 1);
    }
    return search;
}

std::vector<Offer> read_offers(
    const VastOptions& options,
    const json::value& answer,
    const OfferWish& wish,
    const std::string& kind
) {
    std::vector<Offer> offers;
    const json::object none;
    const json::object& body = answer.is_object() ? answer.get_object() : none;
    for (const json::value& entry : elements_of(body, "offers")) {
        const json::object* one = entry.if_object();
        if (one == nullptr) {
            continue;
        }
        Offer offer{.id = id_in(*one, "id"), .gpu = comfy::text_of(*one, "gpu_name")};
        if (offer.id.empty()) {
            continue;
        }
        auto price = comfy::maybe_number(*one, "dph_total");
        if (wish.market == Market::spot) {
            const double least = comfy::maybe_number(*one, "min_bid").value_or(0);
            const double bid = std::ceil(least * options.bid_factor / kBidMin) * kBidMin;
            if (!(bid >= kBidMin && bid <= kBidMax)) {
                continue;
            }
            offer.id += "@" + price_text(bid);
            // Beside the GPU its disk is paid for.
            price = bid + (price ? std::max(0.0, *price - least) : 0);
        }
        const bool is_fit = price && *price > 0 && std::isfinite(*price) &&
                            (kind.empty() || place_of_gpu({kind}, {offer.gpu})) &&
                            (!wish.usd_per_hour_max || *price <= *wish.usd_per_hour_max);
        if (!is_fit) {
            continue;
        }
        offer.market = wish.market;
        offer.region = country_of(*one);
        offer.usd_per_hour = price;
        offer.available = 1;
        const double megabytes =
            std::clamp(comfy::maybe_number(*one, "gpu_ram").value_or(0), 0.0, 1e7);
        offer.gpu_memory_bytes = static_cast<std::uint64_t>(megabytes * 1e6);
        offers.push_back(std::move(offer));
    }
    std::ranges::sort(offers, {}, [](const Offer& offer) {
        return std::tuple(*offer.usd_per_hour, offer.id);
    });
    return offers;
}

Result<VastOrder> make_contract(const VastOptions& options, const MachineOrder& order) {
    const MachineTemplate& made_from = order.made_from;
    const std::size_t mark = order.offer.id.find('@');
    const std::string ask = order.offer.id.substr(0, mark);
    const bool is_spot = order.offer.market == Market::spot;
    if (!is_number(ask) || is_spot != (mark != std::string::npos) || made_from.gpus < 1 ||
        made_from.image.empty()) {
        return fail(
            Code::invalid_argument,
            "'" + order.name + "' needs an image, a GPU and one of Vast's offers"
        );
    }
    auto open = check_public_order(order);
    if (!open) {
        return fail(std::move(open.error()));
    }
    auto variables = environment_of(order);
    variables["COMFYD_API_URL"] = options.url;  // where an agent gives its machine back
    json::object environment;
    std::size_t bytes = 0;
    for (const auto& [name, value] : variables) {
        environment[name] = value;
        bytes += name.size() + value.size();
    }
    if (bytes > kEnvironmentBytesMax || shell_line(made_from.command).size() > kCommandBytesMax) {
        return fail(
            Code::invalid_argument,
            "Vast takes 32 kB of variables and a command of 4 kB, and '" + order.name + "' has more"
        );
    }
    if (!options.dials_in) {
        const std::string port = std::to_string(order.port);
        environment["-p " + port + ":" + port] = "1";  // as an option of `docker create`
    }
    json::object body{
        {"client_id", "me"},
        {"image", made_from.image},
        {"label", order.name},
        {"disk", made_from.disk_gb > 0 ? made_from.disk_gb : options.disk_gb},
        {"runtype", "args"},
        {"env", std::move(environment)},
        {"target_state", "running"},
        // Else a machine that cannot start now would wait for its turn, and its disk would cost.
        {"cancel_unavail", true},
    };
    if (!made_from.command.empty()) {
        body["args"] = json::array(made_from.command.begin(), made_from.command.end());
    }
    if (is_spot) {
        body["price"] = std::strtod(order.offer.id.c_str() + mark + 1, nullptr);
    }
    if (!made_from.registry_user.empty()) {
        auto login = login_of(made_from);
        if (!login) {
            return fail(std::move(login.error()));
        }
        body["image_login"] = std::move(*login);
    }
    return VastOrder{ask, std::move(body)};
}

std::optional<Machine> read_contract(
    const VastOptions& options, const json::value& contract, Time now
) {
    const json::object* about = contract.if_object();
    if (about == nullptr || id_in(*about, "id").empty()) {
        return std::nullopt;
    }
    Machine machine{.id = id_in(*about, "id"), .name = comfy::text_of(*about, "label")};
    const std::string status = comfy::text_of(*about, "actual_status");
    const std::string words = presentable(comfy::text_of(*about, "status_msg"));
    const json::value* bid = json::find(*about, "is_bid");
    const bool is_spot = bid != nullptr && bid->is_bool() && bid->get_bool();
    const auto says_stopped = [&](std::string_view member) {
        return comfy::text_of(*about, member) == "stopped";
    };
    machine.state = state_of(status);
    if (machine.state == State::failed) {
        machine.reason = "Vast calls it '" + presentable(status) + "'";
        machine.reason += words.empty() ? "" : ": " + words;
    } else if (machine.state != State::running && is_stuck(words)) {
        machine.state = State::failed;
        machine.reason = words;
    }
    if (says_stopped("intended_status")) {
        machine.state = status == "running" ? State::stopping : State::stopped;
        machine.reason.clear();
        if (is_spot && says_stopped("cur_state") && says_stopped("next_state")) {
            // It may run again one day, if its bid wins then; its disk costs until that.
            machine.state = State::starting;
            machine.reason = "somebody bid more";
            machine.reclaimed_at = now;
        }
    }
    machine.usd_per_hour = comfy::maybe_number(*about, "dph_total");
    const auto started = comfy::maybe_number(*about, "start_date");
    if (started && *started > 0 && *started < 1e11) {
        machine.made_at = from_unix_ms(static_cast<std::int64_t>(*started * 1000));
    }
    if (machine.state == State::running && !options.dials_in) {
        machine.url = url_of(*about);
    }
    return machine;
}

std::string contract_in(const json::value& answer) {
    const json::object* body = answer.if_object();
    return body != nullptr ? id_in(*body, "new_contract") : std::string();
}

std::string words_of_vast(const json::object& body) {
    const std::string error = comfy::text_of(body, "error");
    std::string message = comfy::text_of(body, "msg");
    for (const std::string_view other : {"message", "detail"}) {
        message = message.empty() ? comfy::text_of(body, other) : message;
    }
    return error.empty() || message.empty() ? error + message : error + ": " + message;
}

Code meaning_of_vast(const CloudRefusal& refusal) {
    const std::string words = lower(refusal.words);
    const auto says = [&](std::string_view part) { return words.find(part) != std::string::npos; };
    if (refusal.status < 400 || refusal.status >= 500 || refusal.status == 429) {
        return code_of_status(refusal.status);
    }
    if (refusal.status == 402 || says("credit") || says("balance") || says("billing")) {
        return Code::balance_empty;
    }
    // Also a bid that wins no more: the next search has another.
    if (says("no_such_ask") || says("invalid_price") || says("not available") ||
        says("no longer available") || says("not your own")) {
        return Code::out_of_stock;
    }
    if (says("no_such_instance") || says("invalid_id")) {
        return Code::not_found;
    }
    return code_of_status(refusal.status);
}

}  // namespace comfyd::fleet
