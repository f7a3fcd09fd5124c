#include "api/dialects/native/story.hpp"

#include <algorithm>
#include <utility>

#include "api/dialects/native/names.hpp"
#include "comfy/jobs_list.hpp"
#include "comfy/members.hpp"
#include "workflow/files/asset_ref.hpp"

namespace comfyd::api::native {
namespace {

json::value number_of(const jobs::Job& job) {
    const json::value* number = json::find(job.dialect_data, "number");
    const bool known = job.dialect == kDialect && number != nullptr && number->is_number();
    return known ? *number : json::value(0);
}

json::array frames_of(const std::string& text) {
    constexpr std::string_view kFrame = "\n  File \"";
    json::array frames;
    for (std::size_t at = 0; at < text.size();) {
        const auto next = text.find(kFrame, at);
        const auto end = next == std::string_view::npos ? text.size() : next + 1;
        frames.emplace_back(boost::json::string_view(text.data() + at, end - at));
        at = end;
    }
    return frames;
}

json::value member_or(const json::object& in, std::string_view key, json::value otherwise) {
    const json::value* found = json::find(in, key);
    return found == nullptr ? std::move(otherwise) : *found;
}

json::object error_data(
    const jobs::Job& job, const std::string& prompt_id, const RunNotes& notes, Time at
) {
    const jobs::Failure failure = job.failure.value_or(jobs::Failure{});
    const json::object& details = failure.details;
    const auto type = comfy::maybe_text(details, "exception_type");
    const auto message = comfy::maybe_text(details, "exception_message");
    json::object data;
    data["prompt_id"] = prompt_id;
    data["node_id"] = failure.node_id;
    data["node_type"] = failure.class_type;
    data["executed"] = member_or(details, "executed", notes.executed);
    data["exception_message"] = message.value_or(failure.message + "\n");
    data["exception_type"] = type.value_or("comfyd." + std::string(to_string(failure.code)));
    data["traceback"] = frames_of(failure.traceback);
    data["current_inputs"] = member_or(details, "current_inputs", json::object());
    data["current_outputs"] = member_or(details, "current_outputs", json::array());
    data["timestamp"] = to_unix_ms(at);
    return data;
}

// The prompt as the client sent it: references to stored files become the names again.
void restore_names(json::value& prompt) {
    workflow::each_asset_ref_in(prompt, [](json::value& value) {
        if (auto asset = workflow::AssetRef::read(value); asset && !asset->name.empty()) {
            value = json::value(std::move(asset->name));
        }
    });
}

json::value prompt_of(const jobs::Spec& spec) {
    auto prompt = json::parse(spec.workflow);
    if (!prompt) {
        return json::object();
    }
    if (workflow::may_hold_asset_refs(spec.workflow)) {
        restore_names(*prompt);
    }
    return std::move(*prompt);
}

json::object extra_data_of(const jobs::Job& job, const jobs::Spec& spec) {
    json::object extra = spec.extra_data;
    if (const std::string client = client_id_of(job); !client.empty()) {
        extra["client_id"] = client;
    }
    extra["create_time"] = to_unix_ms(job.created_at);
    return extra;
}

json::object plain_meta(std::string_view node) {
    const boost::json::string_view id(node.data(), node.size());
    // Nodes made by expansion have ids such as "4.0.0.2" and are shown as the first part.
    const auto shown = id.substr(0, id.find('.'));
    return {
        {"node_id", id},
        {"display_node", shown},
        {"parent_node", nullptr},
        {"real_node_id", id},
    };
}

// A run that did not succeed has left what its notes tell.
const json::object& outputs_of(const jobs::Job& job, const std::optional<RunNotes>& notes) {
    return job.state == jobs::State::completed || !notes ? job.ui_outputs : notes->outputs;
}

json::object meta_of(const json::object& outputs, const std::optional<RunNotes>& notes) {
    json::object meta;
    for (const auto& [node, ui] : outputs) {
        const json::value* known = notes ? notes->meta.if_contains(node) : nullptr;
        meta[node] = known != nullptr && known->is_object()
                         ? known->get_object()
                         : plain_meta({node.data(), node.size()});
    }
    return meta;
}

json::object status_of(const jobs::Job& job, const std::optional<RunNotes>& notes) {
    const std::string prompt_id = prompt_id_of(job);
    const Time started = job.started_at.value_or(job.created_at);
    json::array messages;
    const auto add = [&messages](std::string_view type, json::object data) {
        messages.push_back(
            json::array{boost::json::string_view(type.data(), type.size()), std::move(data)}
        );
    };
    add("execution_start", {{"prompt_id", prompt_id}, {"timestamp", to_unix_ms(started)}});
    json::object cached;
    cached["nodes"] = notes ? notes->cached : json::array();
    cached["prompt_id"] = prompt_id;
    cached["timestamp"] = to_unix_ms(started);
    add("execution_cached", std::move(cached));
    auto [type, data] = ending(
        job, prompt_id, notes.value_or(RunNotes{}), job.finished_at.value_or(job.created_at)
    );
    add(type, std::move(data));
    const bool success = job.state == jobs::State::completed;
    json::object status;
    status["status_str"] = success ? "success" : "error";
    status["completed"] = success;
    status["messages"] = std::move(messages);
    return status;
}

std::string_view status_name(jobs::State state) {
    switch (state) {
        case jobs::State::running:
            return "in_progress";
        case jobs::State::completed:
            return "completed";
        case jobs::State::failed:
        case jobs::State::expired:
            return "failed";
        case jobs::State::cancelled:
            return "cancelled";
        default:
            return "pending";
    }
}

}  // namespace

json::object status_data(std::size_t queue_remaining) {
    return {{"status", {{"exec_info", {{"queue_remaining", queue_remaining}}}}}};
}

std::pair<std::string, json::object> ending(
    const jobs::Job& job, const std::string& prompt_id, const RunNotes& notes, Time at
) {
    if (job.state == jobs::State::completed) {
        return {"execution_success", {{"prompt_id", prompt_id}, {"timestamp", to_unix_ms(at)}}};
    }
    if (job.state != jobs::State::cancelled) {
        return {"execution_error", error_data(job, prompt_id, notes, at)};
    }
    json::object data;
    data["prompt_id"] = prompt_id;
    data["node_id"] = notes.last_node;
    data["node_type"] = notes.last_node_type;
    data["executed"] = notes.executed;
    data["timestamp"] = to_unix_ms(at);
    return {"execution_interrupted", std::move(data)};
}

json::array queue_item(const jobs::Job& job, const jobs::Spec& spec) {
    json::value outputs = member_or(job.dialect_data, "outputs", json::array());
    if (job.dialect != kDialect) {
        json::array nodes;
        for (const auto& [node, ui] : job.ui_outputs) {
            nodes.emplace_back(node);
        }
        outputs = std::move(nodes);
    }
    return {
        number_of(job),
        prompt_id_of(job),
        prompt_of(spec),
        extra_data_of(job, spec),
        std::move(outputs),
    };
}

json::object history_entry(
    const jobs::Job& job, const jobs::Spec& spec, const std::optional<RunNotes>& notes
) {
    const json::object& outputs = outputs_of(job, notes);
    json::object entry;
    entry["prompt"] = queue_item(job, spec);
    entry["outputs"] = renamed_outputs(outputs, job.id);
    entry["status"] = status_of(job, notes);
    entry["meta"] = meta_of(outputs, notes);
    return entry;
}

bool is_in_history(const jobs::Job& job) {
    return jobs::is_terminal(job.state) && (job.state != jobs::State::cancelled || job.attempt > 0);
}

json::object job_summary(const jobs::Job& job) {
    json::object summary;
    summary["id"] = prompt_id_of(job);
    summary["status"] = status_name(job.state);
    summary["priority"] = number_of(job);
    summary["create_time"] = to_unix_ms(job.created_at);
    if (job.started_at && jobs::is_terminal(job.state)) {
        summary["execution_start_time"] = to_unix_ms(*job.started_at);
    }
    if (job.finished_at) {
        summary["execution_end_time"] = to_unix_ms(*job.finished_at);
    }
    if (job.state == jobs::State::failed || job.state == jobs::State::expired) {
        summary["execution_error"] =
            error_data(job, prompt_id_of(job), {}, job.finished_at.value_or(job.created_at));
    }
    comfy::add_summary(summary, comfy::summarise_outputs(renamed_outputs(job.ui_outputs, job.id)));
    if (!job.workflow_id.empty()) {
        summary["workflow_id"] = job.workflow_id;
    }
    return summary;
}

json::object job_details(
    const jobs::Job& job, const jobs::Spec& spec, const std::optional<RunNotes>& notes
) {
    json::object details = job_summary(job);
    if (jobs::is_terminal(job.state)) {
        details["outputs"] = renamed_outputs(outputs_of(job, notes), job.id);
        details["execution_status"] = status_of(job, notes);
    }
    details["workflow"] = {{"prompt", prompt_of(spec)}, {"extra_data", extra_data_of(job, spec)}};
    return details;
}

}  // namespace comfyd::api::native
