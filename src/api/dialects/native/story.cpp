#include "api/dialects/native/story.hpp"

#include <algorithm>
#include <utility>

#include "api/dialects/native/names.hpp"
#include "comfy/jobs_list.hpp"
#include "comfy/members.hpp"
#include "workflow/files/asset_ref.hpp"

namespace comfyd::api::native {

namespace server = comfy::server;

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
    // Nodes made by expansion have ids such as "4.0.0.2" and are shown as the first part.
    const std::string_view shown = node.substr(0, node.find('.'));
    return server::node_meta(node, shown, nullptr, node);
}

// A run that did not succeed, and of which nothing was kept, has left what its notes tell.
const json::object& outputs_of(const jobs::Job& job, const std::optional<RunNotes>& notes) {
    const bool is_kept = job.state == jobs::State::completed || !job.ui_outputs.empty();
    return is_kept || !notes ? job.ui_outputs : notes->outputs;
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
    return server::run_status(job.state == jobs::State::completed, std::move(messages));
}

comfy::JobStatus status_of(jobs::State state) {
    switch (state) {
        case jobs::State::running:
            return comfy::JobStatus::in_progress;
        case jobs::State::completed:
            return comfy::JobStatus::completed;
        case jobs::State::failed:
        case jobs::State::expired:
            return comfy::JobStatus::failed;
        case jobs::State::cancelled:
            return comfy::JobStatus::cancelled;
        default:
            return comfy::JobStatus::pending;
    }
}

}  // namespace

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

server::PromptView view_prompt(const jobs::Job& job, const jobs::Spec& spec) {
    json::array outputs;
    if (job.dialect != kDialect) {
        for (const auto& [node, ui] : job.ui_outputs) {
            outputs.emplace_back(node);
        }
    } else if (const json::array* known = comfy::array_of(job.dialect_data, "outputs")) {
        outputs = *known;
    }
    return {
        number_of(job),
        prompt_id_of(job),
        prompt_of(spec),
        extra_data_of(job, spec),
        std::move(outputs),
    };
}

server::HistoryView view_history(
    const jobs::Job& job, const jobs::Spec& spec, const std::optional<RunNotes>& notes
) {
    const json::object& outputs = outputs_of(job, notes);
    return {
        view_prompt(job, spec),
        renamed_outputs(outputs, job.id),
        status_of(job, notes),
        meta_of(outputs, notes),
    };
}

bool is_in_history(const jobs::Job& job) {
    return jobs::is_terminal(job.state) && (job.state != jobs::State::cancelled || job.attempt > 0);
}

server::JobView view_job(const jobs::Job& job) {
    server::JobView view;
    view.id = prompt_id_of(job);
    view.status = status_of(job.state);
    view.priority = number_of(job);
    view.created = job.created_at;
    view.started = jobs::is_terminal(job.state) ? job.started_at : std::nullopt;
    view.ended = job.finished_at;
    if (view.status == comfy::JobStatus::failed) {
        view.error =
            error_data(job, prompt_id_of(job), {}, job.finished_at.value_or(job.created_at));
    }
    view.outputs = renamed_outputs(job.ui_outputs, job.id);
    view.workflow_id = job.workflow_id;
    return view;
}

server::JobView view_job(
    const jobs::Job& job, const jobs::Spec& spec, const std::optional<RunNotes>& notes
) {
    server::JobView view = view_job(job);
    server::JobView::Details details;
    if (jobs::is_terminal(job.state)) {
        details.outputs = renamed_outputs(outputs_of(job, notes), job.id);
        details.status = status_of(job, notes);
    }
    details.graph = prompt_of(spec);
    details.extra_data = extra_data_of(job, spec);
    view.details = std::move(details);
    return view;
}

}  // namespace comfyd::api::native
