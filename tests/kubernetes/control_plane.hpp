// A real API server of Kubernetes over a real etcd, on loopback and for one test: with RBAC, tokens
// of service accounts and client certificates. Nothing runs Pods in it: a test plays their kubelet.
// scripts/kubernetes.sh builds the API server.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "support/certificate.hpp"
#include "support/http.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

namespace comfyd::test {

inline constexpr const char* kNamespace = "comfyd-fleet";
inline constexpr const char* kPods = "/api/v1/namespaces/comfyd-fleet/pods";

class ControlPlane {
public:
    // With the namespace and what deploy/kubernetes/fleet-role.yaml has. Throws std::runtime_error
    // when it does not come up. `arguments`: further ones of the API server.
    explicit ControlPlane(std::vector<std::string> arguments = {});

    std::uint16_t port() const { return port_; }
    std::string url() const { return "https://127.0.0.1:" + std::to_string(port_); }
    const std::string& ca_file() const { return certificate_.certificate; }
    // Of the account that fleet-role.yaml has made, or of another of the namespace.
    std::string token_of(const std::string& account);
    // A client certificate of a user of this name.
    support::Certificate certificate_of(const std::string& user) const;

    // As somebody who may do everything; paths begin with /api or /apis.
    support::Http& admin() { return *admin_; }
    static std::string admin_token() { return "token-of-the-admin"; }
    void apply(const std::string& yaml);
    // fleet-role.yaml's rights; where `from` is given, with `to` in its place.
    void apply_role(const std::string& from = {}, const std::string& to = {});
    void set_quota(const std::string& pods);
    // A node-1 whose kubelet has this log of a Pod, for as long as the process lives.
    std::unique_ptr<support::Process> serve_log(const std::string& pod, const std::string& log);
    json::value must(const support::Reply& reply) const;

    // etcd forgets all that is older than now.
    void compact();
    void restart();  // of the API server, on the same port

    // For support::KubeletOf.
    std::map<std::string, json::object> pods();
    void set_status(const std::string& name, const json::object& status);
    void forget(const std::string& name);

private:
    void start_etcd();
    bool try_start();
    json::value ask_etcd(const std::string& path, const json::object& body);

    const std::vector<std::string> arguments_;
    support::TempDir folder_;
    support::Certificate certificate_;
    std::uint16_t etcd_port_ = 0;
    std::uint16_t port_ = 0;
    std::unique_ptr<support::Process> etcd_;
    std::unique_ptr<support::Process> server_;
    std::unique_ptr<support::Http> admin_;
};

}  // namespace comfyd::test
