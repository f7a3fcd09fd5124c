#include "standalone/prompt.hpp"

#include <utility>

namespace comfyd::standalone {
namespace {

json::object make_job(const Prompt& prompt, comfy::JobStatus status) {
    json::object job;
    job["id"] = prompt.id;
    job["status"] = comfy::to_string(status);
    job["priority"] = prompt.number;
    job["create_time"] = to_unix_ms(prompt.created);
    return job;
}

void add_workflow(json::object& job, const Prompt& prompt, bool details) {
    if (const std::string id = comfy::workflow_id_of(prompt.extra_data); !id.empty()) {
        job["workflow_id"] = id;
    }
    if (details) {
        json::object workflow;
        workflow["prompt"] = prompt.graph;
        workflow["extra_data"] = prompt.extra_data;
        job["workflow"] = std::move(workflow);
    }
}

}  // namespace

json::array Prompt::to_json() const {
    return {
        number,
        id,
        shown_whole ? graph : json::object(),
        shown_whole ? extra_data : json::object(),
        json::array(outputs.begin(), outputs.end())
    };
}

json::object HistoryEntry::status_json() const {
    const bool success = status == comfy::JobStatus::completed;
    json::object object;
    object["status_str"] = success ? "success" : "error";
    object["completed"] = success;
    object["messages"] = messages;
    return object;
}

json::object HistoryEntry::to_json() const {
    json::object meta;
    for (const auto& [node, ui] : outputs) {
        const auto origin = origins.find(std::string_view(node));
        const bool is_own = origin == origins.end();
        json::object about;
        about["node_id"] = node;
        about["display_node"] = is_own ? json::value(node) : json::value(origin->second.root);
        about["parent_node"] = is_own ? json::value() : json::value(origin->second.parent);
        about["real_node_id"] = about["display_node"];
        meta[node] = std::move(about);
    }
    json::object entry;
    entry["prompt"] = prompt->to_json();
    entry["outputs"] = outputs;
    entry["status"] = status_json();
    entry["meta"] = std::move(meta);
    return entry;
}

json::object describe_job(const Prompt& prompt, comfy::JobStatus status, bool details) {
    json::object job = make_job(prompt, status);
    comfy::add_summary(job, {});
    add_workflow(job, prompt, details);
    return job;
}

json::object describe_job(const HistoryEntry& entry, bool details) {
    json::object job = make_job(*entry.prompt, entry.status);
    job["execution_start_time"] = to_unix_ms(entry.started);
    job["execution_end_time"] = to_unix_ms(entry.ended);
    if (!entry.error.empty()) {
        job["execution_error"] = entry.error;
    }
    comfy::add_summary(job, comfy::summarise_outputs(entry.outputs));
    if (details) {
        job["outputs"] = entry.outputs;
        job["execution_status"] = entry.status_json();
    }
    add_workflow(job, *entry.prompt, details);
    return job;
}

}  // namespace comfyd::standalone
