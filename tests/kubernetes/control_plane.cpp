#include "control_plane.hpp"

#include <random>
#include <stdexcept>

#include "base/crypto.hpp"
#include "support/wait.hpp"

namespace comfyd::test {
namespace {

using support::Process;
using support::ProcessOptions;
using support::wait_until;

constexpr std::chrono::seconds kComesUp{120};
constexpr int kTriesMax = 20;

// Below those that the kernel gives to whoever asks for any.
std::uint16_t some_port() {
    static std::mt19937 random(std::random_device{}());
    return static_cast<std::uint16_t>(std::uniform_int_distribution<>(16'000, 31'000)(random));
}

void run(std::vector<std::string> words) {
    Process process(std::move(words));
    if (process.wait() != 0) {
        throw std::runtime_error(process.output() + process.errors());
    }
}

std::string path_of(std::string_view yaml) {
    const std::map<std::string, std::string> paths{
        {"Namespace", "/api/v1/namespaces"},
        {"ServiceAccount", "/api/v1/namespaces/comfyd-fleet/serviceaccounts"},
        {"ResourceQuota", "/api/v1/namespaces/comfyd-fleet/resourcequotas"},
        {"Role", "/apis/rbac.authorization.k8s.io/v1/namespaces/comfyd-fleet/roles"},
        {"RoleBinding", "/apis/rbac.authorization.k8s.io/v1/namespaces/comfyd-fleet/rolebindings"}
    };
    const std::size_t begin = yaml.find("\nkind: ") + std::string_view("\nkind: ").size();
    return paths.at(std::string(yaml.substr(begin, yaml.find('\n', begin) - begin)));
}

net::Headers of_type(const char* type) {
    net::Headers headers;
    headers.set("Content-Type", type);
    return headers;
}

}  // namespace

ControlPlane::ControlPlane(std::vector<std::string> arguments)
    : arguments_(std::move(arguments)), certificate_(support::make_certificate(folder_)) {
    folder_.write("tokens.csv", admin_token() + ",admin,1,\"system:masters\"\n");
    run({"openssl", "genrsa", "-out", folder_ / "account.key", "2048"});
    start_etcd();
    for (int tries = 0; port_ == 0 && tries < kTriesMax; ++tries) {
        port_ = some_port();
        admin_ = std::make_unique<support::Http>(url(), certificate_.certificate);
        admin_->set_header("Authorization", "Bearer " + admin_token());
        port_ = try_start() ? port_ : 0;
    }
    if (port_ == 0) {
        throw std::runtime_error("no API server comes up: " + support::read_file(folder_ / "log"));
    }
    apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: comfyd-fleet}\n");
    // The cluster's own controller would make it.
    apply("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: default}\n");
    apply(support::read_file(COMFYD_SOURCE "/deploy/kubernetes/fleet-role.yaml"));
}

void ControlPlane::start_etcd() {
    for (int tries = 0; tries < kTriesMax; ++tries) {
        etcd_port_ = some_port();
        const std::string here = "http://127.0.0.1:" + std::to_string(etcd_port_);
        const std::string peers = "http://127.0.0.1:" + std::to_string(some_port());
        etcd_ = std::make_unique<Process>(ProcessOptions{
            .arguments =
                {"etcd",
                 "--data-dir",
                 folder_ / "etcd",
                 "--unsafe-no-fsync",
                 "--listen-client-urls",
                 here,
                 "--advertise-client-urls",
                 here,
                 "--listen-peer-urls",
                 peers,
                 "--initial-advertise-peer-urls",
                 peers,
                 "--initial-cluster",
                 "default=" + peers},
            .stderr_file = folder_ / "etcd.log"
        });
        support::Http http(here);
        const bool is_up =
            wait_until([&] { return http.get("/health").ok() || !etcd_->running(); }, kComesUp);
        if (is_up && etcd_->running()) {
            return;
        }
        std::filesystem::remove_all(folder_ / "etcd");
    }
    throw std::runtime_error("no etcd comes up: " + support::read_file(folder_ / "etcd.log"));
}

