#include "fleet/providers/runpod.hpp"

#include <algorithm>
#include <utility>

#include "base/on_executor.hpp"
#include "comfy/members.hpp"
#include "fleet/providers/cloud_api.hpp"
#include "fleet/providers/foreign_words.hpp"
#include "fleet/providers/machine_names.hpp"
#include "fleet/providers/runpod_pods.hpp"
#include "net/http.hpp"

namespace comfyd::fleet {
namespace {

// Its logs are a stream that goes on: what comes within this time is what there was.
constexpr Millis kLogTime{4'000};
constexpr std::size_t kLogBytesMax = 2 * 1024 * 1024;
constexpr int kLogLinesMax = 5000;

std::string pod_path(const std::string& id, std::string_view rest = {}) {
    return "/pods/" + net::percent_encode(id) + std::string(rest);
}

class RunPod final : public MachineProvider {
public:
    RunPod(Executor executor, RunPodOptions options, const Clock& clock)
        : executor_(executor),
          options_(std::move(options)),
          api_(
              executor,
              {.service = "RunPod",
               .url = options_.url,
               .key = options_.key,
               .ca_file = options_.ca_file},
              clock
          ) {}

    std::string_view name() const override { return options_.name; }
    // A stopped pod's disk costs, and its GPU may be gone when it is started.
    MachineTraits traits() const override { return {.can_park = true, .bills_parked = true}; }

    Task<Result<std::vector<Offer>>> offers(OfferWish wish) override;
    Task<Result<std::string>> create(MachineOrder order) override;
    Task<Result<std::vector<Machine>>> list(std::string fleet) override;
    Task<Result<>> start(std::string id) override;
    Task<Result<>> stop(std::string id) override;
    Task<Result<>> remove(std::string id) override;
    Task<Result<std::string>> logs(std::string id, int lines) override;
    void on_change(std::function<void()>) override {}  // it tells nobody
    Task<> end() override;

private:
    Task<Result<std::vector<Machine>>> pods();
    Task<Result<>> act(std::string id, std::string action, Machine::State wanted);

    Executor executor_;
    const RunPodOptions options_;
    CloudApi api_;
};

Task<Result<std::vector<Offer>>> RunPod::offers(OfferWish wish) {
    COMFYD_ON(executor_);
    if (wish.market == Market::spot) {
        co_return std::vector<Offer>();
    }
    std::vector<RankedOffer> found;
    for (const std::string& cloud : options_.clouds) {
        auto catalog = co_await api_.call(
            {.path = "/catalog/gpus?include=AVAILABILITY&product=POD&count=" +
                     std::to_string(std::max(1, wish.gpus_each)) + "&cloud=" + cloud}
        );
        if (!catalog) {
            co_return fail(std::move(catalog.error()));
        }
        std::ranges::move(read_catalog(*catalog, wish, cloud), std::back_inserter(found));
    }
    co_return rank(std::move(found));
}

Task<Result<std::vector<Machine>>> RunPod::pods() {
    auto answer = co_await api_.call({.path = "/pods"});
    if (!answer) {
        co_return fail(std::move(answer.error()));
    }
    const json::array* pods =
        answer->is_object() ? comfy::array_of(answer->get_object(), "pods") : nullptr;
    if (pods == nullptr) {  // nothing there would be taken for everything gone
        co_return fail(Code::protocol_error, "RunPod: GET /pods: the answer has no 'pods'");
    }
    std::vector<Machine> machines;
    for (const json::value& entry : *pods) {
        auto machine = read_pod(options_, entry);
        if (machine) {
            machines.push_back(std::move(*machine));
        }
    }
    co_return machines;
}

Task<Result<std::string>> RunPod::create(MachineOrder order) {
    COMFYD_ON(executor_);
    auto body = make_pod(options_, order);
    if (!body) {
        co_return fail(std::move(body.error()));
    }
    // Names are not unique there: whoever made it before us is looked for.
    const auto there = co_await pods();
    if (!there) {
        co_return fail(there.error());
    }
    const auto same = std::ranges::find(*there, order.name, &Machine::name);
    if (same != there->end()) {
        co_return same->id;
    }
    auto made = co_await api_.call(
        {.method = "POST",
         .path = "/pods",
         .body = std::move(*body),
         .kind = CloudCall::Kind::once,
         .secrets = secrets_of(order),
         .meaning = meaning_of_create}
    );
    if (!made) {
        const json::value* status = json::find(made.error().details, "status");
        if (status != nullptr && *status == 400) {
            made.error().details["may_be_wrong"] = !speaks_of_capacity(made.error().message);
        }
        co_return fail(std::move(made.error()));
    }
    const auto pod = read_pod(options_, *made);
    if (!pod) {
        co_return fail(Code::protocol_error, "RunPod: POST /pods: the answer has no 'id'");
    }
    co_return pod->id;
}

Task<Result<std::vector<Machine>>> RunPod::list(std::string fleet) {
    COMFYD_ON(executor_);
    auto machines = co_await pods();
    if (machines) {
        std::erase_if(*machines, [&](const Machine& machine) {
            return !is_of_fleet(machine.name, fleet);
        });
    }
    co_return machines;
}

// What may be asked of a pod depends on its status: 409 is a success where it is as wanted.
Task<Result<>> RunPod::act(std::string id, std::string action, Machine::State wanted) {
    auto done = co_await api_.call(
        {.method = "POST",
         .path = pod_path(id, "/action"),
         .body = json::object{{"action", action}},
         .meaning =
             [](const CloudRefusal& refusal) {
                 return refusal.status == 400 ? Code::out_of_stock : code_of_status(refusal.status);
             }}
    );
    if (done) {
        co_return Result<>();
    }
    if (done.error().code == Code::conflict) {
        auto pod = co_await api_.call({.path = pod_path(id)});
        const auto machine = pod ? read_pod(options_, *pod) : std::nullopt;
        const bool is_on_its_way =
            machine && (machine->state == wanted || (wanted == Machine::State::running &&
                                                     (machine->state == Machine::State::creating ||
                                                      machine->state == Machine::State::starting)));
        if (is_on_its_way) {
            co_return Result<>();
        }
    }
    co_return fail(std::move(done.error()));
}

Task<Result<>> RunPod::start(std::string id) {
    COMFYD_ON(executor_);
    return act(std::move(id), "start", Machine::State::running);
}

Task<Result<>> RunPod::stop(std::string id) {
    COMFYD_ON(executor_);
    return act(std::move(id), "stop", Machine::State::stopped);
}

Task<Result<>> RunPod::remove(std::string id) {
    COMFYD_ON(executor_);
    auto removed = co_await api_.call({.method = "DELETE", .path = pod_path(id)});
    const bool is_gone = removed || removed.error().code == Code::not_found;
    co_return is_gone ? Result<>() : fail(std::move(removed.error()));
}

Task<Result<std::string>> RunPod::logs(std::string id, int lines) {
    COMFYD_ON(executor_);
    const std::string query =
        "/logs?source=container&tail=" + std::to_string(std::clamp(lines, 1, kLogLinesMax));
    auto heard = co_await api_.listen(pod_path(id, query), kLogTime, kLogBytesMax);
    if (!heard) {
        co_return fail(std::move(heard.error()));
    }
    co_return read_log_events(*heard);
}

Task<> RunPod::end() {
    COMFYD_ON(executor_);
    api_.close_idle();
    co_return;
}

}  // namespace

Result<> check_runpod(const RunPodOptions& options) {
    const auto wrong = [&](std::string what) {
        return fail(Code::config_invalid, "provider '" + options.name + "': " + std::move(what));
    };
    if (options.key.empty()) {
        return wrong("key is missing");
    }
    auto url = check_cloud_url(options.url);
    if (!url) {
        return wrong("url: " + url.error().message);
    }
    const bool has_clouds = !options.clouds.empty() &&
                            std::ranges::all_of(options.clouds, [](const std::string& cloud) {
                                return cloud == "SECURE" || cloud == "COMMUNITY";
                            });
    if (!has_clouds) {
        return wrong("clouds must be of SECURE and COMMUNITY");
    }
    if (options.volume.empty() != options.volume_path.empty()) {
        return wrong("volume and volume_path belong together");
    }
    auto agents = check_cloud_url(agent_url(options.agent_url, "x", "1", "y").value_or(""));
    if (!agents) {  // their tokens go there
        return wrong("agent_url: " + agents.error().message);
    }
    return {};
}

Result<std::unique_ptr<MachineProvider>> make_runpod(
    Executor executor, RunPodOptions options, const Clock& clock
) {
    auto checked = check_runpod(options);
    if (!checked) {
        return fail(std::move(checked.error()));
    }
    return std::make_unique<RunPod>(executor, std::move(options), clock);
}

}  // namespace comfyd::fleet
