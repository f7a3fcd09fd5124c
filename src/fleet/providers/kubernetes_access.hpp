// How a Kubernetes API server is reached, and as whom: by the account that is mounted into a Pod,
// or by a kubeconfig. Internal to the provider `kubernetes`. Reads files; any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "base/scratch_folder.hpp"
#include "base/time.hpp"
#include "fleet/providers/kubernetes.hpp"
#include "net/client.hpp"

namespace comfyd::fleet {

struct KubernetesAccess {
    std::string url;
    std::string name_space = "default";
    std::string token{};
    std::string token_file{};                 // in place of the token: it changes
    net::ClientIdentity identity{};           // whose files may be in the folder
    std::shared_ptr<ScratchFolder> folder{};  // of what the kubeconfig has within itself
};

// Code::config_invalid.
Result<KubernetesAccess> read_account(const std::string& folder);
Result<KubernetesAccess> read_kubeconfig(const std::string& file, const std::string& context);

// The token of a file, read again every minute: the cluster writes a new one before the old one
// ends.
class RotatingToken {
public:
    // `clock` outlives it.
    RotatingToken(std::string file, const Clock& clock) : file_(std::move(file)), clock_(clock) {}
    std::string now();

private:
    std::string file_;
    const Clock& clock_;
    std::string token_;
    std::optional<Time> read_at_;
};

}  // namespace comfyd::fleet