bool ControlPlane::try_start() {
    std::vector<std::string> words{
        COMFYD_SOURCE "/build/kubernetes/kube-apiserver",
        "--etcd-servers=http://127.0.0.1:" + std::to_string(etcd_port_),
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--secure-port=" + std::to_string(port_),
        "--cert-dir=" + folder_.path().string(),
        "--tls-cert-file=" + certificate_.certificate,
        "--tls-private-key-file=" + certificate_.key,
        "--client-ca-file=" + certificate_.certificate,
        "--token-auth-file=" + (folder_ / "tokens.csv"),
        "--authorization-mode=RBAC",
        "--service-account-key-file=" + (folder_ / "account.key"),
        "--service-account-signing-key-file=" + (folder_ / "account.key"),
        "--service-account-issuer=https://kubernetes.example.com",
        "--service-cluster-ip-range=10.99.0.0/24",
        "--endpoint-reconciler-type=none"
    };
    words.insert(words.end(), arguments_.begin(), arguments_.end());
    server_ = std::make_unique<Process>(
        ProcessOptions{.arguments = std::move(words), .stderr_file = folder_ / "log"}
    );
    return wait_until(
               [&] { return admin_->get("/readyz").ok() || !server_->running(); }, kComesUp
           ) &&
           server_->running();
}

void ControlPlane::restart() {
    server_->kill(SIGKILL);  // by itself it would wait a minute for those who watch
    server_->wait();
    if (!wait_until([this] { return try_start(); }, kComesUp)) {
        throw std::runtime_error("the API server does not come up again");
    }
}

json::value ControlPlane::must(const support::Reply& reply) const {
    if (!reply.ok()) {
        throw std::runtime_error(
            "the API server answers " + std::to_string(reply.status) + ": " + reply.body
        );
    }
    return reply.json();
}

void ControlPlane::apply(const std::string& yaml) {
    constexpr std::string_view kBetween = "\n---\n";
    for (std::size_t begin = 0; begin < yaml.size();) {
        const std::size_t end = std::min(yaml.find(kBetween, begin), yaml.size());
        const std::string one = yaml.substr(begin, end - begin) + "\n";
        must(admin_->post(path_of(one), one, of_type("application/yaml")));
        begin = end + kBetween.size();
    }
}

void ControlPlane::apply_role(const std::string& from, const std::string& to) {
    std::string yaml = support::read_file(COMFYD_SOURCE "/deploy/kubernetes/fleet-role.yaml");
    const std::size_t begin = yaml.find("\nkind: Role\n");
    yaml = yaml.substr(0, yaml.find("\n---\n", begin)).substr(yaml.rfind("\n---\n", begin) + 5);
    const std::size_t found = from.empty() ? std::string::npos : yaml.find(from);
    if (found != std::string::npos) {
        yaml.replace(found, from.size(), to);
    }
    must(admin_->put(path_of(yaml) + "/comfyd-fleet", yaml, of_type("application/yaml")));
}

void ControlPlane::set_quota(const std::string& pods) {
    const std::string path = path_of("\nkind: ResourceQuota\n");
    json::object quota{
        {"apiVersion", "v1"},
        {"kind", "ResourceQuota"},
        {"metadata", {{"name", "few"}}},
        {"spec", {{"hard", {{"pods", pods}}}}}
    };
    if (admin_->get(path + "/few").status == 404) {
        quota = must(admin_->post_json(path, quota)).as_object();
    } else {
        quota = must(admin_->get(path + "/few")).as_object();
    }
    // The cluster's own controller would count.
    quota["status"] = {{"hard", {{"pods", pods}}}, {"used", {{"pods", "2"}}}};
    must(admin_->put(path + "/few/status", json::serialize(quota), of_type("application/json")));
}

