// The certificates that workers are shown, and those of the authorities that may have signed
// theirs: taken into use again when their files have changed, while comfyd serves. Connections that
// are open keep those that they began with. What cannot be used changes nothing, and is looked at
// again: a certificate and its key are seldom replaced in one moment.
//
// Owned by the worksite; works on one executor, and on those of the clients for a moment.
#pragma once

#include <string>
#include <vector>

#include "base/crypto.hpp"
#include "base/task.hpp"
#include "fleet/fleet.hpp"
#include "net/client.hpp"

namespace comfyd::app {

class WorkerCertificates {
public:
    static constexpr Millis kLookEvery{2'000};

    // All clients outlive it.
    WorkerCertificates(
        Executor executor,
        std::vector<fleet::Lane> clients,
        std::vector<net::ClientIdentity> identities
    );

    // Before anything runs. Code::config_invalid.
    Result<> use();
    // Both on any executor.
    Task<> start();
    Task<> stop();

private:
    Task<> keep_looking();
    Task<> look();

    const Executor executor_;
    const std::vector<fleet::Lane> clients_;
    const std::vector<net::ClientIdentity> identities_;
    Digest in_use_{};        // of all files
    std::string complaint_;  // of the files as they are now, told once
    TaskGroup tasks_;
};

}  // namespace comfyd::app
