#include "comfy/server/prompt_views.hpp"

#include <utility>

namespace comfyd::comfy::server {
namespace {

json::array to_json(std::vector<PromptView> prompts) {
    json::array items;
    for (PromptView& prompt : prompts) {
        items.push_back(to_json(std::move(prompt)));
    }
    return items;
}

}  // namespace

json::array to_json(PromptView prompt) {
    json::array item;
    item.push_back(std::move(prompt.number));
    item.emplace_back(prompt.id);
    item.push_back(std::move(prompt.graph));
    item.push_back(std::move(prompt.extra_data));
    item.push_back(std::move(prompt.outputs));
    return item;
}

json::object to_json(QueueView queue) {
    json::object body;
    body["queue_running"] = to_json(std::move(queue.running));
    body["queue_pending"] = to_json(std::move(queue.pending));
    return body;
}

json::object run_status(bool success, json::array messages) {
    json::object status;
    status["status_str"] = success ? "success" : "error";
    status["completed"] = success;
    status["messages"] = std::move(messages);
    return status;
}

json::object node_meta(
    std::string_view node, std::string_view shown_as, json::value parent, std::string_view real
) {
    json::object meta;
    meta["node_id"] = node;
    meta["display_node"] = shown_as;
    meta["parent_node"] = std::move(parent);
    meta["real_node_id"] = real;
    return meta;
}

json::object to_json(HistoryView entry) {
    json::object object;
    object["prompt"] = to_json(std::move(entry.prompt));
    object["outputs"] = std::move(entry.outputs);
    object["status"] = std::move(entry.status);
    object["meta"] = std::move(entry.meta);
    return object;
}

std::string encode_member(HistoryView entry) {
    std::string member = json::serialize_python(json::value(entry.prompt.id)) + ": ";
    return member + json::serialize_python(to_json(std::move(entry)));
}

std::string encode(const HistoryPage& page) {
    std::size_t bytes = 2;
    for (const std::string& member : page.members) {
        bytes += member.size() + 2;
    }
    std::string text;
    text.reserve(bytes);
    text = "{";
    for (const std::string& member : page.members) {
        text += text.size() > 1 ? ", " : "";
        text += member;
    }
    return text + "}";
}

json::object to_json(JobView job) {
    json::object object;
    object["id"] = job.id;
    object["status"] = to_string(job.status);
    object["priority"] = std::move(job.priority);
    object["create_time"] = to_unix_ms(job.created);
    if (job.started) {
        object["execution_start_time"] = to_unix_ms(*job.started);
    }
    if (job.ended) {
        object["execution_end_time"] = to_unix_ms(*job.ended);
    }
    if (!job.error.empty()) {
        object["execution_error"] = std::move(job.error);
    }
    add_summary(object, summarise_outputs(job.outputs));
    if (!job.workflow_id.empty()) {
        object["workflow_id"] = job.workflow_id;
    }
    if (job.details) {
        JobView::Details& details = *job.details;
        if (details.outputs) {
            object["outputs"] = std::move(*details.outputs);
        }
        if (details.status) {
            object["execution_status"] = std::move(*details.status);
        }
        json::object workflow;
        workflow["prompt"] = std::move(details.graph);
        workflow["extra_data"] = std::move(details.extra_data);
        object["workflow"] = std::move(workflow);
    }
    return object;
}

json::object to_json(JobsPage page, const JobsQuery& query) {
    json::array jobs;
    for (JobView& job : page.jobs) {
        jobs.push_back(to_json(std::move(job)));
    }
    json::object body;
    body["jobs"] = std::move(jobs);
    body["pagination"] = pagination(query, page.total, page.has_more);
    return body;
}

}  // namespace comfyd::comfy::server
