#include "api/dialects/comfy_v2/comfy_v2_shapes.hpp"

#include <utility>

#include "api/dialects/kept_outputs.hpp"
#include "api/dialects/or_null.hpp"
#include "api/dialects/output_media.hpp"
#include "api/sse.hpp"
#include "api/submission.hpp"
#include "base/crypto.hpp"
#include "limits/quotas.hpp"

namespace comfyd::api::v2 {
namespace {

json::value millis_or_null(const std::optional<Millis>& duration) {
    return duration ? json::value(duration->count()) : json::value(nullptr);
}

json::array encode_outputs(const json::object& data, const JobId& job, const Scope& scope) {
    json::array outputs;
    if (const json::value* listed = json::find(data, "outputs"); listed && listed->is_array()) {
        for (const json::value& output : listed->get_array()) {
            if (output.is_object()) {
                outputs.push_back(
                    encode_output(jobs::Output::from_json(output.get_object()), job, scope)
                );
            }
        }
    }
    return outputs;
}

json::object status_data(std::string_view status, json::value queue_position) {
    return {{"status", status}, {"queue_position", std::move(queue_position)}};
}

std::string status_frame(const jobs::Event& event, const Scope& scope) {
    json::object data = status_data(status_of(event), nullptr);
    if (event.type == jobs::EventType::completed || event.data.contains("outputs")) {
        data["outputs"] = encode_outputs(event.data, event.job, scope);
    }
    if (const json::value* error = json::find(event.data, "error"); error && error->is_object()) {
        if (jobs::is_terminal(event.state)) {
            data["error"] = encode_failure(jobs::Failure::from_json(error->get_object()));
        }
    }
    return sse_frame("status", json::serialize(data), event.sequence);
}

std::string preview_frame(const jobs::Event& event) {
    const json::value* node = json::find(event.data, "node_id");
    const json::object data{
        {"node_id", node != nullptr && node->is_string() ? *node : json::value("")},
        {"content_type", event.preview_type},
        {"data_base64", to_base64(event.preview)},
    };
    // Without a number: previews overtake progress and are never told again.
    return sse_frame("preview", json::serialize(data));
}

bool shows_failure(const jobs::Job& job) {
    return job.failure && (job.state == jobs::State::failed || job.state == jobs::State::expired);
}

}  // namespace

std::string_view status_of(const jobs::Job& job) {
    switch (job.state) {
        case jobs::State::queued:
        case jobs::State::retry_waiting:
            return "queued";
        case jobs::State::running:
            return job.cancel_requested ? "canceling" : "running";
        case jobs::State::completed:
            return "succeeded";
        case jobs::State::failed:
            return "failed";
        case jobs::State::cancelled:
            return "canceled";
        case jobs::State::expired:
            return "expired";
    }
    return "failed";
}

std::string_view status_of(const jobs::Event& event) {
    jobs::Job job;
    job.state = event.state;
    job.cancel_requested = event.type == jobs::EventType::cancelling;
    return status_of(job);
}

std::vector<jobs::State> states_of(std::string_view status) {
    using enum jobs::State;
    if (status == "queued") {
        return {queued, retry_waiting};
    }
    if (status == "running" || status == "canceling") {
        return {running};
    }
    if (status == "succeeded") {
        return {completed};
    }
    if (status == "failed") {
        return {failed};
    }
    if (status == "canceled") {
        return {cancelled};
    }
    if (status == "expired") {
        return {expired};
    }
    return {};
}

json::object encode_output(const jobs::Output& output, const JobId& job, const Scope& scope) {
    const auto link = [&scope](const AssetId& asset) {
        return download_link(asset, scope.request, scope.services);
    };
    const Download download = link(output.asset);
    json::object encoded{
        {"node_id", output.node_id},
        {"name", output.name},
        {"type", output.type.empty() ? std::string("file") : output.type},
        {"content_type", output.content_type},
        {"size_bytes", output.size_bytes},
        {"id", output.asset.to_string()},
        {"hash", text_or_null(output.hash)},
        {"url", download.url},
        {"url_expires_at", to_rfc3339(download.expires_at)},
        {"job_id", job.to_string()},
    };
    add_media(output, link, encoded);
    add_keeping(encoded, output, scope.services.clock.now());
    return encoded;
}

json::object encode_failure(const jobs::Failure& failure) {
    const CodeInfo& about = info(failure.code);
    json::object encoded{
        {"code", about.name},
        {"message", failure.message},
        {"node_id", text_or_null(failure.node_id)},
        {"class_type", text_or_null(failure.class_type)},
        {"traceback", text_or_null(failure.traceback)},
        {"category", to_string(jobs::category_of(failure))},
        {"retryable", about.retryable},
        {"suggested_action", jobs::suggested_action_of(failure)},
    };
    if (jobs::is_judged(failure)) {
        const jobs::CauseInfo& cause = info(jobs::cause_of(failure));
        encoded["cause"] = cause.name;
        encoded["retry_after"] = or_null(cause.retry_after_s);
        if (const json::value* advice = json::find(failure.details, "advice")) {
            encoded["advice"] = *advice;
        }
    }
    return encoded;
}

json::object encode_job(const jobs::View& view, const Scope& scope) {
    const jobs::Job& job = view.job;
    const std::string_view status = status_of(job);
    const bool is_queued = status == "queued";
    json::array outputs;
    for (const jobs::Output& output : job.outputs) {
        outputs.push_back(encode_output(output, job.id, scope));
    }
    const Time kept_from = job.finished_at.value_or(job.created_at);
    const std::string self = job_path(job.id, scope.services.options);
    json::object body{
        {"id", job.id.to_string()},
        {"status", status},
        {"created_at", to_rfc3339(job.created_at)},
        {"started_at", is_queued ? json::value(nullptr) : time_or_null(job.started_at)},
        {"completed_at", time_or_null(job.finished_at)},
        {"expires_at", to_rfc3339(kept_from + scope.services.rules.retention)},
        {"queue_position", or_null(view.queue_position)},
        {"progress", view.progress ? json::value(view.progress->to_json()) : json::value(nullptr)},
        {"outputs", std::move(outputs)},
        {"error",
         shows_failure(job) ? json::value(encode_failure(*job.failure)) : json::value(nullptr)},
        {"metrics",
         json::object{
             {"queue_ms", millis_or_null(is_queued ? std::nullopt : job.queue_time())},
             {"execution_ms", millis_or_null(job.execution_time())},
         }},
        {"urls",
         json::object{{"self", self}, {"events", self + "/events"}, {"cancel", self + "/cancel"}}},
        {"priority", job.priority},
        {"metadata", job.metadata},
        {"workflow_id", text_or_null(job.workflow_id)},
        {"attempt", job.attempt},
        {"max_attempts", job.max_attempts},
        {"estimated_wait_seconds", or_null(view.estimated_wait_s)},
        {"estimated_remaining_seconds", or_null(view.estimated_remaining_s)},
    };
    if (job.reused_from) {
        body["outputs_reused"] = true;
        body["reused_from"] = job.reused_from->to_string();
    }
    for (const char* kept : {"not_reusable", "retried_from"}) {
        if (const json::value* found = json::find(job.dialect_data, kept)) {
            body[kept] = *found;
        }
    }
    return body;
}

json::object encode_asset(const assets::Asset& asset, const Scope& scope) {
    const Download download = download_link(asset.id, scope.request, scope.services);
    return {
        {"id", asset.id.to_string()},
        {"hash", text_or_null(asset.hash)},
        {"size_bytes", asset.size_bytes},
        {"content_type", asset.content_type},
        {"file_path", text_or_null(asset.file_path)},
        {"tags", json::array(asset.tags.begin(), asset.tags.end())},
        {"created_at", to_rfc3339(asset.created_at)},
        {"url", download.url},
        {"url_expires_at", to_rfc3339(download.expires_at)},
        {"expires_at", time_or_null(asset.expires_at)},
        {"job_id", asset.job ? json::value(asset.job->to_string()) : json::value(nullptr)},
        {"retention",
         asset.retention ? json::value(to_string(*asset.retention)) : json::value(nullptr)},
        {"store", asset.store},
    };
}

std::string job_path(const JobId& id, const ApiOptions& options) {
    std::string prefix;
    if (const auto url = net::Url::parse(options.public_url); url) {
        prefix = url->target;
        while (prefix.ends_with('/')) {
            prefix.pop_back();
        }
    }
    return prefix + "/api/v2/jobs/" + id.to_string();
}

std::string snapshot_frames(const jobs::View& view, const Scope& scope) {
    json::object data = status_data(status_of(view.job), or_null(view.queue_position));
    if (view.job.state == jobs::State::completed || !view.job.outputs.empty()) {
        json::array outputs;
        for (const jobs::Output& output : view.job.outputs) {
            outputs.push_back(encode_output(output, view.job.id, scope));
        }
        data["outputs"] = std::move(outputs);
    }
    if (shows_failure(view.job)) {
        data["error"] = encode_failure(*view.job.failure);
    }
    std::string frames = sse_frame("status", json::serialize(data), view.job.sequence);
    if (view.progress) {
        frames += sse_frame("progress", json::serialize(view.progress->to_json()));
    }
    return frames;
}

std::optional<std::string> event_frame(const jobs::Event& event, const Scope& scope) {
    switch (event.type) {
        case jobs::EventType::progress:
            return sse_frame("progress", json::serialize(event.data), event.sequence);
        case jobs::EventType::preview:
            return preview_frame(event);
        case jobs::EventType::warning:
            return std::nullopt;  // this API has no word for it
        case jobs::EventType::output: {
            const json::value* output = json::find(event.data, "output");
            if (output == nullptr || !output->is_object()) {
                return std::nullopt;
            }
            const json::object data =
                encode_output(jobs::Output::from_json(output->get_object()), event.job, scope);
            return sse_frame("output", json::serialize(data), event.sequence);
        }
        default:
            return status_frame(event, scope);
    }
}

net::Response encode_error(const Error& error) {
    net::Response response = api::encode_error(error);
    if (error.code == Code::invalid_argument) {
        response.status = 422;
    }
    if (const auto reason = json::find_string(error.details, "reason");
        reason && *reason == limits::kMoneyGone) {
        // The word for it in this API; its clients do not try again.
        json::object body{{"code", limits::kMoneyGone}, {"message", error.message}};
        body["details"] = error.details;
        net::Response refusal = json_response(402, json::object{{"error", std::move(body)}});
        add_wait(error, refusal);
        return refusal;
    }
    return response;
}

}  // namespace comfyd::api::v2
