// What provider and kubelet say to an API server while Pods live and end, with what must come of
// it: said to a real one, which writes it down (tests/kubernetes), to that recording and to the
// double. Test code only.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "fleet/providers/kubernetes.hpp"
#include "fleet/providers/kubernetes_pods.hpp"
#include "fleet/providers/kubernetes_test_support.hpp"
#include "net/test_support.hpp"
#include "support/http.hpp"
#include "support/recorder.hpp"
#include "support/temp_dir.hpp"

namespace comfyd::fleet::test {

// How a server is reached, and as whom.
struct KubernetesPeer {
    std::string url;
    std::string token = "token-1";          // comfyd's
    std::string kubelet_token = "token-1";  // of who runs its Pods
    std::string name_space = kNamespace;
    std::string ca_file{};
    std::string certificate{};  // comfyd's, in place of a token
    std::string key{};
};

inline std::string kubeconfig_of(const KubernetesPeer& peer) {
    const auto member = [](const char* name, const std::string& value) {
        return value.empty() ? std::string() : std::string(name) + ": '" + value + "', ";
    };
    return "current-context: c\n"
           "clusters: [{name: k, cluster: {" +
           member("certificate-authority", peer.ca_file) + "server: '" + peer.url +
           "'}}]\n"
           "users: [{name: u, user: {" +
           member("client-certificate", peer.certificate) + member("client-key", peer.key) +
           member("token", peer.token) +
           "}}]\n"
           "contexts: [{name: c, context: {cluster: k, user: u, namespace: " +
           peer.name_space + "}}]\n";
}

// A provider on a thread of its own.
class KubernetesClient {
public:
    explicit KubernetesClient(const KubernetesPeer& peer, KubernetesOptions options = {}) {
        options.kubeconfig = folder_.write("config", kubeconfig_of(peer));
        open(std::move(options));
    }
    explicit KubernetesClient(KubernetesOptions options) { open(std::move(options)); }
    ~KubernetesClient() {
        loop_.run(provider_->end());
        std::promise<void> done;
        boost::asio::post(loop_.executor(), [&] {
            provider_.reset();
            done.set_value();
        });
        done.get_future().get();
    }
    KubernetesClient(const KubernetesClient&) = delete;
    KubernetesClient& operator=(const KubernetesClient&) = delete;

    static MachineOrder order(const std::string& instance, const std::string& fleet = "f") {
        MachineOrder made{
            .name = "comfyd-" + fleet + "-" + instance,
            .fleet = fleet,
            .instance = instance,
            .pool = "p"
        };
        made.made_from.image = "comfyui:1";
        made.secrets["COMFYD_WORKER_TOKEN"] = "worker-token-1";
        return made;
    }
    Result<std::string> create(MachineOrder wanted) {
        return loop_.run(provider_->create(std::move(wanted)));
    }
    Result<> remove(const std::string& id) { return loop_.run(provider_->remove(id)); }
    Result<std::string> logs(const std::string& id) { return loop_.run(provider_->logs(id, 5)); }
    Result<std::vector<Machine>> try_list(const std::string& fleet = "f") {
        return loop_.run(provider_->list(fleet));
    }
    std::vector<Machine> list(const std::string& fleet = "f") {
        auto machines = try_list(fleet);
        EXPECT_TRUE(machines) << machines.error().message;
        return machines.value_or(std::vector<Machine>());
    }
    Machine only() {
        const auto machines = list();
        EXPECT_EQ(machines.size(), 1u);
        return machines.size() == 1 ? machines.front() : Machine();
    }
    void on_change(std::function<void()> changed) {
        boost::asio::post(loop_.executor(), [this, changed = std::move(changed)] {
            provider_->on_change(changed);
        });
    }

private:
    void open(KubernetesOptions options) {
        auto made = make_kubernetes(loop_.executor(), std::move(options), clock_);
        if (!made) {
            throw std::runtime_error(made.error().message);
        }
        provider_ = std::move(*made);
    }

