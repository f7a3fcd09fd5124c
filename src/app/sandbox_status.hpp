// How children of this process are confined: what was asked for, and what this system can do.
// Immutable; any thread.
#pragma once

#include "app/config/config.hpp"
#include "base/json.hpp"
#include "base/sandbox.hpp"
#include "observe/metrics.hpp"

namespace comfyd::app {

class SandboxStatus {
public:
    // Blocks for a moment. Code::config_invalid: the level is required, and not to be had.
    static Result<SandboxStatus> find(const Config& config);

    SandboxLevel level() const { return level_; }  // that is in force
    const SandboxSupport& support() const { return support_; }

    void tell() const;  // to the log
    void collect(observe::Metrics::Gauges& gauges) const;
    json::object describe() const;

private:
    SandboxStatus(const Config& config, SandboxSupport support);

    SandboxLevel wanted_;
    bool is_required_;
    SandboxSupport support_;
    SandboxLevel level_;
};

}  // namespace comfyd::app
