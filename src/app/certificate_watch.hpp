// Takes a renewed certificate into use while comfyd serves, and warns of one that nobody renews.
//
// By looking at the files again and again: that also sees links that are swapped (Kubernetes) and
// folders of other machines, which no notification tells of.
#pragma once

#include <memory>
#include <optional>

#include "base/task.hpp"
#include "base/time.hpp"
#include "net/tls_identity.hpp"

namespace comfyd::app {

class CertificateWatch {
public:
    CertificateWatch(Executor executor, Clock& clock, std::shared_ptr<net::TlsIdentity> identity);

    void start();
    Task<> stop();

private:
    Task<> keep_looking();
    void look();
    void warn_of_end();

    Clock& clock_;
    const std::shared_ptr<net::TlsIdentity> identity_;
    std::string complaint_;  // of the files as they are now, told once
    std::optional<Time> warned_at_;
    TaskGroup tasks_;
};

}  // namespace comfyd::app
