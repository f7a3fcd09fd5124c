// Against a double that plays an API server's side of conversations; tests/kubernetes asks a real
// one.
#include "fleet/providers/kubernetes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "base/crypto.hpp"
#include "fleet/providers/kubernetes_access.hpp"
#include "fleet/providers/kubernetes_pods.hpp"
#include "fleet/providers/kubernetes_test_support.hpp"
#include "net/test_support.hpp"
#include "support/kubernetes_conversation.hpp"
#include "support/temp_dir.hpp"
#include "support/wait.hpp"

namespace comfyd::fleet {
namespace {

using State = Machine::State;
using support::wait_until;
using test::ApiServer;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class KubernetesTest : public testing::Test {
protected:
    KubernetesTest() {
        folder_.write("token", "token-1\n");
        folder_.write(
            "config",
            "current-context: here\nclusters: [{name: c, cluster: {server: '" + server_.url() +
                "'}}]\nusers: [{name: u, user: {tokenFile: " + (folder_ / "token") +
                "}}]\ncontexts: [{name: here, context: {cluster: c, user: u, namespace: " +
                test::kNamespace + "}}]\n"
        );
        options_.kubeconfig = folder_ / "config";
        options_.grace = std::chrono::seconds(30);
        open();
    }
    ~KubernetesTest() override { close(); }

    void open() {
        auto made = make_kubernetes(loop_.executor(), options_, clock_);
        ASSERT_TRUE(made) << made.error().message;
        provider_ = std::move(*made);
    }
    void close() {
        loop_.run(provider_->end());
        std::promise<void> done;
        boost::asio::post(loop_.executor(), [&] {
            provider_.reset();
            done.set_value();
        });
        done.get_future().get();
    }
    static MachineOrder order(const std::string& instance) {
        MachineOrder made{
            .name = "comfyd-f-" + instance, .fleet = "f", .instance = instance, .pool = "p"
        };
        made.made_from.image = "comfyui:1";
        made.secrets["COMFYD_WORKER_TOKEN"] = "worker-token-1";
        return made;
    }
    Result<std::string> create(MachineOrder wanted) {
        return loop_.run(provider_->create(std::move(wanted)));
    }
    std::vector<Machine> list(const std::string& fleet = "f") {
        auto machines = loop_.run(provider_->list(fleet));
        EXPECT_TRUE(machines) << machines.error().message;
        return machines.value_or(std::vector<Machine>());
    }

    support::TempDir folder_;
    ApiServer server_;
    ManualClock clock_;
    net::test::Loop loop_;
    KubernetesOptions options_;
    std::unique_ptr<MachineProvider> provider_;
};

TEST_F(KubernetesTest, LivesFromCreateToRemove) {
    auto wanted = order("1");
    wanted.made_from.memory_bytes_max = 1024;
    wanted.made_from.cpus_max = 1.5;
    wanted.made_from.disk_gb = 50;
    wanted.made_from.command = {"worker"};
    wanted.offer.gpu = "NVIDIA-H100-80GB-HBM3";
    EXPECT_EQ(create(wanted), "comfyd-f-1");
    const json::object pod = server_.last_created();
    const json::object& spec = pod.at("spec").as_object();
    const json::object& agent = spec.at("containers").as_array().at(0).as_object();
    EXPECT_EQ(
        json::serialize(agent.at("resources")),
        R"({"limits":{"nvidia.com/gpu":"1","memory":"1024","cpu":"1500m","ephemeral-storage":"50Gi"}})"
    );
    EXPECT_EQ(json::serialize(agent.at("args")), R"(["worker"])");
    EXPECT_EQ(agent.count("command"), 0u);
    EXPECT_EQ(spec.at("restartPolicy"), "Never");
    EXPECT_EQ(spec.at("automountServiceAccountToken"), false);
    EXPECT_EQ(spec.at("nodeSelector").at("nvidia.com/gpu.product"), "NVIDIA-H100-80GB-HBM3");
    EXPECT_EQ(
        json::serialize(spec.at("tolerations")),
        R"([{"key":"nvidia.com/gpu","operator":"Exists","effect":"NoSchedule"}])"
    );
    EXPECT_EQ(list().at(0).state, State::creating);
    server_.put("comfyd-f-1", "f", {{"phase", "Running"}, {"podIP", "10.1.2.3"}});
    EXPECT_EQ(list().at(0).state, State::running);
    EXPECT_EQ(list().at(0).url, "http://10.1.2.3:18188");
    EXPECT_EQ(loop_.run(provider_->logs("comfyd-f-1", 5)), "one\ntwo\n");
    EXPECT_FALSE(provider_->traits().can_park);
    EXPECT_FALSE(loop_.run(provider_->stop("comfyd-f-1")));
    EXPECT_TRUE(loop_.run(provider_->remove("comfyd-f-1")));
    EXPECT_TRUE(loop_.run(provider_->remove("comfyd-f-1"))) << "it is gone already";
    EXPECT_EQ(server_.count("gracePeriodSeconds=30"), 2);
    EXPECT_TRUE(list().empty());
}

TEST_F(KubernetesTest, ANameThatIsTakenIsAdoptedIfItIsOurs) {
    ASSERT_TRUE(create(order("1")));
    EXPECT_EQ(create(order("1")), "comfyd-f-1");
    server_.put("comfyd-f-2", "g", {});
    EXPECT_EQ(create(order("2")).error().code, Code::conflict);
}

TEST_F(KubernetesTest, RefusalsAreToldApart) {
    const auto refused = [&](int code, const char* message) {
        server_.refuse_creates(code, {{"kind", "Status"}, {"message", message}, {"code", code}});
        const auto made = create(order("1"));
        EXPECT_THAT(made.error().message, HasSubstr(message));
        return made.error().code;
    };
    EXPECT_EQ(refused(403, "pods is forbidden: User \"x\" cannot create"), Code::forbidden);
    EXPECT_EQ(refused(403, "pods \"a\" is forbidden: exceeded quota: gpus"), Code::out_of_stock);
    EXPECT_EQ(
        refused(403, "pods \"a\" is forbidden: maximum memory usage per Pod is 8Gi"),
        Code::invalid_argument
    );
    EXPECT_EQ(refused(403, "no"), Code::forbidden);
    EXPECT_EQ(refused(422, "Pod \"a\" is invalid"), Code::invalid_argument);
    EXPECT_EQ(refused(500, "etcd is away"), Code::upstream_error);
    EXPECT_EQ(server_.count("POST "), 6);
    server_.refuse_creates(400, {{"message", "bad env worker-token-1 token-1"}});
    EXPECT_THAT(create(order("1")).error().message, Not(HasSubstr("worker-token-1")));
    auto wanted = order("1");
    wanted.name = "Comfyd_F_1";
    EXPECT_EQ(create(wanted).error().code, Code::invalid_argument);
}

TEST_F(KubernetesTest, AListOfManyPagesAndOneThatIsTooLate) {
    for (const std::string instance : {"1", "2", "3", "4", "5"}) {
        ASSERT_TRUE(create(order(instance)));
    }
    server_.put("comfyd-g-1", "g", {});
    EXPECT_EQ(list().size(), 5u);
    server_.lose_a_page();
    EXPECT_EQ(list().size(), 5u) << "from the beginning, and none twice";
    EXPECT_EQ(list("g").size(), 1u);
}

TEST_F(KubernetesTest, TheWatchSurvivesWhateverEndsIt) {
    std::atomic<int> changes = 0;
    boost::asio::post(loop_.executor(), [&] { provider_->on_change([&] { ++changes; }); });
    const auto is_heard = [&](const char* phase) {
        const int before = changes;
        server_.put("comfyd-f-1", "f", {{"phase", phase}});
        return wait_until([&] { return changes > before; });
    };
    ASSERT_TRUE(wait_until([&] { return server_.count("watch=1") == 1; }));
    EXPECT_TRUE(is_heard("Pending"));
    EXPECT_EQ(server_.count("limit="), 1);
    // Ended in good order, and cut off in the middle of a line: it goes on from where it was.
    server_.end_watches({"cut"});
    ASSERT_TRUE(wait_until([&] { return server_.count("watch=1") == 3; }));
    EXPECT_TRUE(is_heard("Running"));
    EXPECT_EQ(server_.count("limit="), 1) << "without another list";
    EXPECT_THAT(server_.asked().back(), HasSubstr("resourceVersion=101"));
    // Too old, told in both ways: a new list.
    server_.end_watches({"gone"});
    ASSERT_TRUE(wait_until([&] { return server_.count("limit=") == 2; }));
    ASSERT_TRUE(wait_until([&] { return server_.count("watch=1") == 5; }));
    EXPECT_TRUE(is_heard("Pending"));
    server_.end_watches({"error"});
    ASSERT_TRUE(wait_until([&] { return server_.count("limit=") == 3; }));
    EXPECT_TRUE(is_heard("Running"));
}

TEST_F(KubernetesTest, ATokenThatChangesIsReadAgain) {
    ASSERT_TRUE(create(order("1")));
    server_.set_token("token-2");
    EXPECT_EQ(loop_.run(provider_->list("f")).error().code, Code::unauthorized);
    folder_.write("token", "token-2\n");
    clock_.advance(std::chrono::minutes(2));
    EXPECT_EQ(list().size(), 1u);
    // A moment without it, while it is written.
    std::filesystem::remove(folder_ / "token");
    clock_.advance(std::chrono::minutes(2));
    EXPECT_EQ(list().size(), 1u);
}

TEST_F(KubernetesTest, OffersAreTheKindsOfItsNodes) {
    close();
    options_.gpus = {"NVIDIA-A10", "NVIDIA-H100-80GB-HBM3"};
    options_.usd_per_hour = 1;
    open();
    const auto offers = loop_.run(provider_->offers({.provider = "", .gpus = {"H100", "A10"}}));
    ASSERT_EQ(offers->size(), 2u);
    EXPECT_EQ((*offers)[0].gpu, "NVIDIA-H100-80GB-HBM3");
    EXPECT_EQ(loop_.run(provider_->offers({.provider = "", .gpus = {"L4"}}))->size(), 0u);
    EXPECT_EQ(
        loop_.run(provider_->offers({.provider = "", .gpus = {}, .market = Market::spot}))->size(),
        0u
    );
}

Machine pod_with(const std::string& status, const std::string& metadata = "") {
    return *read_pod_object(
        {},
        *json::parse(
            R"({"metadata":{"name":"a","labels":{"comfyd.port":"1"})" + metadata +
            R"(},"status":)" + status + "}"
        )
    );
}

TEST(KubernetesPods, WhatTheirStatusMeans) {
    EXPECT_EQ(pod_with("{}").state, State::creating);
    const Machine unplaced = pod_with(
        R"({"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/3 nodes are available: 3 Insufficient nvidia.com/gpu."}]})"
    );
    EXPECT_EQ(unplaced.state, State::creating);
    EXPECT_THAT(unplaced.reason, HasSubstr("Insufficient nvidia.com/gpu"));
    const auto waiting = [](const char* reason) {
        return pod_with(
            R"({"phase":"Pending","containerStatuses":[{"state":{"waiting":{"reason":")" +
            std::string(reason) + R"(","message":"m"}}}]})"
        );
    };
    EXPECT_EQ(waiting("ContainerCreating").state, State::pulling);
    EXPECT_EQ(waiting("ImagePullBackOff").state, State::failed);
    EXPECT_EQ(waiting("ErrImagePull").reason, "ErrImagePull: m");
    EXPECT_EQ(pod_with(R"({"phase":"Succeeded"})").state, State::stopped);
    const Machine failed = pod_with(
        R"({"phase":"Failed","containerStatuses":[{"state":{"terminated":{"reason":"OOMKilled","exitCode":137}}}]})"
    );
    EXPECT_EQ(failed.state, State::failed);
    EXPECT_EQ(failed.reason, "OOMKilled, exit code 137");
    EXPECT_EQ(
        pod_with(R"({"phase":"Failed","reason":"Evicted","message":"disk"})").reason,
        "Evicted: disk"
    );
    const Machine going = pod_with(
        R"({"phase":"Running","podIP":"::1"})", R"(,"deletionTimestamp":"2026-11-15T05:10:56Z")"
    );
    EXPECT_EQ(going.state, State::running) << "for as long as its grace is";
    EXPECT_EQ(going.reclaimed_at, parse_rfc3339("2026-11-15T05:10:56Z"));
    EXPECT_EQ(going.url, "http://[::1]:1");
    EXPECT_EQ(
        pod_with(R"({"phase":"Pending"})", R"(,"deletionTimestamp":"2026-11-15T05:10:56Z")").state,
        State::stopping
    );
    for (const char* text :
         {"null", "[]", "{}", R"({"metadata":7})", R"({"metadata":{"name":7}})"}) {
        EXPECT_FALSE(read_pod_object({}, *json::parse(text))) << text;
    }
    EXPECT_EQ(
        pod_with(R"({"phase":"Pending","conditions":[7],"containerStatuses":[7]})").state,
        State::creating
    );
}