std::unique_ptr<support::Process> ControlPlane::serve_log(
    const std::string& pod, const std::string& log
) {
    const std::string path = "kubelet/containerLogs/comfyd-fleet/" + pod + "/";
    folder_.write(path + "agent?limitBytes=1048576&tailLines=5", "HTTP/1.0 200 OK\r\n\r\n" + log);
    const std::uint16_t port = some_port();
    auto kubelet = std::make_unique<Process>(ProcessOptions{
        .arguments =
            {"openssl",
             "s_server",
             "-HTTP",
             "-quiet",
             "-accept",
             "127.0.0.1:" + std::to_string(port),
             "-cert",
             certificate_.certificate,
             "-key",
             certificate_.key},
        .directory = folder_ / "kubelet"
    });
    const json::object address{{"type", "InternalIP"}, {"address", "127.0.0.1"}};
    must(admin_->post_json(
        "/api/v1/nodes",
        json::object{
            {"apiVersion", "v1"},
            {"kind", "Node"},
            {"metadata", {{"name", "node-1"}}},
            {"status",
             {{"addresses", json::array{address}},
              {"daemonEndpoints", {{"kubeletEndpoint", {{"Port", port}}}}}}}
        }
    ));
    return kubelet;
}

std::string ControlPlane::token_of(const std::string& account) {
    const json::value made = must(admin_->post_json(
        "/api/v1/namespaces/comfyd-fleet/serviceaccounts/" + account + "/token",
        json::object{
            {"apiVersion", "authentication.k8s.io/v1"},
            {"kind", "TokenRequest"},
            {"spec", {{"expirationSeconds", 3600}}}
        }
    ));
    return std::string(made.at("status").at("token").as_string());
}

support::Certificate ControlPlane::certificate_of(const std::string& user) const {
    const support::Certificate made{folder_ / (user + ".pem"), folder_ / (user + ".key")};
    const std::string request = folder_ / (user + ".csr");
    run(
        {"openssl",
         "req",
         "-new",
         "-newkey",
         "rsa:2048",
         "-nodes",
         "-subj",
         "/CN=" + user,
         "-keyout",
         made.key,
         "-out",
         request}
    );
    run(
        {"openssl",
         "x509",
         "-req",
         "-in",
         request,
         "-CA",
         certificate_.certificate,
         "-CAkey",
         certificate_.key,
         "-set_serial",
         "2",
         "-days",
         "1",
         "-out",
         made.certificate}
    );
    return made;
}

json::value ControlPlane::ask_etcd(const std::string& path, const json::object& body) {
    support::Http http("http://127.0.0.1:" + std::to_string(etcd_port_));
    return must(http.post_json(path, body));
}

void ControlPlane::compact() {
    const json::value now = ask_etcd("/v3/kv/range", {{"key", to_base64("x")}});
    ask_etcd(
        "/v3/kv/compaction", {{"revision", now.at("header").at("revision")}, {"physical", true}}
    );
}

std::map<std::string, json::object> ControlPlane::pods() {
    std::map<std::string, json::object> found;
    support::Reply list;
    const bool is_up = wait_until(
        [&] {
            list = admin_->get(std::string(kPods) + "?labelSelector=comfyd.fleet");
            return list.ok();
        },
        kComesUp
    );
    if (!is_up) {
        throw std::runtime_error("the API server does not list Pods: " + list.body);
    }
    const json::value told = list.json();
    for (const json::value& pod : told.at("items").as_array()) {
        if (!pod.at("metadata").as_object().contains("deletionTimestamp")) {
            found[std::string(pod.at("metadata").at("name").as_string())] = pod.as_object();
        }
    }
    return found;
}

void ControlPlane::set_status(const std::string& name, const json::object& status) {
    const std::string pod = std::string(kPods) + "/" + name;
    if (!admin_->get(pod).json_at("/spec/nodeName").is_string()) {
        must(admin_->post_json(
            pod + "/binding",
            json::object{
                {"apiVersion", "v1"},
                {"kind", "Binding"},
                {"metadata", {{"name", name}}},
                {"target", {{"kind", "Node"}, {"name", "node-1"}}}
            }
        ));
    }
    must(admin_->send(
        {.method = "PATCH",
         .url = pod + "/status",
         .headers = of_type("application/merge-patch+json"),
         .body = json::serialize(json::object{{"status", status}})}
    ));
}

void ControlPlane::forget(const std::string& name) {
    admin_->del(std::string(kPods) + "/" + name + "?gracePeriodSeconds=0");
}

}  // namespace comfyd::test
