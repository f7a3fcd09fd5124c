// What is kept of a run besides what the ledger has of it: the history tells it. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "base/json.hpp"
#include "jobs/job.hpp"

namespace comfyd::api::native {

// What only the messages of a run tell; kept for a while after its end.
struct RunNotes {
    json::array cached{};
    json::array executed{};
    std::string last_node{};
    std::string last_node_type{};
    json::object meta{};     // node id -> {node_id, display_node, parent_node, real_node_id}
    json::object outputs{};  // node id -> ui, of a run that did not succeed
    std::size_t output_bytes = 0;
};

// Adds what the worker said. Bounded in nodes and bytes.
void note(RunNotes& notes, const jobs::WorkerMessage& said);

}  // namespace comfyd::api::native
