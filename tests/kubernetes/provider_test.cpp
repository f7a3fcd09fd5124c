// The provider `kubernetes` and a real API server, with the rights of
// deploy/kubernetes/fleet-role.yaml and no others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <future>

#include "control_plane.hpp"
#include "support/fault_proxy.hpp"
#include "support/kubernetes_conversation.hpp"

namespace comfyd::test {
namespace {

using fleet::KubernetesOptions;
using fleet::Machine;
using fleet::test::gist_of;
using fleet::test::KubernetesClient;
using fleet::test::KubernetesPeer;
using support::FaultProxy;
using support::Recorder;
using support::wait_until;
using testing::HasSubstr;

constexpr const char* kAccount = "comfyd-fleet";
constexpr std::chrono::seconds kLong{120};

// Who wrote which member of an object when: half of its bytes, and nothing that anybody reads.
json::value without_managers(json::value from) {
    if (json::array* array = from.if_array()) {
        for (json::value& one : *array) {
            one = without_managers(std::move(one));
        }
    } else if (json::object* object = from.if_object()) {
        object->erase("managedFields");
        for (auto& [name, value] : *object) {
            value = without_managers(std::move(value));
        }
    }
    return from;
}

// Writes down what was said, where that is wished; it is what was recorded before in any case.
void keep(const std::string& name, const json::array& said) {
    const std::string file = COMFYD_TEST_DATA "/providers/kubernetes/" + name + ".json";
    if (std::getenv("COMFYD_RECORD") != nullptr) {
        std::filesystem::create_directories(std::filesystem::path(file).parent_path());
        std::ofstream out(file);
        out << "{\"server\": \"kube-apiserver v1.20.2\", \"said\": [\n";
        for (std::size_t i = 0; i < said.size(); ++i) {
            out << json::serialize(without_managers(said[i]))
                << (i + 1 < said.size() ? ",\n" : "\n");
        }
        out << "]}\n";
    }
    const json::array before = json::parse(support::read_file(file))->at("said").as_array();
    ASSERT_EQ(said.size(), before.size()) << "COMFYD_RECORD=1 writes it down anew";
    for (std::size_t i = 0; i < said.size(); ++i) {
        EXPECT_EQ(said[i].at("status"), before[i].at("status"));
        if (said[i].at("status") != 410) {  // whose message has versions
            EXPECT_EQ(gist_of(said[i].at("answer")), gist_of(before[i].at("answer")));
        }
    }
}

class RealKubernetes : public testing::Test {
protected:
    static void SetUpTestSuite() { plane_ = std::make_unique<ControlPlane>(); }
    static void TearDownTestSuite() { plane_.reset(); }

    static KubernetesPeer peer(ControlPlane& plane = *plane_) {
        return {
            .url = plane.url(),
            .token = plane.token_of(kAccount),
            .kubelet_token = plane.admin_token(),
            .ca_file = plane.ca_file()
        };
    }
    // The same, through something that speaks plain HTTP.
    static KubernetesPeer peer_at(const std::string& url, ControlPlane& plane = *plane_) {
        KubernetesPeer made = peer(plane);
        made.url = url;
        made.ca_file.clear();
        return made;
    }
    static net::ClientIdentity identity(ControlPlane& plane = *plane_) {
        return {.url = "", .certificate = "", .key = "", .ca_file = plane.ca_file()};
    }
    void TearDown() override {
        plane_->admin().del(std::string(kPods) + "?gracePeriodSeconds=0");
        plane_->apply_role();
    }

