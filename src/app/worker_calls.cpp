#include "app/worker_calls.hpp"

#include <utility>

#include <boost/asio/post.hpp>

#include "base/log.hpp"
#include "comfy/members.hpp"
#include "net/lines.hpp"

namespace comfyd::app {
namespace {

agent::TokenBook::Entries tokens_of(const Config& config) {
    agent::TokenBook::Entries tokens;
    for (const WorkerSetting& worker : config.workers) {
        if (auto name = net::line_name(worker.url)) {
            tokens[*name] = worker.token;
        }
    }
    return tokens;
}

std::map<std::string, std::string> workers_of(const Config& config) {
    std::map<std::string, std::string> workers;
    for (const WorkerSetting& worker : config.workers) {
        if (auto name = net::line_name(worker.url)) {
            workers[*name] = worker.id;
        }
    }
    return workers;
}

}  // namespace

WorkerCalls::WorkerCalls(Executor core, const Config& config)
    : core_(core),
      tokens_(tokens_of(config)),
      workers_(workers_of(config)),
      switchboard_(std::make_shared<agent::Switchboard>(
          tokens_,
          [this](const std::string& instance, const json::object& report) {
              hear(instance, report);
          }
      )),
      tasks_(core) {}

WorkerCalls::~WorkerCalls() = default;

void WorkerCalls::start(Machines& machines) {
    machines_ = &machines;
}

Task<> WorkerCalls::stop() {
    machines_ = nullptr;
    tasks_.cancel();
    co_await tasks_.join();
}

// On the thread of the agent's connection. One that is told to stop gets no new prompts; when it
// is back, it does.
void WorkerCalls::hear(const std::string& instance, const json::object& report) {
    const bool is_draining = comfy::text_of(report, "state") == "draining";
    boost::asio::post(core_, [this, instance, is_draining] {
        const bool is_news =
            is_draining ? draining_.insert(instance).second : draining_.erase(instance) > 0;
        if (is_news && machines_ != nullptr) {
            tasks_.spawn("drain a worker", set_draining(instance, is_draining));
        }
    });
}

Task<> WorkerCalls::set_draining(std::string instance, bool is_draining) {
    const auto named = workers_.find(instance);
    const std::string worker = named == workers_.end() ? instance : named->second;
    auto set = co_await machines_->set_draining(worker, is_draining);
    if (!set) {
        log::warning(
            "a worker that stops may still get prompts",
            {{"worker", worker}, {"reason", set.error().message}}
        );
    }
}

}  // namespace comfyd::app
