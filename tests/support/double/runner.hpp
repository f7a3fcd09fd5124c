// The worker of a double: takes prompts from the queue, one at a time, and plays their execution.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/task.hpp"
#include "support/double/core.hpp"
#include "support/double/messages.hpp"

namespace comfyd::support {

class Runner {
public:
    explicit Runner(Core& core) : core_(core) {}

    // Until its task is cancelled.
    Task<> run();

private:
    struct Run;
    enum class Outcome { done, interrupted, failed, stopped };
    enum class Kind { plain, executing, executed };

    PromptPtr next();
    Task<> execute(Run& run);
    void answer_from_cache(Run& run, const json::object& outputs);
    Task<Outcome> work(Run& run, const std::string& node, bool last);
    Task<Outcome> work_in_steps(Run& run, const std::string& node, int steps, Millis total);
    Task<Outcome> load_checkpoint(const json::object& inputs, Millis share);
    Task<Outcome> sleep_node(Run& run, const std::string& node);
    Task<Outcome> misbehave(Run& run, const std::string& node);
    Task<Outcome> pause(Millis duration);
    Outcome join(Run& run, const std::string& node);
    json::object produce(const Run& run, const std::string& node);

    void start(Run& run);
    void succeed(Run& run);
    void fail_with(Run& run, const std::string& node, std::string type, std::string message);
    void stop_interrupted(Run& run, const std::string& node);
    void finish(Run& run);

    // A recorded event: sent to the owner and kept in the history.
    void event(Run& run, const char* type, json::object data);
    void send_progress(Run& run);
    void send_preview(Run& run, const std::string& node, unsigned index);
    void emit(
        Run& run, std::string text, Kind kind = Kind::plain, bool also_without_client = false
    );
    void deliver(Run& run, const std::string& text, bool binary, bool also_without_client);
    void flush_held(Run& run);
    bool anybody_listens(const Run& run, bool also_without_client) const;

    Core& core_;
    std::string loaded_;  // checkpoint
};

}  // namespace comfyd::support