    support::TempDir folder_;
    SystemClock clock_;
    net::test::Loop loop_;
    std::unique_ptr<MachineProvider> provider_;
};

// What the cluster does with Pods, by the same API.
class PodHands {
public:
    explicit PodHands(const KubernetesPeer& peer) : http_(peer.url, peer.ca_file) {
        http_.set_header("Authorization", "Bearer " + peer.kubelet_token);
    }

    void add(const json::object& metadata) {
        const json::object container{{"name", "c"}, {"image", "i:1"}};
        const json::object pod{
            {"apiVersion", "v1"},
            {"kind", "Pod"},
            {"metadata", metadata},
            {"spec",
             {{"containers", json::array{container}}, {"automountServiceAccountToken", false}}}
        };
        must(http_.post_json(kPods, pod));
    }
    void bind(const std::string& pod) {
        must(http_.post_json(
            path(pod) + "/binding",
            json::object{
                {"apiVersion", "v1"},
                {"kind", "Binding"},
                {"metadata", {{"name", pod}}},
                {"target", {{"kind", "Node"}, {"name", "node-1"}}}
            }
        ));
    }
    void set_status(const std::string& pod, const json::object& status) {
        net::ClientRequest request{.method = "PATCH", .url = path(pod) + "/status"};
        request.headers.set("Content-Type", "application/merge-patch+json");
        request.body = json::serialize(json::object{{"status", status}});
        must(http_.send(std::move(request)));
    }
    void end(const std::string& pod) { must(http_.del(path(pod) + "?gracePeriodSeconds=0")); }
    // Of all Pods, now.
    std::string version() {
        const json::value list = must(http_.get(std::string(kPods) + "?limit=1"));
        return std::string(list.at("metadata").at("resourceVersion").as_string());
    }
    // What a watch from there tells, in the provider's words.
    std::string watch(const std::string& version) {
        return http_
            .get(
                std::string(kPods) + "?watch=1&allowWatchBookmarks=true&labelSelector=" +
                "comfyd.fleet&timeoutSeconds=1&resourceVersion=" + version
            )
            .body;
    }
    support::Reply get(const std::string& query) { return http_.get(kPods + query); }

private:
    static std::string path(const std::string& pod) { return std::string(kPods) + "/" + pod; }
    static json::value must(const support::Reply& reply) {
        if (!reply.ok()) {
            throw std::runtime_error(std::to_string(reply.status) + ": " + reply.body);
        }
        return reply.json();
    }

