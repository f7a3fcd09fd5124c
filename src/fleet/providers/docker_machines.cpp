#include "fleet/providers/docker_machines.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "base/json.hpp"
#include "base/on_executor.hpp"
#include "base/text.hpp"
#include "comfy/members.hpp"
#include "fleet/providers/docker_place.hpp"
#include "fleet/providers/machine_names.hpp"
#include "net/http.hpp"

namespace comfyd::fleet {
namespace {

constexpr std::size_t kLogBytesMax = 1024 * 1024;
constexpr std::size_t kLogBytesReadMax = 16 * kLogBytesMax;
constexpr std::chrono::hours kListen{12};
constexpr Millis kEventsPauseMin{500};
constexpr Millis kEventsPauseMax{15'000};
constexpr std::size_t kEventBytesMax = 1024 * 1024;

std::string filter_query(const json::object& filters) {
    return "filters=" + net::percent_encode(json::serialize(filters));
}

}  // namespace

std::string container_path(const std::string& name, std::string_view rest) {
    return "/containers/" + net::percent_encode(name) + std::string(rest);
}

Docker::Docker(Executor executor, DockerOptions options, const Clock& clock)
    : executor_(executor),
      options_(std::move(options)),
      clock_(clock),
      api_(executor, options_.socket),
      background_(executor) {}

Task<Result<std::vector<ContainerSummary>>> Docker::containers(json::object filters) {
    std::string path = "/containers/json?all=1";
    path += filters.empty() ? "" : "&" + filter_query(filters);
    auto list = co_await api_.call({.path = std::move(path)});
    if (!list) {
        co_return fail(std::move(list.error()));
    }
    co_return read_containers(*list);
}

Task<Result<json::object>> Docker::inspect(std::string container) {
    auto found = co_await api_.call({.path = container_path(container, "/json")});
    if (!found) {
        co_return fail(std::move(found.error()));
    }
    if (!found->is_object()) {
        co_return fail(Code::protocol_error, "the container engine shows no container");
    }
    co_return std::move(found->get_object());
}

MachineTraits Docker::traits() const {
    MachineTraits traits{.can_park = true, .is_local = true, .region = options_.region};
    if (!options_.gpu_kind.empty()) {
        traits.gpus = {options_.gpu_kind};
    }
    return traits;
}

Task<Result<std::vector<Offer>>> Docker::offers(OfferWish wish) {
    COMFYD_ON(executor_);
    const bool is_here =
        wish.market == Market::on_demand &&
        (wish.region.empty() || lower(wish.region) == lower(options_.region)) &&
        place_of_gpu(wish.gpus, {options_.gpu_kind}) &&
        (!wish.usd_per_hour_max || options_.usd_per_hour.value_or(0) <= *wish.usd_per_hour_max);
    if (!is_here) {
        co_return std::vector<Offer>();
    }
    const auto there = co_await containers({});
    if (!there) {
        co_return fail(there.error());
    }
    Offer offer{.id = "container", .gpu = options_.gpu_kind};
    offer.gpu_memory_bytes = options_.gpu_memory_bytes;
    offer.region = options_.region;
    offer.usd_per_hour = options_.usd_per_hour;
    offer.available = count_free(options_, wish.gpus_each, wish.per_gpu, *there);
    co_return std::vector{offer};
}

Machine Docker::to_machine_of(const std::string& name, const Making& making) const {
    using State = Machine::State;
    Machine machine{.id = name, .name = name};
    machine.made_at = making.since;
    machine.usd_per_hour = options_.usd_per_hour;
    machine.state = making.is_pulling ? State::pulling : State::creating;
    if (making.is_pulling) {
        machine.percent = making.percent;
    }
    if (making.why) {
        machine.state = State::failed;
        machine.reason = *making.why;
    }
    return machine;
}

Task<Result<std::vector<Machine>>> Docker::list(std::string fleet) {
    COMFYD_ON(executor_);
    // What is made while the engine is asked may be in neither answer.
    const std::map<std::string, Making> before = making_;
    auto there =
        co_await containers({{"label", json::array{std::string(label::kFleet) + "=" + fleet}}});
    if (!there) {
        co_return fail(std::move(there.error()));
    }
    std::vector<Machine> machines;
    std::set<std::string> seen;
    for (const ContainerSummary& container : *there) {
        if (container.label(label::kFleet) != fleet) {
            continue;
        }
        seen.insert(container.name);
        Result<json::object> inspected = fail(Code::not_found, "not asked for");
        if (container.state == "exited" || container.state == "stopped") {
            inspected = co_await inspect(container.name);
        }
        machines.push_back(to_machine(
            options_, container, inspected ? &*inspected : nullptr, making_.contains(container.name)
        ));
    }
    std::map<std::string, Making> under_way = making_;
    under_way.insert(before.begin(), before.end());
    for (const auto& [name, making] : under_way) {
        if (making.fleet == fleet && !making.is_withdrawn && !seen.contains(name)) {
            machines.push_back(to_machine_of(name, making));
        }
    }
    co_return machines;
}

Task<Result<>> Docker::start(std::string id) {
    COMFYD_ON(executor_);
    auto started = co_await api_.call({.method = "POST", .path = container_path(id, "/start")});
    co_return started ? Result<>() : fail(std::move(started.error()));
}

Task<Result<>> Docker::stop(std::string id) {
    COMFYD_ON(executor_);
    const auto grace = options_.stop_grace;
    auto stopped = co_await api_.call(
        {.method = "POST",
         .path = container_path(id, "/stop?t=" + std::to_string(grace.count())),
         .timeout = grace + std::chrono::seconds(30)}
    );
    co_return stopped ? Result<>() : fail(std::move(stopped.error()));
}

Task<Result<>> Docker::remove(std::string id) {
    COMFYD_ON(executor_);
    const auto found = making_.find(id);
    if (found != making_.end() && found->second.why) {
        making_.erase(found);
    } else if (found != making_.end()) {
        found->second.is_withdrawn = true;
    }
    return erase(std::move(id));
}

// One that is not there is erased.
Task<Result<>> Docker::erase(std::string container) {
    auto removed =
        co_await api_.call({.method = "DELETE", .path = container_path(container, "?force=1&v=1")});
    const bool is_gone = removed || removed.error().code == Code::not_found ||
                         (removed.error().code == Code::conflict &&
                          removed.error().message.find("in progress") != std::string::npos);
    co_return is_gone ? Result<>() : fail(std::move(removed.error()));
}

Task<Result<std::string>> Docker::logs(std::string id, int lines) {
    COMFYD_ON(executor_);
    std::string frames;
    auto heard = co_await api_.stream(
        {.path = container_path(
             id, "/logs?stdout=1&stderr=1&tail=" + std::to_string(std::clamp(lines, 1, 10'000))
         )},
        [&frames](std::string_view piece) -> Result<> {
            frames += piece;
            return frames.size() < kLogBytesReadMax
                       ? Result<>()
                       : fail(Code::payload_too_large, "the log's lines are too long to be shown");
        }
    );
    if (!heard) {
        co_return fail(std::move(heard.error()));
    }
    co_return text_of_frames(frames, kLogBytesMax);
}

void Docker::on_change(std::function<void()> changed) {
    COMFYD_ON(executor_);
    changed_ = std::move(changed);
    if (!std::exchange(hears_, true)) {
        background_.spawn("docker events", hear_events());
    }
}

Result<> Docker::take_events(std::string& unfinished, std::string_view piece) {
    unfinished += piece;
    std::size_t begin = 0;
    bool is_about_us = false;
    for (std::size_t end = unfinished.find('\n'); end != std::string::npos;
         end = unfinished.find('\n', begin)) {
        const auto event =
            json::parse_object(std::string_view(unfinished).substr(begin, end - begin));
        const json::object* actor = event ? comfy::object_of(*event, "Actor") : nullptr;
        const json::object* attributes =
            actor != nullptr ? comfy::object_of(*actor, "Attributes") : nullptr;
        is_about_us = is_about_us || (attributes != nullptr && attributes->contains(label::kFleet));
        begin = end + 1;
    }
    unfinished.erase(0, begin);
    if (is_about_us) {
        tell();
    }
    return unfinished.size() < kEventBytesMax
               ? Result<>()
               : fail(Code::protocol_error, "the container engine's event has no end");
}

// Podman has its own words for some events, and does not know the filter for a label without its
// value: labels are looked at here.
Task<> Docker::hear_events() {
    const json::object filters{
        {"type", json::array{"container"}},
        {"event", json::array{"start", "die", "died", "stop", "oom", "destroy", "remove"}},
    };
    Time since = clock_.now();
    Millis pause = kEventsPauseMin;
    while (true) {
        const Time begun = clock_.now();
        std::string unfinished;
        const std::string seconds = std::to_string(to_unix_ms(since) / 1000);
        auto heard = co_await api_.stream(
            {.path = "/events?since=" + seconds + "&" + filter_query(filters), .timeout = kListen},
            [&](std::string_view piece) { return take_events(unfinished, piece); }
        );
        const bool stop = co_await is_cancelled();
        if (stop) {
            co_return;
        }
        // What happens until it is heard again is told then.
        const bool was_heard = heard || clock_.now() - begun > kEventsPauseMax;
        since = was_heard ? clock_.now() : since;
        pause = was_heard ? kEventsPauseMin : std::min(pause * 2, kEventsPauseMax);
        const bool slept = co_await sleep_for(pause);
        if (!slept) {
            co_return;
        }
    }
}

Task<> Docker::end() {
    COMFYD_ON(executor_);
    changed_ = nullptr;
    background_.cancel();
    co_await background_.join();
    api_.close_idle();
}

}  // namespace comfyd::fleet
