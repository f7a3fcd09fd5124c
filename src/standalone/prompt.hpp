// A prompt on its way, and what became of it. Not changed once it is queued or in the history, so
// that any thread may read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/time.hpp"
#include "comfy/fence.hpp"
#include "comfy/server/prompt_views.hpp"

namespace comfyd::standalone {

struct Prompt {
    std::string id;
    json::value number;  // as it was answered
    double order = 0;    // the same, to compare
    std::uint64_t sequence = 0;
    json::object graph;
    json::object extra_data;
    std::vector<std::string> outputs;       // to execute
    std::string client_id;                  // empty: none
    std::string owner;                      // empty: nobody in particular
    std::optional<comfy::LeadMark> lead{};  // under which it was sent
    Time created{};
    std::size_t bytes = 0;  // about what it takes
    bool shown_whole = true;

    // Graph and extra_data are empty where it is not shown whole.
    comfy::server::PromptView view() const;
};
using PromptPtr = std::shared_ptr<const Prompt>;  // the queue, the run and the history

// Where a node comes from that was added while the prompt ran.
struct NodeOrigin {
    std::string parent;
    std::string root;  // the prompt's own node that it belongs to, and is shown as
};
using NodeOrigins = std::map<std::string, NodeOrigin, std::less<>>;

struct HistoryEntry {
    PromptPtr prompt;
    json::object outputs{};  // node id -> ui
    NodeOrigins origins{};
    comfy::JobStatus status = comfy::JobStatus::completed;
    json::array messages{};  // [event, data]
    Time started{};
    Time ended{};
    json::object error{};     // of a failed one: the data of execution_error
    std::uint64_t bytes = 0;  // about what it takes, its prompt included

    comfy::server::HistoryView view() const;
};
using HistoryEntryPtr = std::shared_ptr<const HistoryEntry>;

comfy::server::JobView view_job(const Prompt& prompt, comfy::JobStatus status, bool details);
comfy::server::JobView view_job(const HistoryEntry& entry, bool details);

}  // namespace comfyd::standalone
