// The agents of workers that call by themselves: who may, as those say who lead the workers, and
// what is done with what they report. Owned by the application.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "agent/switchboard.hpp"
#include "app/machines.hpp"
#include "fleet/callers.hpp"

namespace comfyd::app {

class WorkerCalls final : public fleet::Callers {
public:
    // One of several nodes knows only those whose workers it leads.
    WorkerCalls(Executor core, bool is_one_of_several);
    ~WorkerCalls() override;

    // Of all clients that workers are asked with.
    std::shared_ptr<agent::Switchboard> switchboard() { return switchboard_; }

    // Core executor, like all that follow. `machines` outlives it, or stop() comes first.
    void start(Machines& machines) { machines_ = &machines; }
    void stop() { machines_ = nullptr; }

    void admit(const std::string& instance, const std::string& worker, const std::string& token)
        override;
    void dismiss(const std::string& instance) override;

private:
    void hear(const std::string& instance, const json::object& report);

    Executor core_;
    agent::TokenBook tokens_;
    std::shared_ptr<agent::Switchboard> switchboard_;
    // The rest on the core.
    Machines* machines_ = nullptr;
    std::map<std::string, std::string> workers_;  // those that may call, by instance
    std::set<std::string> stopping_;              // instances that said so
};

}  // namespace comfyd::app