    static std::unique_ptr<ControlPlane> plane_;
};
std::unique_ptr<ControlPlane> RealKubernetes::plane_;

TEST_F(RealKubernetes, PodsLiveAsRecorded) {
    const Recorder recorder(plane_->url(), identity());
    fleet::test::play_the_life_of_pods(peer_at(recorder.url()));
    keep("life", recorder.said());
}

TEST_F(RealKubernetes, RefusesAsRecorded) {
    ControlPlane plane({"--watch-cache=false"});
    const Recorder recorder(plane.url(), identity(plane));
    fleet::test::play_the_refusals(peer_at(recorder.url(), plane), [&](std::string_view step) {
        if (step == "two Pods") {
            KubernetesClient comfyd(peer(plane));
            for (const char* instance : {"7", "8"}) {
                ASSERT_TRUE(comfyd.create(KubernetesClient::order(instance)));
            }
        } else if (step == "a quota") {
            plane.set_quota("2");
        } else if (step == "no quota") {
            plane.set_quota("1000");
        } else if (step == "compacted") {
            fleet::test::PodHands(peer(plane)).end("comfyd-f-7");
            plane.compact();
        }
    });
    keep("refusals", recorder.said());
}

TEST_F(RealKubernetes, WithoutOneOfItsRightsItCannotWorkAndIsToldWhich) {
    KubernetesClient comfyd(peer());
    ASSERT_TRUE(comfyd.create(KubernetesClient::order("1")));
    const auto expect_needed = [](const std::string& verb, const auto& call) {
        const std::string words = "comfyd-fleet:comfyd-fleet\" cannot " + verb + " resource";
        Error refused;
        // Who may do what changes within moments, not at once.
        EXPECT_TRUE(wait_until([&] {
            const auto result = call();
            refused = result ? Error() : result.error();
            return refused.message.find(words) != std::string::npos;
        })) << verb
            << ": " << refused.message;
        EXPECT_EQ(refused.code, Code::forbidden);
    };
    plane_->apply_role("create, ");
    expect_needed("create", [&] { return comfyd.create(KubernetesClient::order("2")); });
    plane_->apply_role("get, ");  // it looks whose a Pod of this name is
    expect_needed("get", [&] { return comfyd.create(KubernetesClient::order("1")); });
    plane_->apply_role("list, ");
    expect_needed("list", [&] { return comfyd.try_list(); });
    plane_->apply_role("pods/log", "pods/status");
    expect_needed("get", [&] { return comfyd.logs("comfyd-f-1"); });
    plane_->apply_role(", delete");
    expect_needed("delete", [&] { return comfyd.remove("comfyd-f-2"); });
    support::Http account(plane_->url(), plane_->ca_file());
    account.set_header("Authorization", "Bearer " + plane_->token_of(kAccount));
    plane_->apply_role("watch, ");
    EXPECT_TRUE(wait_until([&] {
        return account.get(std::string(kPods) + "?watch=1&timeoutSeconds=1").status == 403;
    }));
}

TEST_F(RealKubernetes, ItsRightsAreForPodsOfItsNamespaceAlone) {
    support::Http account(plane_->url(), plane_->ca_file());
    account.set_header("Authorization", "Bearer " + plane_->token_of(kAccount));
    KubernetesClient comfyd(peer());
    ASSERT_TRUE(comfyd.create(KubernetesClient::order("1")));
    const std::string here = "/api/v1/namespaces/comfyd-fleet";
    EXPECT_EQ(account.get(here + "/pods").status, 200);
    for (const std::string path :
         {"/api/v1/nodes", "/api/v1/pods", "/api/v1/namespaces", "/api/v1/namespaces/default/pods"
         }) {
        EXPECT_EQ(account.get(path).status, 403) << path;
    }
    for (const std::string what : {"secrets", "configmaps", "serviceaccounts", "services"}) {
        EXPECT_EQ(account.get(here + "/" + what).status, 403) << what;
    }
    const std::string pod = here + "/pods/comfyd-f-1";
    EXPECT_EQ(account.post_json(pod + "/exec?command=sh", json::object{}).status, 403);
    EXPECT_EQ(account.post_json(pod + "/binding", json::object{}).status, 403);
    EXPECT_EQ(account.put(pod, "{}").status, 403);
    EXPECT_EQ(account.del(here + "/pods").status, 403) << "all at once";
    support::Http nobody(plane_->url(), plane_->ca_file());
    EXPECT_EQ(nobody.get(here + "/pods").status, 403) << "anonymous";
}

TEST_F(RealKubernetes, TheAccountThatIsMountedIntoAPod) {
    const support::TempDir account;
    account.write("token", plane_->token_of(kAccount) + "\n");
    account.write("namespace", kNamespace);
    account.write("ca.crt", support::read_file(plane_->ca_file()));
    ::setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1", 1);
    ::setenv("KUBERNETES_SERVICE_PORT_HTTPS", std::to_string(plane_->port()).c_str(), 1);
    {
        KubernetesClient comfyd(KubernetesOptions{.account_folder = account.path()});
        EXPECT_TRUE(comfyd.create(KubernetesClient::order("1")));
        EXPECT_EQ(comfyd.list().size(), 1U);
    }
    const support::TempDir other;
    account.write("ca.crt", support::read_file(support::make_certificate(other).certificate));
    KubernetesClient deceived(KubernetesOptions{.account_folder = account.path()});
    EXPECT_EQ(deceived.try_list().error().code, Code::connection_failed) << "it is somebody else";
    ::unsetenv("KUBERNETES_SERVICE_HOST");
    ::unsetenv("KUBERNETES_SERVICE_PORT_HTTPS");
}

TEST_F(RealKubernetes, AClientCertificateInPlaceOfAToken) {
    const support::Certificate made = plane_->certificate_of("fleet-keeper");
    KubernetesPeer certified{
        .url = plane_->url(),
        .token = "",
        .ca_file = plane_->ca_file(),
        .certificate = made.certificate,
        .key = made.key
    };
    {
        KubernetesClient comfyd(certified);
        const auto refused = comfyd.try_list();
        EXPECT_EQ(refused.error().code, Code::forbidden);
        EXPECT_THAT(refused.error().message, HasSubstr("fleet-keeper"));
    }
    plane_->apply(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\n"
        "metadata: {name: by-certificate}\n"
        "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: comfyd-fleet}\n"
        "subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: fleet-keeper}]\n"
    );
    KubernetesClient comfyd(certified);
    EXPECT_TRUE(wait_until([&] { return comfyd.try_list().has_value(); }));
    EXPECT_TRUE(comfyd.create(KubernetesClient::order("1")));
    EXPECT_TRUE(comfyd.remove("comfyd-f-1"));
}

// Through the server, which asks the node's kubelet.
TEST_F(RealKubernetes, ALog) {
    KubernetesClient comfyd(peer());
    ASSERT_TRUE(comfyd.create(KubernetesClient::order("1")));
    EXPECT_EQ(comfyd.logs("comfyd-f-1"), "") << "it has no node yet";
    const auto kubelet = plane_->serve_log("comfyd-f-1", "one\ntwo\n");
    fleet::test::PodHands(peer()).bind("comfyd-f-1");
    Result<std::string> log = fail(Code::not_found, "");
    EXPECT_TRUE(wait_until([&] {
        log = comfyd.logs("comfyd-f-1");
        return log == "one\ntwo\n";
    })) << (log ? *log : log.error().message);
}

class Watched : public RealKubernetes {
protected:
    // A change by another, through what is between them or beside it.
    void expect_heard(ControlPlane& plane) {
        const int before = changes_;
        KubernetesClient other(peer(plane));
        EXPECT_TRUE(other.create(KubernetesClient::order(std::to_string(++made_))));
        EXPECT_TRUE(wait_until([&] { return changes_ > before; }, kLong)) << made_;
    }
    void watch(KubernetesClient& comfyd) {
        comfyd.on_change([this] { ++changes_; });
        EXPECT_TRUE(wait_until([this] { return changes_ > 0; }));
    }
    static KubernetesPeer through(const FaultProxy& proxy, ControlPlane& plane) {
        KubernetesPeer made = peer(plane);
        made.url = "https://127.0.0.1:" + std::to_string(proxy.port());
        return made;
    }

