// A prompt as a double keeps it, and what changed between versions of ComfyUI.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/time.hpp"
#include "support/double/faults.hpp"

namespace comfyd::support {

struct Behaviour {
    explicit Behaviour(std::string_view version);

    bool targeted_interrupt;   // /interrupt heeds prompt_id
    bool create_time;          // in extra_data
    bool jobs_route;           // GET /api/jobs
    bool replaces_nodes;       // GET /node_replacements
    bool names_missing_nodes;  // missing_node_type instead of invalid_prompt
    bool cached_needs_client;  // cached outputs appear only for prompts with a client_id
    bool names_cycles;         // dependency_cycle
    bool uuid_only;            // prompt_id
    bool cancel_route;         // POST /api/jobs/{id}/cancel
};

struct Prompt {
    std::string id;
    json::value number;  // as it was answered
    double order = 0;    // the same, to compare
    json::object graph;
    json::object extra_data;
    std::vector<std::string> outputs;
    std::string client_id;
    bool has_client = false;
    bool announced = false;  // its HTTP answer is written: it may start
    RunFaults faults{};      // from its own marker
    std::string content;     // hash of the graph

    // [number, id, graph, extra_data, outputs], as in /queue and /history.
    json::array to_json() const;
};
using PromptPtr = std::shared_ptr<Prompt>;  // the queue, the running task and the history

// The nodes to run, in ComfyUI's order: ancestors of `outputs` first, output nodes as soon as they
// can.
class Catalogue;
std::vector<std::string> execution_order(
    const json::object& graph, const std::vector<std::string>& outputs, const Catalogue& catalogue
);

// The node that an input is linked to; empty when it is a literal.
std::string_view linked_node(const json::value& input);
const json::object& inputs_of(const json::object& graph, std::string_view node);
std::string_view class_of(const json::object& graph, std::string_view node);

}  // namespace comfyd::support
