#include "standalone/prompt.hpp"

#include <utility>

namespace comfyd::standalone {
namespace {

namespace server = comfy::server;

json::object status_of(const HistoryEntry& entry) {
    return server::run_status(entry.status == comfy::JobStatus::completed, entry.messages);
}

}  // namespace

server::PromptView Prompt::view() const {
    server::PromptView view{.number = number, .id = id};
    if (shown_whole) {
        view.graph = graph;
        view.extra_data = extra_data;
    }
    view.outputs = json::array(outputs.begin(), outputs.end());
    return view;
}

server::HistoryView HistoryEntry::view() const {
    json::object meta;
    for (const auto& [node, ui] : outputs) {
        const auto origin = origins.find(std::string_view(node));
        const bool is_own = origin == origins.end();
        const std::string root = is_own ? std::string(node) : origin->second.root;
        json::value parent = is_own ? json::value() : json::value(origin->second.parent);
        meta[node] = server::node_meta(std::string_view(node), root, std::move(parent), root);
    }
    return {prompt->view(), outputs, status_of(*this), std::move(meta)};
}

server::JobView view_job(const Prompt& prompt, comfy::JobStatus status, bool details) {
    server::JobView job;
    job.id = prompt.id;
    job.status = status;
    job.priority = prompt.number;
    job.created = prompt.created;
    job.workflow_id = comfy::workflow_id_of(prompt.extra_data);
    if (details) {
        job.details = {.graph = prompt.graph, .extra_data = prompt.extra_data};
    }
    return job;
}

server::JobView view_job(const HistoryEntry& entry, bool details) {
    server::JobView job = view_job(*entry.prompt, entry.status, details);
    job.started = entry.started;
    job.ended = entry.ended;
    job.error = entry.error;
    job.outputs = entry.outputs;
    if (job.details) {
        job.details->outputs = entry.outputs;
        job.details->status = status_of(entry);
    }
    return job;
}

}  // namespace comfyd::standalone