// What a real API server (1.20) has said: scripts/kubernetes.sh asks it again.
json::array recorded(const std::string& name) {
    const std::string file = COMFYD_TEST_DATA "/providers/kubernetes/" + name + ".json";
    return json::parse(support::read_file(file))->at("said").as_array();
}

TEST(KubernetesConversation, TheLifeOfPodsIsUnderstoodAsARealServerTellsIt) {
    const support::Replay server(recorded("life"));
    test::play_the_life_of_pods({.url = server.url()});
    EXPECT_EQ(server.wrong(), "");
}

TEST(KubernetesConversation, ItsRefusalsAreUnderstood) {
    const support::Replay server(recorded("refusals"));
    test::play_the_refusals({.url = server.url()}, [](std::string_view) {});
    EXPECT_EQ(server.wrong(), "");
}

TEST(KubernetesConversation, TheDoubleSaysWhatARealServerSays) {
    const ApiServer server;
    const support::Recorder recorder(server.url());
    test::play_the_life_of_pods({.url = recorder.url()});
    const json::array said = recorder.said();
    const json::array real = recorded("life");
    ASSERT_EQ(said.size(), real.size());
    for (std::size_t i = 0; i < real.size(); ++i) {
        EXPECT_EQ(said[i].at("status"), real[i].at("status")) << json::serialize(real[i]);
        EXPECT_EQ(test::gist_of(said[i].at("answer")), test::gist_of(real[i].at("answer")))
            << i << ": " << json::serialize(real[i].at("target"));
    }
}

