#include "app/sandbox_status.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"

namespace comfyd::app {

SandboxStatus::SandboxStatus(const Config& config, SandboxSupport support)
    : wanted_(config.sandbox_level),
      is_required_(config.sandbox_required),
      support_(std::move(support)),
      level_(std::min(wanted_, support_.best())) {}

Result<SandboxStatus> SandboxStatus::find(const Config& config) {
    const bool is_strict = config.sandbox_level == SandboxLevel::strict;
    SandboxStatus status(config, look_at_sandbox_support(is_strict));
    if (status.is_required_ && status.level_ < status.wanted_) {
        return fail(
            Code::config_invalid,
            "'sandbox.required' is set, and this system cannot confine children at the level '" +
                std::string(to_string(status.wanted_)) + "': it lacks " +
                status.support_.missing_text(status.wanted_) +
                ". `comfyd sandbox check` says what it can do"
        );
    }
    return status;
}

void SandboxStatus::tell() const {
    if (level_ < wanted_) {
        log::warning(
            "children are less confined than configured",
            {{"level", to_string(level_)},
             {"configured", to_string(wanted_)},
             {"missing", support_.missing_text(wanted_)}}
        );
        return;
    }
    log::info(
        "children are confined",
        {{"level", to_string(level_)},
         {"landlock", support_.landlock},
         {"seccomp", support_.seccomp},
         {"bubblewrap", support_.bubblewrap}}
    );
}

void SandboxStatus::collect(observe::Metrics::Gauges& gauges) const {
    for (const auto level : {SandboxLevel::minimal, SandboxLevel::basic, SandboxLevel::strict}) {
        gauges.set(
            "comfyd_sandbox_level",
            "How child processes are confined: 1 at the level that is in force.",
            {{"level", std::string(to_string(level))}},
            level == level_ ? 1 : 0
        );
    }
}

json::object SandboxStatus::describe() const {
    json::array missing;
    for (std::string& word : support_.missing(wanted_)) {
        missing.emplace_back(std::move(word));
    }
    return {
        {"level", to_string(level_)},
        {"configured", to_string(wanted_)},
        {"required", is_required_},
        {"missing", std::move(missing)},
        {"landlock_version", support_.landlock},
        {"seccomp", support_.seccomp},
        {"bubblewrap",
         support_.bubblewrap.empty() ? json::value(nullptr) : json::value(support_.bubblewrap)},
    };
}

}  // namespace comfyd::app
