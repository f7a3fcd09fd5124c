// The agents of workers that call by themselves (`url: worker://NAME`): who may, and what is done
// with what they say. Owned by the application.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "agent/switchboard.hpp"
#include "app/config/config.hpp"
#include "app/machines.hpp"
#include "base/task.hpp"

namespace comfyd::app {

class WorkerCalls {
public:
    WorkerCalls(Executor core, const Config& config);
    ~WorkerCalls();

    // Of those that the configuration names, for a start.
    agent::TokenBook& tokens() { return tokens_; }
    // Of all clients that workers are asked with.
    std::shared_ptr<agent::Switchboard> switchboard() { return switchboard_; }

    // Core executor, like stop(). `machines` outlives it.
    void start(Machines& machines);
    Task<> stop();

private:
    void hear(const std::string& instance, const json::object& report);
    Task<> set_draining(std::string instance, bool is_draining);

    Executor core_;
    agent::TokenBook tokens_;
    std::map<std::string, std::string> workers_;  // instance -> worker, where they differ
    std::shared_ptr<agent::Switchboard> switchboard_;
    // The rest on the core.
    Machines* machines_ = nullptr;
    std::set<std::string> draining_;  // instances that said so
    TaskGroup tasks_;
};

}  // namespace comfyd::app
