#include "fleet/providers/kubernetes.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "base/on_executor.hpp"
#include "base/text.hpp"
#include "comfy/members.hpp"
#include "fleet/providers/cloud_api.hpp"
#include "fleet/providers/foreign_words.hpp"
#include "fleet/providers/kubernetes_access.hpp"
#include "fleet/providers/kubernetes_pods.hpp"
#include "fleet/providers/machine_names.hpp"
#include "net/http.hpp"

namespace comfyd::fleet {
namespace {

constexpr int kPageSize = 500;
constexpr int kPagesMax = 100;
constexpr int kGone = 410;
constexpr std::chrono::seconds kWatch{300};  // that the server ends it after
constexpr Millis kPauseMin{500};
constexpr Millis kPauseMax{15'000};
constexpr std::size_t kLogBytesMax = 1024 * 1024;
constexpr Millis kLogTime{15'000};

bool is_too_old(const Error& error) {
    const json::value* status = json::find(error.details, "status");
    return status != nullptr && *status == kGone;
}

class Kubernetes final : public MachineProvider {
public:
    Kubernetes(
        Executor executor, KubernetesOptions options, KubernetesAccess access, const Clock& clock
    )
        : executor_(executor),
          options_(std::move(options)),
          access_(std::move(access)),
          token_(access_.token_file, clock),
          api_(executor, api_options(), clock),
          background_(executor) {}

    Result<> identify() {
        return access_.identity.ca_file.empty() && access_.identity.certificate.empty()
                   ? Result<>()
                   : api_.identify(access_.identity);
    }

    std::string_view name() const override { return options_.name; }
    MachineTraits traits() const override { return {.dials_in = options_.dials_in}; }

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
    struct Pods {
        std::vector<Machine> machines;
        std::string version;  // that a watch goes on from
    };

    CloudApiOptions api_options() {
        CloudApiOptions made{.service = "Kubernetes", .url = access_.url, .key = access_.token};
        if (!access_.token_file.empty()) {
            made.key_now = [this] { return token_.now(); };
        }
        return made;
    }
    std::string pods_path(std::string_view rest = {}) const {
        return "/api/v1/namespaces/" + net::percent_encode(access_.name_space) + "/pods" +
               std::string(rest);
    }
    std::string pod_path(const std::string& pod, std::string_view rest = {}) const {
        return pods_path("/" + net::percent_encode(pod)) + std::string(rest);
    }
    Task<Result<Pods>> pods(std::string selector);
    Task<Result<std::string>> adopt(const MachineOrder& order);
    Task<> watch();
    Task<Result<>> watch_once(PodWatch& watch);
    void tell() const {
        if (changed_) {
            changed_();
        }
    }

    Executor executor_;
    const KubernetesOptions options_;
    const KubernetesAccess access_;
    RotatingToken token_;
    CloudApi api_;
    std::function<void()> changed_;
    bool watches_ = false;
    TaskGroup background_;
};

// What nodes have is not asked for: rights for that are not given. A Pod that no node has room for
// waits, and says so.
Task<Result<std::vector<Offer>>> Kubernetes::offers(OfferWish wish) {
    COMFYD_ON(executor_);
    std::vector<Offer> offers;
    const bool is_here =
        wish.market == Market::on_demand &&
        (wish.region.empty() || lower(wish.region) == lower(options_.region)) &&
        (!wish.usd_per_hour_max || options_.usd_per_hour.value_or(0) <= *wish.usd_per_hour_max);
    if (!is_here) {
        co_return offers;
    }
    std::multimap<std::size_t, std::string> kinds;
    for (const std::string& gpu : options_.gpus) {
        const auto place = place_of_gpu(wish.gpus, {gpu});
        if (place) {
            kinds.emplace(*place, gpu);
        }
    }
    if (options_.gpus.empty() && wish.gpus.empty()) {
        kinds.emplace(0, "");  // any
    }
    for (const auto& [place, gpu] : kinds) {
        Offer offer{.id = gpu.empty() ? "any" : gpu, .gpu = gpu, .region = options_.region};
        offer.usd_per_hour = options_.usd_per_hour;
        offers.push_back(std::move(offer));
    }
    co_return offers;
}

Task<Result<Kubernetes::Pods>> Kubernetes::pods(std::string selector) {
    Pods all;
    std::string next;
    for (int page = 0; page < kPagesMax; ++page) {
        std::string path = pods_path("?limit=" + std::to_string(kPageSize)) +
                           "&labelSelector=" + net::percent_encode(selector);
        path += next.empty() ? "" : "&continue=" + net::percent_encode(next);
        auto answer =
            co_await api_.call({.path = std::move(path), .meaning = meaning_of_kubernetes});
        if (!answer && is_too_old(answer.error()) && !next.empty()) {
            next.clear();  // the list has changed too much since its first page
            all = {};
            continue;
        }
        if (!answer) {
            co_return fail(std::move(answer.error()));
        }
        const json::object* body = answer->if_object();
        const json::array* items = body != nullptr ? comfy::array_of(*body, "items") : nullptr;
        if (items == nullptr) {  // nothing there would be taken for everything gone
            co_return fail(Code::protocol_error, "Kubernetes: the answer is no list of Pods");
        }
        for (const json::value& item : *items) {
            auto machine = read_pod_object(options_, item);
            if (machine) {
                all.machines.push_back(std::move(*machine));
            }
        }
        const json::object* metadata = comfy::object_of(*body, "metadata");
        all.version = metadata != nullptr ? comfy::text_of(*metadata, "resourceVersion") : "";
        next = metadata != nullptr ? comfy::text_of(*metadata, "continue") : "";
        if (next.empty()) {
            co_return all;
        }
    }
    co_return fail(Code::protocol_error, "Kubernetes: the list of Pods has no end");
}

Task<Result<std::string>> Kubernetes::create(MachineOrder order) {
    COMFYD_ON(executor_);
    auto manifest = make_pod_manifest(options_, order);
    if (!manifest) {
        co_return fail(std::move(manifest.error()));
    }
    auto made = co_await api_.call(
        {.method = "POST",
         .path = pods_path(),
         .body = std::move(*manifest),
         .kind = CloudCall::Kind::once,
         .secrets = secrets_of(order),
         .meaning = meaning_of_kubernetes}
    );
    if (made) {
        co_return order.name;
    }
    if (made.error().code == Code::conflict) {
        auto adopted = co_await adopt(order);
        co_return adopted;
    }
    co_return fail(std::move(made.error()));
}

// Its name is taken: by itself, or by a stranger.
Task<Result<std::string>> Kubernetes::adopt(const MachineOrder& order) {
    auto found = co_await api_.call({.path = pod_path(order.name)});
    if (!found) {
        co_return fail(std::move(found.error()));
    }
    const json::object* pod = found->if_object();
    const json::object* metadata = pod != nullptr ? comfy::object_of(*pod, "metadata") : nullptr;
    const json::object* labels =
        metadata != nullptr ? comfy::object_of(*metadata, "labels") : nullptr;
    const bool is_ours = labels != nullptr &&
                         comfy::text_of(*labels, "comfyd.fleet") == order.fleet &&
                         comfy::text_of(*labels, "comfyd.instance") == order.instance;
    if (!is_ours) {
        co_return fail(Code::conflict, "a Pod that is not ours has the name '" + order.name + "'");
    }
    co_return order.name;
}

Task<Result<std::vector<Machine>>> Kubernetes::list(std::string fleet) {
    COMFYD_ON(executor_);
    auto found = co_await pods("comfyd.fleet=" + fleet);
    if (!found) {
        co_return fail(std::move(found.error()));
    }
    co_return std::move(found->machines);
}

Task<Result<>> Kubernetes::start(std::string id) {
    COMFYD_ON(executor_);
    co_return fail(
        Code::invalid_argument,
        "the Pod '" + presentable(id) + "' cannot be started again: remove it and make another"
    );
}

Task<Result<>> Kubernetes::stop(std::string id) {
    COMFYD_ON(executor_);
    co_return fail(
        Code::invalid_argument, "the Pod '" + presentable(id) + "' cannot be stopped: remove it"
    );
}

Task<Result<>> Kubernetes::remove(std::string id) {
    COMFYD_ON(executor_);
    const std::string query = "?gracePeriodSeconds=" + std::to_string(options_.grace.count());
    auto removed = co_await api_.call({.method = "DELETE", .path = pod_path(id, query)});
    const bool is_gone = removed || removed.error().code == Code::not_found;
    co_return is_gone ? Result<>() : fail(std::move(removed.error()));
}

Task<Result<std::string>> Kubernetes::logs(std::string id, int lines) {
    COMFYD_ON(executor_);
    const std::string query = "/log?limitBytes=" + std::to_string(kLogBytesMax) +
                              "&tailLines=" + std::to_string(std::clamp(lines, 1, 10'000));
    return api_.listen(pod_path(id, query), kLogTime, kLogBytesMax);
}

void Kubernetes::on_change(std::function<void()> changed) {
    COMFYD_ON(executor_);
    changed_ = std::move(changed);
    if (!std::exchange(watches_, true)) {
        background_.spawn("kubernetes watch", watch());
    }
}

// Lists once, and then only where the watch cannot go on from what it has.
Task<> Kubernetes::watch() {
    std::optional<PodWatch> watch;
    Millis pause = kPauseMin;
    while (true) {
        Result<> went = Result<>();
        if (!watch) {
            const auto listed = co_await pods("comfyd.fleet");
            if (listed) {
                watch.emplace(listed->version);
                tell();
            } else {
                went = fail(listed.error());
            }
        }
        if (watch) {
            went = co_await watch_once(*watch);
        }
        const bool stop = co_await is_cancelled();
        if (stop) {
            co_return;
        }
        if (!went && is_too_old(went.error())) {
            watch.reset();
        }
        pause = went ? kPauseMin : std::min(pause * 2, kPauseMax);
        const bool slept = co_await sleep_for(pause);
        if (!slept) {
            co_return;
        }
    }
}

Task<Result<>> Kubernetes::watch_once(PodWatch& watch) {
    // What was cut off in the middle of a line is told again.
    PodWatch from(watch.version());
    watch = from;
    const std::string path = pods_path("?watch=1&allowWatchBookmarks=true&labelSelector=") +
                             "comfyd.fleet&timeoutSeconds=" + std::to_string(kWatch.count()) +
                             "&resourceVersion=" + net::percent_encode(watch.version());
    auto went = co_await api_.stream(
        path,
        kWatch + std::chrono::seconds(30),
        [&](std::string_view piece) -> Result<> {
            const auto heard = watch.take(piece);
            if (!heard) {
                return fail(heard.error());
            }
            if (heard->has_changed) {
                tell();
            }
            return heard->is_too_old
                       ? fail(Code::not_found, "the watch is too old", {{"status", kGone}})
                       : Result<>();
        }
    );
    co_return went;
}

Task<> Kubernetes::end() {
    COMFYD_ON(executor_);
    changed_ = nullptr;
    background_.cancel();
    co_await background_.join();
    api_.close_idle();
}

}  // namespace

Result<std::unique_ptr<MachineProvider>> make_kubernetes(
    Executor executor, KubernetesOptions options, const Clock& clock
) {
    const auto wrong = [&](const std::string& what) {
        return fail(Code::config_invalid, "provider '" + options.name + "': " + what);
    };
    auto access = options.kubeconfig.empty() ? read_account(options.account_folder)
                                             : read_kubeconfig(options.kubeconfig, options.context);
    if (!access) {
        return wrong(access.error().message);
    }
    if (!options.name_space.empty()) {
        access->name_space = options.name_space;
    }
    auto url = check_cloud_url(access->url);
    if (!url) {
        return wrong(url.error().message);
    }
    if (options.grace.count() < 0) {
        return wrong("grace cannot be negative");
    }
    for (const auto& [claim, path] : options.claims) {
        if (!path.starts_with('/')) {
            return wrong("the claim '" + presentable(claim) + "' must be mounted at a path /…");
        }
    }
    auto made = std::make_unique<Kubernetes>(executor, options, std::move(*access), clock);
    auto identified = made->identify();
    if (!identified) {
        return wrong(identified.error().message);
    }
    return made;
}

}  // namespace comfyd::fleet