    std::atomic<int> changes_ = 0;
    int made_ = 0;
};

TEST_F(Watched, ItGoesOnAfterCutsAndARestartOfTheServer) {
    FaultProxy proxy(plane_->port());
    KubernetesClient comfyd(through(proxy, *plane_));
    watch(comfyd);
    expect_heard(*plane_);
    proxy.inflict(FaultProxy::Fault::cut);
    expect_heard(*plane_);
    // A server that has been started anew has forgotten what it told before.
    plane_->restart();
    expect_heard(*plane_);
    expect_heard(*plane_);
}

TEST_F(Watched, ItBeginsAnewWhereTheServerHasForgottenWhatItMissed) {
    ControlPlane plane({"--watch-cache=false"});
    FaultProxy proxy(plane.port());
    KubernetesClient comfyd(through(proxy, plane));
    watch(comfyd);
    expect_heard(plane);
    proxy.refuse(true);
    proxy.inflict(FaultProxy::Fault::cut);
    const int before = changes_;
    KubernetesClient other(peer(plane));
    ASSERT_TRUE(other.create(KubernetesClient::order("missed")));
    ASSERT_TRUE(other.create(KubernetesClient::order("missed-too")));
    plane.compact();
    proxy.refuse(false);
    EXPECT_TRUE(wait_until([&] { return changes_ > before; }, kLong));
    expect_heard(plane);
}

TEST_F(RealKubernetes, AListOfPagesWhoseSecondOneIsForgottenBeginsAnew) {
    constexpr std::size_t kMany = 501;  // a page has 500
    fleet::test::PodHands cluster(peer());
    for (std::size_t i = 0; i < kMany; ++i) {
        cluster.add({{"name", "p" + std::to_string(i)}, {"labels", {{"comfyd.fleet", "f"}}}});
    }
    const Recorder recorder(plane_->url(), identity());
    FaultProxy proxy(static_cast<std::uint16_t>(std::stoi(recorder.url().substr(17))));
    KubernetesClient comfyd(peer_at("http://127.0.0.1:" + std::to_string(proxy.port())));
    EXPECT_EQ(comfyd.list().size(), kMany);
    proxy.inflict_after(FaultProxy::Way::to_server, "continue=", FaultProxy::Fault::hold_requests);
    auto listed = std::async(std::launch::async, [&] { return comfyd.list().size(); });
    ASSERT_TRUE(wait_until([&] { return proxy.has_struck(); }));
    cluster.end("p0");
    plane_->compact();
    proxy.release();
    EXPECT_EQ(listed.get(), kMany - 1);
    int gone = 0;
    for (const json::value& one : recorder.said()) {
        gone += one.at("status") == 410 ? 1 : 0;
    }
    EXPECT_EQ(gone, 1);
}

}  // namespace
}  // namespace comfyd::test