    support::Http http_;
};

inline json::object unschedulable() {
    const json::object condition{
        {"type", "PodScheduled"},
        {"status", "False"},
        {"reason", "Unschedulable"},
        {"message", "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."}
    };
    return {{"phase", "Pending"}, {"conditions", json::array{condition}}};
}

// The agent's container, in a state such as {"terminated": {…}}.
inline json::object with_agent(const char* phase, const json::object& state) {
    const json::object agent{
        {"name", "agent"},
        {"image", "comfyui:1"},
        {"imageID", ""},
        {"ready", false},
        {"restartCount", 0},
        {"state", state}
    };
    return {{"phase", phase}, {"containerStatuses", json::array{agent}}};
}

inline void play_the_life_of_pods(const KubernetesPeer& peer) {
    using State = Machine::State;
    using testing::HasSubstr;
    KubernetesOptions options;
    options.grace = std::chrono::seconds(30);
    KubernetesClient comfyd(peer, options);
    PodHands cluster(peer);
    EXPECT_TRUE(comfyd.list().empty());
    const std::string begin = cluster.version();

    // Made, and never twice.
    auto order = KubernetesClient::order("1");
    order.made_from.memory_bytes_max = 8ULL << 30;
    order.made_from.cpus_max = 1.5;
    order.made_from.disk_gb = 50;
    order.made_from.command = {"worker"};
    order.offer.gpu = "NVIDIA-H100-80GB-HBM3";
    EXPECT_EQ(comfyd.create(order), "comfyd-f-1");
    EXPECT_EQ(comfyd.create(order), "comfyd-f-1");
    EXPECT_EQ(comfyd.only().state, State::creating);
    cluster.set_status("comfyd-f-1", unschedulable());
    EXPECT_THAT(comfyd.only().reason, HasSubstr("Insufficient nvidia.com/gpu"));
    cluster.bind("comfyd-f-1");
    cluster.set_status(
        "comfyd-f-1", with_agent("Pending", {{"waiting", {{"reason", "ContainerCreating"}}}})
    );
    EXPECT_EQ(comfyd.only().state, State::pulling);
    cluster.set_status("comfyd-f-1", {{"phase", "Running"}, {"podIP", "10.1.2.3"}});
    EXPECT_EQ(comfyd.only().state, State::running);
    EXPECT_EQ(comfyd.only().url, "http://10.1.2.3:18188");
    EXPECT_TRUE(comfyd.only().made_at);

    // What is not of this fleet is neither seen nor taken.
    cluster.add({{"name", "comfyd-f-2"}});
    cluster.add({{"name", "comfyd-g-1"}, {"labels", {{"comfyd.fleet", "g"}}}});
    EXPECT_EQ(comfyd.only().name, "comfyd-f-1");
    EXPECT_EQ(comfyd.create(KubernetesClient::order("2")).error().code, Code::conflict);

    // Removed, it has its grace; then its node says that it has ended.
    EXPECT_TRUE(comfyd.remove("comfyd-f-1"));
    EXPECT_EQ(comfyd.only().state, State::running);
    EXPECT_TRUE(comfyd.only().reclaimed_at);
    EXPECT_TRUE(comfyd.remove("comfyd-f-1"));
    cluster.end("comfyd-f-1");
    EXPECT_TRUE(comfyd.list().empty());
    EXPECT_TRUE(comfyd.remove("comfyd-f-1")) << "it is gone already";

    // Those that end by themselves, cannot begin, or never had a node.
    for (const auto& [instance, status, state, reason] :
         {std::tuple{
              "3",
              with_agent("Failed", {{"terminated", {{"exitCode", 137}, {"reason", "OOMKilled"}}}}),
              State::failed,
              "OOMKilled, exit code 137"
          },
          std::tuple{
              "4",
              json::object{
                  {"phase", "Failed"}, {"reason", "Evicted"}, {"message", "The node was low"}
              },
              State::failed,
              "Evicted: The node was low"
          },
          std::tuple{
              "5",
              with_agent("Succeeded", {{"terminated", {{"exitCode", 0}, {"reason", "Completed"}}}}),
              State::stopped,
              ""
          }}) {
        const std::string name = std::string("comfyd-f-") + instance;
        EXPECT_EQ(comfyd.create(KubernetesClient::order(instance)), name);
        cluster.bind(name);
        cluster.set_status(name, status);
        EXPECT_EQ(comfyd.only().state, state) << instance;
        EXPECT_EQ(comfyd.only().reason, reason);
        EXPECT_TRUE(comfyd.remove(name));
        EXPECT_TRUE(comfyd.list().empty()) << instance;
    }
    EXPECT_EQ(comfyd.create(KubernetesClient::order("6")), "comfyd-f-6");
    EXPECT_TRUE(comfyd.remove("comfyd-f-6"));
    EXPECT_TRUE(comfyd.list().empty());

    // A watch from the beginning on tells all of it.
    PodWatch watch(begin);
    const auto heard = watch.take(cluster.watch(begin));
    ASSERT_TRUE(heard) << heard.error().message;
    EXPECT_TRUE(heard->has_changed);
    EXPECT_GT(std::stol(watch.version()), std::stol(begin));
}

// What a server says no to. `prepare` does to it what a step needs; a recording needs nothing.
inline void play_the_refusals(
    const KubernetesPeer& peer, const std::function<void(std::string_view)>& prepare
) {
    using testing::HasSubstr;
    KubernetesClient comfyd(peer);
    PodHands cluster(peer);
    prepare("two Pods");
    const std::string begin = cluster.version();

    prepare("a quota");
    const auto too_many = comfyd.create(KubernetesClient::order("1"));
    EXPECT_EQ(too_many.error().code, Code::out_of_stock) << too_many.error().message;
    prepare("no quota");
    auto order = KubernetesClient::order("1");
    order.made_from.image = " comfyui:1";
    const auto invalid = comfyd.create(order);
    EXPECT_EQ(invalid.error().code, Code::invalid_argument);
    EXPECT_THAT(invalid.error().message, HasSubstr("trailing whitespace"));
    EXPECT_EQ(comfyd.logs("comfyd-f-1").error().code, Code::not_found);
    KubernetesOptions unknown;
    unknown.runtime_class = "nobody-knows";
    KubernetesClient with_class(peer, unknown);
    const auto no_class = with_class.create(KubernetesClient::order("1"));
    EXPECT_EQ(no_class.error().code, Code::invalid_argument) << "all of it, but not its rights";
    EXPECT_THAT(no_class.error().message, HasSubstr("nobody-knows"));

    // Rights end with the namespace, and with the token.
    KubernetesPeer elsewhere = peer;
    elsewhere.name_space = "default";
    KubernetesClient stranger(elsewhere);
    EXPECT_EQ(stranger.create(KubernetesClient::order("1")).error().code, Code::forbidden);
    EXPECT_EQ(stranger.try_list().error().code, Code::forbidden);
    KubernetesPeer unauthorized = peer;
    unauthorized.token = "not-a-token";
    KubernetesClient nobody(unauthorized);
    EXPECT_EQ(nobody.try_list().error().code, Code::unauthorized);

    // What the server has forgotten: the rest of a list, and where a watch would go on.
    constexpr int kGone = 410;
    const auto first = cluster.get("?limit=1&labelSelector=comfyd.fleet%3Df");
    const json::value next = first.json_at("/metadata/continue");
    ASSERT_TRUE(next.is_string()) << first.body;
    prepare("compacted");
    const auto second = cluster.get(
        "?limit=1&labelSelector=comfyd.fleet%3Df&continue=" +
        net::percent_encode(std::string(next.get_string()))
    );
    EXPECT_EQ(second.status, kGone) << second.body;
    EXPECT_EQ(second.json_at("/reason"), "Expired");
    PodWatch watch(begin);
    const auto heard = watch.take(cluster.watch(begin) + "\n");
    ASSERT_TRUE(heard) << heard.error().message;
    EXPECT_TRUE(heard->is_too_old);
}

// Of an answer, what there is for comfyd in it: the rest differs from server to server.
inline json::value gist_of(const json::value& answer) {
    if (const json::array* lines = answer.if_array()) {
        json::array gists;
        for (const json::value& line : *lines) {
            if (line.at("type") != "BOOKMARK") {
                gists.push_back(json::array{line.at("type"), gist_of(line.at("object"))});
            }
        }
        return gists;
    }
    const json::object* object = answer.if_object();
    if (object == nullptr) {
        return answer;
    }
    const auto text = [](const json::value* in, std::string_view name) {
        const json::value* found =
            in != nullptr && in->is_object() ? json::find(in->get_object(), name) : nullptr;
        return found != nullptr ? *found : json::value();
    };
    json::object gist;
    if (const json::value* items = json::find(*object, "items")) {
        gist["has_version"] = text(json::find(*object, "metadata"), "resourceVersion").is_string();
        json::array& pods = gist["pods"].emplace_array();
        for (const json::value& item : items->as_array()) {
            pods.push_back(gist_of(item));
        }
    } else if (text(&answer, "kind") == "Status") {
        for (const char* name : {"status", "reason", "message", "code"}) {
            gist[name] = text(&answer, name);
        }
    } else {
        const json::value* metadata = json::find(*object, "metadata");
        const json::value* status = json::find(*object, "status");
        gist["name"] = text(metadata, "name");
        gist["labels"] = text(metadata, "labels");
        gist["has_version"] = text(metadata, "resourceVersion").is_string();
        gist["was_made"] = text(metadata, "creationTimestamp").is_string();
        gist["is_ending"] = text(metadata, "deletionTimestamp").is_string();
        for (const char* name : {"phase", "podIP", "reason"}) {
            gist[name] = text(status, name);
        }
    }
    return gist;
}

}  // namespace comfyd::fleet::test
