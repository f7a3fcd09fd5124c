// How the provider `docker` makes a machine: its image, its place, its container.
#include <algorithm>
#include <utility>

#include "base/json.hpp"
#include "base/log.hpp"
#include "base/on_executor.hpp"
#include "comfy/members.hpp"
#include "fleet/providers/docker_machines.hpp"
#include "fleet/providers/docker_place.hpp"
#include "fleet/providers/docker_pull.hpp"
#include "fleet/providers/foreign_words.hpp"
#include "fleet/providers/machine_names.hpp"
#include "net/http.hpp"

namespace comfyd::fleet {
namespace {

constexpr int kPercentStep = 5;  // between two news of a pull

// Docker answers 409, podman 500.
bool is_name_taken(const Error& error) {
    return error.code == Code::conflict ||
           (error.code == Code::upstream_error &&
            error.message.find("already in use") != std::string::npos);
}

Error withdrawn(const std::string& name) {
    return Error(Code::cancelled, "'" + name + "' was removed while it was made");
}

}  // namespace

Task<Result<std::string>> Docker::create(MachineOrder order) {
    COMFYD_ON(executor_);
    const std::string name = order.name;
    const auto [entry, is_new] =
        making_.try_emplace(name, Making{.fleet = order.fleet, .since = clock_.now()});
    if (!is_new && entry->second.is_withdrawn) {
        co_return fail(Code::conflict, "'" + name + "' is still being removed");
    }
    if (!is_new) {
        co_return name;  // it is on its way
    }
    const auto has = co_await has_image(order);
    if (has && !*has) {
        background_.spawn("docker pull", pull_and_make(std::move(order)));
        co_return name;
    }
    Result<> made;
    if (has) {
        made = co_await make(order, entry->second);
    } else {
        made = fail(has.error());
    }
    making_.erase(name);
    tell();
    co_return made ? Result<std::string>(name) : fail(made.error());
}

Task<> Docker::pull_and_make(MachineOrder order) {
    Making& making = making_.at(order.name);
    making.is_pulling = true;
    tell();
    auto done = co_await pull(order, making);
    making.is_pulling = false;
    if (done) {
        done = co_await make(order, making);
    }
    if (done || making.is_withdrawn || done.error().code == Code::cancelled) {
        making_.erase(order.name);
    } else {
        making.why = done.error().message;
        log::warning(
            "a container cannot be made", {{"container", order.name}, {"reason", *making.why}}
        );
    }
    tell();
}

Task<Result<>> Docker::make(const MachineOrder& order, const Making& making) {
    const auto engine = co_await api_.engine();
    if (!engine) {
        co_return fail(engine.error());
    }
    if (making.is_withdrawn) {
        co_return fail(withdrawn(order.name));
    }
    auto placed = co_await place(order, *engine);
    if (!placed) {
        co_return placed;
    }
    Result<> started;
    if (!making.is_withdrawn) {
        started = co_await start_or_remove(order.name, order.made_from.gpus > 0);
    }
    if (making.is_withdrawn) {  // after it was looked for and not found
        auto erased = co_await erase(order.name);
        co_return fail(erased ? withdrawn(order.name) : std::move(erased.error()));
    }
    co_return started;
}

Task<Result<bool>> Docker::has_image(const MachineOrder& order) {
    const auto image = parse_image(order.made_from.image);
    if (!image) {
        co_return fail(image.error());
    }
    if (options_.pull == DockerOptions::Pull::always) {
        co_return false;
    }
    // As it was written: podman finds short names by itself.
    auto found = co_await api_.call(
        {.path = "/images/" + net::percent_encode(order.made_from.image, true) + "/json"}
    );
    if (!found && found.error().code != Code::not_found) {
        co_return fail(std::move(found.error()));
    }
    if (!found && options_.pull == DockerOptions::Pull::never) {
        co_return fail(
            Code::invalid_argument,
            "the image '" + order.made_from.image +
                "' is not on this computer, and may not be pulled"
        );
    }
    co_return found.has_value();
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
            return fail(withdrawn(order.name));
        }
        auto taken = progress.take(piece);
        if (taken && progress.percent() >= making.percent + kPercentStep) {
            making.percent = progress.percent();
            tell();
        }
        return taken;
    });
    if (!pulled) {
        pulled.error().message = "image '" + order.made_from.image + "': " + pulled.error().message;
    }
    co_return pulled;
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
        auto removed = co_await erase(container);
        if (!removed) {
            log::warning(
                "a container that could not be started cannot be removed",
                {{"container", container}, {"reason", removed.error().message}}
            );
        }
    }
    co_return fail(error);
}

}  // namespace comfyd::fleet
