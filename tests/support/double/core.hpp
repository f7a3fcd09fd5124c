// Everything that one double is made of, for the parts of its implementation. On its executor.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "base/task.hpp"
#include "support/comfy_double.hpp"
#include "support/double/catalogue.hpp"
#include "support/double/files.hpp"
#include "support/double/hub.hpp"
#include "support/double/prompt.hpp"
#include "support/double/queue.hpp"

namespace comfyd::support {

struct CachedResult {
    std::string content;
    json::object outputs;
};

struct Core {
    Core(Executor core_executor, DoubleOptions core_options);

    Executor executor;
    DoubleOptions options;
    Behaviour behaviour;
    Catalogue catalogue;
    Files files;
    Hub hub;
    PromptQueue queue;
    History history;
    Faults faults;
    Executions executions;
    std::deque<json::object> accepted;
    std::deque<CachedResult> cache;
    std::int64_t counter = 0;  // of prompts without a number
    std::string current_node;  // of the running prompt
    bool interrupt = false;
    bool crashed = false;
    // A fault of the GPU: what does not use it runs, until /free uses it and ends the thread.
    bool gpu_lost = false;
    bool thread_ended = false;
    std::string broken_history_id;  // the next read of it gets broken JSON
    // Of the node pack's fence: the highest epoch of each domain, and prompts sent under a lead.
    std::map<std::string, std::int64_t> epochs;
    std::set<std::string> fenced_prompts;
    Signal wake;  // queue, faults or the interrupt flag changed
    std::function<void()> on_crash;

    void look_at_models();
    void send_status();
    // Sets the interrupt flag when something runs, and, where `id` is not empty, when it is that.
    bool interrupt_running(std::string_view id);
    // What a restarted process does not know any more.
    void forget();
    void journal(std::string_view line);
    // Whether those that are held back may go on.
    bool is_let_go() const;
};

}  // namespace comfyd::support