TEST(KubernetesRole, HasNoMoreThanIsUsed) {
    const std::string role =
        support::read_file(COMFYD_TEST_DATA "/../../deploy/kubernetes/fleet-role.yaml");
    EXPECT_THAT(
        role, HasSubstr("resources: [pods]\n    verbs: [get, list, watch, create, delete]")
    );
    EXPECT_THAT(role, HasSubstr("resources: [pods/log]\n    verbs: [get]"));
    EXPECT_THAT(role, Not(HasSubstr("ClusterRole")));
    EXPECT_THAT(role, Not(HasSubstr("\"*\"")));
}

TEST(KubernetesAccount, OfAPodAndOfAFile) {
    support::TempDir folder;
    ::unsetenv("KUBERNETES_SERVICE_HOST");
    EXPECT_THAT(read_account(folder.path().string()).error().message, HasSubstr("runs in no Pod"));
    ::setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
    ::setenv("KUBERNETES_SERVICE_PORT_HTTPS", "6443", 1);
    EXPECT_THAT(read_account(folder.path().string()).error().message, HasSubstr("token"));
    folder.write("token", "t");
    folder.write("namespace", "ns\n");
    const auto account = read_account(folder.path().string());
    ASSERT_TRUE(account);
    EXPECT_EQ(account->url, "https://10.0.0.1:6443");
    EXPECT_EQ(account->name_space, "ns");
    EXPECT_EQ(account->identity.ca_file, folder / "ca.crt");
    ::unsetenv("KUBERNETES_SERVICE_HOST");
    ::unsetenv("KUBERNETES_SERVICE_PORT_HTTPS");

    const std::string file = folder.write(
        "config",
        "clusters:\n- {name: c, cluster: {server: 'https://k:6443', certificate-authority-data: " +
            to_base64("PEM") +
            ", tls-server-name: kubernetes}}\n- {name: d}\nusers:\n"
            "- {name: u, user: {token: t, client-certificate: cert.pem, client-key: "
            "/abs/key.pem}}\n"
            "- {name: e, user: {exec: {command: aws}}}\ncontexts:\n"
            "- {name: x, context: {cluster: c, user: u, namespace: n}}\n"
            "- {name: y, context: {cluster: c, user: e}}\n- {name: z, context: {cluster: d}}\n"
    );
    const auto access = read_kubeconfig(file, "x");
    ASSERT_TRUE(access) << access.error().message;
    EXPECT_EQ(access->url, "https://k:6443");
    EXPECT_EQ(access->token, "t");
    EXPECT_EQ(support::read_file(access->identity.ca_file), "PEM");
    EXPECT_EQ(access->identity.certificate, folder / "cert.pem");
    EXPECT_EQ(access->identity.key, "/abs/key.pem");
    EXPECT_EQ(access->identity.server_name, "kubernetes");
    EXPECT_THAT(read_kubeconfig(file, "y").error().message, HasSubstr("'exec'"));
    for (const char* context : {"z", "nobody", ""}) {
        EXPECT_THAT(read_kubeconfig(file, context).error().message, HasSubstr("no context"));
    }
    for (const char* text : {"[", "a: [", "7", "clusters: 7\ncontexts: {}", "\t", "- x"}) {
        const auto broken = read_kubeconfig(folder.write("broken", text), "x");
        EXPECT_EQ(broken.error().code, Code::config_invalid) << text;
    }
    EXPECT_FALSE(read_kubeconfig(folder / "nowhere", ""));
}

}  // namespace
}  // namespace comfyd::fleet
