#include "app/worker_calls.hpp"

#include <boost/asio/post.hpp>

#include "base/on_executor.hpp"
#include "comfy/members.hpp"

namespace comfyd::app {

WorkerCalls::WorkerCalls(Executor core, bool is_one_of_several)
    : core_(core),
      tokens_({}, is_one_of_several),
      switchboard_(std::make_shared<agent::Switchboard>(
          tokens_,
          [this](const std::string& instance, const json::object& report) {
              hear(instance, report);
          }
      )) {}

WorkerCalls::~WorkerCalls() = default;

void WorkerCalls::admit(
    const std::string& instance, const std::string& worker, const std::string& token
) {
    COMFYD_ON(core_);
    workers_[instance] = worker;
    tokens_.set(instance, token);
}

void WorkerCalls::dismiss(const std::string& instance) {
    COMFYD_ON(core_);
    workers_.erase(instance);
    stopping_.erase(instance);
    tokens_.remove(instance);  // before the cut: whoever calls after it is refused
    switchboard_->cut(instance);
}

// On the thread of the agent's connection. One that is told to stop gets no new prompts; when it
// is back, it does. Where it was away for long, nobody would ask it for half a minute.
void WorkerCalls::hear(const std::string& instance, const json::object& report) {
    const bool is_stopping = comfy::text_of(report, "state") == "draining";
    const bool is_ready = comfy::text_of(report, "state") == "ready";
    boost::asio::post(core_, [this, instance, is_stopping, is_ready] {
        const auto worker = workers_.find(instance);
        if (worker == workers_.end() || machines_ == nullptr) {
            return;
        }
        const bool is_news =
            is_stopping ? stopping_.insert(instance).second : stopping_.erase(instance) > 0;
        if (is_news) {
            machines_->hear_stopping(worker->second, is_stopping);
        }
        if (is_ready) {
            machines_->hear_ready(worker->second);
        }
    });
}

}  // namespace comfyd::app
