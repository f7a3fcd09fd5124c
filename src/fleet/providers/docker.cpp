#include "fleet/providers/docker.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/json.hpp"
#include "base/log.hpp"
#include "base/on_executor.hpp"
#include "base/turnstile.hpp"
#include "comfy/members.hpp"
#include "fleet/providers/docker_api.hpp"
#include "fleet/providers/docker_container.hpp"
#include "fleet/providers/docker_pull.hpp"
#include "fleet/providers/foreign_words.hpp"
#include "fleet/providers/machine_names.hpp"
#include "net/http.hpp"

namespace comfyd::fleet {
namespace {

constexpr std::size_t kLogBytesMax = 1024 * 1024;
constexpr std::size_t kLogBytesReadMax = 16 * kLogBytesMax;
constexpr int kPercentStep = 5;  // between two news of a pull
constexpr std::chrono::hours kListen{12};
constexpr Millis kEventsPauseMin{500};
constexpr Millis kEventsPauseMax{15'000};
constexpr std::size_t kEventBytesMax = 1024 * 1024;

// One create from its beginning to its end.
struct Making {
    std::string fleet;
    bool is_pulling = false;
    int percent = 0;
    bool is_withdrawn = false;
};

std::string filter_query(const json::object& filters) {
    return "filters=" + net::percent_encode(json::serialize(filters));
}

std::string container_path(const std::string& name, std::string_view rest = {}) {
    return "/containers/" + net::percent_encode(name) + std::string(rest);
}

// Docker answers 409, podman 500.
bool is_name_taken(const Error& error) {
    return error.code == Code::conflict ||
           (error.code == Code::upstream_error &&
            error.message.find("already in use") != std::string::npos);
}

class Docker final : public MachineProvider {
public:
    Docker(Executor executor, DockerOptions options, Clock& clock)
        : executor_(executor),
          options_(std::move(options)),
          clock_(clock),
          api_(executor, options_.socket),
          background_(executor) {}

    std::string_view name() const override { return options_.name; }
    MachineTraits traits() const override { return {.can_park = true, .is_local = true}; }

    Task<Result<std::vector<Offer>>> offers(OfferWish wish) override;
    Task<Result<std::string>> create(MachineOrder order) override;
    Task<Result<std::vector<Machine>>> list(std::string fleet) override;
    Task<Result<>> start(std::string id) override;
    Task<Result<>> stop(std::string id) override;
    Task<Result<>> remove(std::string id) override;
    Task<Result<std::string>> logs(std::string id, int lines) override;
    void on_change(std::function<void()> changed) override;
    Task<> end() override;

private:
    // `making` is in the map for as long as create() runs.
    Task<Result<std::string>> make(const MachineOrder& order, Making& making);
    Task<Result<>> have_image(const MachineOrder& order, Making& making);
    Task<Result<>> pull(const MachineOrder& order, Making& making);
    Task<Result<>> place(const MachineOrder& order, const DockerEngine& engine);
    Task<Result<>> adopt(const MachineOrder& order);
    Task<Result<>> start_or_remove(std::string container, bool wants_gpus);
    Task<Result<json::object>> inspect(std::string container);
    Task<Result<std::vector<ContainerSummary>>> containers(json::object filters);
    Task<> hear_events();
    Result<> take_events(std::string& unfinished, std::string_view piece);
    void tell() const {
        if (changed_) {
            changed_();
        }
    }

    Executor executor_;
    const DockerOptions options_;
    Clock& clock_;
    DockerApi api_;
    std::map<std::string, Making> making_;  // by name
    Turnstile placing_{{.inside_max = 1, .waiting_max = 1000}};
    int port_before_ = 0;
    std::function<void()> changed_;
    bool hears_ = false;
    TaskGroup background_;
};

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

Task<Result<std::vector<Offer>>> Docker::offers(OfferWish wish) {
    COMFYD_ON(executor_);
    const bool is_here =
        wish.market == Market::on_demand &&
        (wish.region.empty() || wish.region == options_.region) &&
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
    offer.available = count_free(options_, wish.gpus_each, *there);
    co_return std::vector{offer};
}

Task<Result<std::string>> Docker::create(MachineOrder order) {
    COMFYD_ON(executor_);
    const auto [entry, is_new] = making_.try_emplace(order.name, Making{.fleet = order.fleet});
    if (!is_new) {
        co_return order.name;  // it is on its way
    }
    auto made = co_await make(order, entry->second);
    making_.erase(order.name);
    tell();
    co_return made;
}

Task<Result<std::string>> Docker::make(const MachineOrder& order, Making& making) {
    const auto engine = co_await api_.engine();
    if (!engine) {
        co_return fail(engine.error());
    }
    auto had = co_await have_image(order, making);
    if (!had) {
        co_return fail(std::move(had.error()));
    }
    auto placed = co_await place(order, *engine);
    if (!placed) {
        co_return fail(std::move(placed.error()));
    }
    if (!making.is_withdrawn) {
        auto started = co_await start_or_remove(order.name, order.made_from.gpus > 0);
        if (!started) {
            co_return fail(std::move(started.error()));
        }
    }
    if (making.is_withdrawn) {  // after it was looked for and not found
        auto removed = co_await api_.call(
            {.method = "DELETE", .path = container_path(order.name, "?force=1&v=1")}
        );
        static_cast<void>(removed);
        co_return fail(Code::cancelled, "'" + order.name + "' was removed while it was made");
    }
    co_return order.name;
}

Task<Result<>> Docker::have_image(const MachineOrder& order, Making& making) {
    const auto image = parse_image(order.made_from.image);
    if (!image) {
        co_return fail(image.error());
    }
    if (options_.pull != DockerOptions::Pull::always) {
        // As it was written: podman finds short names by itself.
        auto found = co_await api_.call(
            {.path = "/images/" + net::percent_encode(order.made_from.image, true) + "/json"}
        );
        if (found) {
            co_return Result<>();
        }
        if (found.error().code != Code::not_found) {
            co_return fail(std::move(found.error()));
        }
        if (options_.pull == DockerOptions::Pull::never) {
            co_return fail(
                Code::invalid_argument,
                "the image '" + order.made_from.image +
                    "' is not on this computer, and may not be pulled"
            );
        }
    }
    making.is_pulling = true;
    tell();
    auto pulled = co_await pull(order, making);
    making.is_pulling = false;
    co_return pulled;
}

Task<Result<>> Docker::pull(const MachineOrder& order, Making& making) {
    const auto image = parse_image(order.made_from.image);
    DockerCall call;
    call.method = "POST";
    call.path = "/images/create?fromImage=" + net::percent_encode(image->repository) +
                "&tag=" + net::percent_encode(image->tag);
    call.timeout = options_.pull_timeout;
    if (!order.made_from.registry_user.empty()) {
        call.headers.set(
            "X-Registry-Auth",
            registry_login(*image, order.made_from.registry_user, order.made_from.registry_password)
        );
    }
    PullProgress progress;
    auto pulled = co_await api_.stream(std::move(call), [&](std::string_view piece) -> Result<> {
        if (making.is_withdrawn) {
            return fail(Code::cancelled, "'" + order.name + "' was removed while it was made");
        }
        auto taken = progress.take(piece);
        if (taken && progress.percent() >= making.percent + kPercentStep) {
            making.percent = progress.percent();
            tell();
        }
        return taken;
    });
    if (pulled || pulled.error().code == Code::cancelled) {
        co_return pulled;
    }
    Error error = std::move(pulled.error());
    if (error.code == Code::not_found) {
        error.code = Code::invalid_argument;
    }
    error.message = "image '" + order.made_from.image + "': " + error.message;
    co_return fail(std::move(error));
}

// One at a time: what is free is looked up, and taken by the create.
Task<Result<>> Docker::place(const MachineOrder& order, const DockerEngine& engine) {
    const auto turn = co_await placing_.enter("");
    if (!turn) {
        co_return fail(turn.error());
    }
    const auto others = co_await containers({});
    if (!others) {
        co_return fail(others.error());
    }
    const auto is_it = [&](const ContainerSummary& other) { return other.name == order.name; };
    if (std::ranges::any_of(*others, is_it)) {
        auto adopted = co_await adopt(order);
        co_return adopted;
    }
    const auto chosen = choose_place(options_, order, *others, port_before_);
    if (!chosen) {
        co_return fail(chosen.error());
    }
    port_before_ = chosen->port;
    auto made = co_await api_.call(
        {.method = "POST",
         .path = "/containers/create?name=" + net::percent_encode(order.name),
         .body = make_container(options_, engine, order, *chosen)}
    );
    if (made) {
        co_return Result<>();
    }
    if (is_name_taken(made.error())) {
        auto adopted = co_await adopt(order);
        co_return adopted;
    }
    Error error = std::move(made.error());
    if (order.made_from.gpus > 0) {
        error = explain_start(error, true);
    }
    error.message = presentable(error.message, secrets_of(order));
    co_return fail(std::move(error));
}

// Its name is taken: by itself, or by a stranger.
Task<Result<>> Docker::adopt(const MachineOrder& order) {
    auto found = co_await inspect(order.name);
    if (!found) {
        co_return fail(std::move(found.error()));
    }
    const json::object* config = comfy::object_of(*found, "Config");
    const json::object* labels = config != nullptr ? comfy::object_of(*config, "Labels") : nullptr;
    const bool is_ours = labels != nullptr &&
                         comfy::text_of(*labels, label::kFleet) == order.fleet &&
                         comfy::text_of(*labels, label::kInstance) == order.instance;
    if (!is_ours) {
        co_return fail(
            Code::conflict,
            "a container that is not ours has the name '" + order.name + "': rename or remove it"
        );
    }
    co_return Result<>();
}

Task<Result<>> Docker::start_or_remove(std::string container, bool wants_gpus) {
    auto started = co_await start(container);
    if (started) {
        co_return started;
    }
    const Error error = explain_start(started.error(), wants_gpus);
    if (error.code == Code::invalid_argument) {
        auto removed = co_await api_.call(
            {.method = "DELETE", .path = container_path(container, "?force=1&v=1")}
        );
        if (!removed && removed.error().code != Code::not_found) {
            log::warning(
                "a container that could not be started cannot be removed",
                {{"container", container}, {"reason", removed.error().message}}
            );
        }
    }
    co_return fail(error);
}

Task<Result<std::vector<Machine>>> Docker::list(std::string fleet) {
    COMFYD_ON(executor_);
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
    for (const auto& [name, making] : making_) {
        if (making.fleet == fleet && !seen.contains(name)) {
            Machine machine{.id = name, .name = name};
            machine.state = making.is_pulling ? Machine::State::pulling : Machine::State::creating;
            if (making.is_pulling) {
                machine.percent = making.percent;
            }
            machines.push_back(std::move(machine));
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
    if (found != making_.end()) {
        found->second.is_withdrawn = true;
    }
    auto removed =
        co_await api_.call({.method = "DELETE", .path = container_path(id, "?force=1&v=1")});
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

}  // namespace

Result<> check_docker(const DockerOptions& options) {
    const auto wrong = [&](std::string what) {
        return fail(Code::config_invalid, "provider '" + options.name + "': " + std::move(what));
    };
    if (!options.socket.starts_with('/')) {
        return wrong("socket must be the path of Docker's unix socket");
    }
    const bool is_range = options.port_first > 0 && options.port_first <= options.port_last &&
                          options.port_last <= 65'535;
    if (!is_range) {
        return wrong("the ports must be a range within 1 … 65535");
    }
    if (options.per_gpu < 1 || options.machines_max < 0) {
        return wrong("per_gpu must be at least 1, machines_max at least 0");
    }
    if (std::set(options.gpus.begin(), options.gpus.end()).size() != options.gpus.size()) {
        return wrong("a GPU is named twice");
    }
    if (!options.gpu_driver.empty() && options.gpu_driver != "nvidia" &&
        options.gpu_driver != "cdi") {
        return wrong("gpu_driver must be nvidia or cdi");
    }
    for (const std::string& volume : options.volumes) {
        if (volume.find(":/") == std::string::npos) {
            return wrong(
                "the volume '" + presentable(volume) + "' must look like /models:/models:ro"
            );
        }
    }
    if (options.usd_per_hour.value_or(0) < 0 || options.pull_timeout.count() <= 0 ||
        options.stop_grace.count() < 0) {
        return wrong("prices and times cannot be negative");
    }
    return {};
}

Result<std::unique_ptr<MachineProvider>> make_docker(
    Executor executor, DockerOptions options, Clock& clock
) {
    auto checked = check_docker(options);
    if (!checked) {
        return fail(std::move(checked.error()));
    }
    return std::make_unique<Docker>(executor, std::move(options), clock);
}

}  // namespace comfyd::fleet
