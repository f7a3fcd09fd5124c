#include "api/dialects/native/run_notes.hpp"

#include <algorithm>

#include "comfy/members.hpp"

namespace comfyd::api::native {
namespace {

constexpr std::size_t kNotedNodesMax = 1'000;
constexpr std::size_t kNotedOutputBytesMax = 1024 * 1024;

void note_output(RunNotes& notes, const std::string& node, const json::object& executed) {
    if (notes.meta.size() >= kNotedNodesMax) {
        return;
    }
    const std::string shown = comfy::text_of(executed, "display_node");
    notes.meta[node] = {
        {"node_id", node},
        {"display_node", shown.empty() ? node : shown},
        {"parent_node", nullptr},
        {"real_node_id", node},
    };
    if (const json::object* ui = comfy::object_of(executed, "output")) {
        notes.output_bytes += json::serialize(*ui).size();
        if (notes.output_bytes <= kNotedOutputBytesMax) {
            notes.outputs[node] = *ui;
        }
    }
}

}  // namespace

void note(RunNotes& notes, const jobs::WorkerMessage& said) {
    const std::string node = comfy::text_of(said.data, "node");
    if (said.type == "execution_cached") {
        notes = {};  // another attempt may have been before
        if (const json::array* nodes = comfy::array_of(said.data, "nodes")) {
            notes.cached = *nodes;
        }
    } else if (said.type == "executing" && !node.empty()) {
        // The one before is done when the next begins.
        const bool known =
            std::find(notes.executed.begin(), notes.executed.end(), json::value(notes.last_node)) !=
            notes.executed.end();
        if (!notes.last_node.empty() && !known && notes.executed.size() < kNotedNodesMax) {
            notes.executed.emplace_back(notes.last_node);
        }
        notes.last_node = node;
    } else if (said.type == "executed" && !node.empty()) {
        note_output(notes, node, said.data);
    } else if (said.type == "execution_interrupted") {
        notes.last_node = comfy::text_of(said.data, "node_id");
        notes.last_node_type = comfy::text_of(said.data, "node_type");
        if (const json::array* nodes = comfy::array_of(said.data, "executed")) {
            notes.executed = *nodes;
        }
    }
}

}  // namespace comfyd::api::native
