// How a job and an endpoint look in RunPod's words, and what their files become.
#include <algorithm>
#include <utility>

#include "api/dialects/output_media.hpp"
#include "api/dialects/runpod/runpod.hpp"
#include "api/job_wait.hpp"
#include "comfy/members.hpp"

namespace comfyd::api::runpod {
namespace {

using jobs::State;

std::string error_text(const jobs::Job& job) {
    const jobs::Failure failure = job.failure.value_or(jobs::Failure{});
    std::string text = failure.message;
    if (text.empty()) {
        text = job.state == State::expired ? "the job's time to live was over before it could end"
                                           : "the job failed for an unknown reason";
    }
    // A worker's own words may begin with it.
    if (failure.node_id.empty() || text.starts_with("node " + failure.node_id + " ")) {
        return text;
    }
    const std::string type = failure.class_type.empty() ? "" : " (" + failure.class_type + ")";
    return "node " + failure.node_id + type + ": " + text;
}

json::object error_details(const jobs::Failure& failure) {
    json::object details{{"code", to_string(failure.code)}};
    if (jobs::is_judged(failure)) {
        details["cause"] = to_string(jobs::cause_of(failure));
    }
    for (const auto& [key, text] :
         {std::pair("node_id", &failure.node_id),
          std::pair("class_type", &failure.class_type),
          std::pair("traceback", &failure.traceback)}) {
        if (!text->empty()) {
            details[key] = *text;
        }
    }
    if (const json::value* node_errors = json::find(failure.details, "node_errors")) {
        details["node_errors"] = *node_errors;
    }
    return details;
}

bool is_shown(const jobs::Output& output) {
    return output.folder != "temp";
}

// In the client's own bucket, for as long as the link there works.
std::optional<std::string> exported_url(const jobs::Output& output, Time now) {
    const auto expires_at = json::find_int(output.exported, "expires_at");
    const bool is_over = expires_at && *expires_at && **expires_at <= to_unix_ms(now);
    return is_over ? std::nullopt : comfy::maybe_text(output.exported, "url");
}

std::string not_exported(const jobs::Output& output, const std::string& why) {
    return "'" + as_wanted(output).name + "' is not in the bucket of 's3Config': " + why;
}

}  // namespace

std::string_view status_of(const jobs::Job& job) {
    switch (job.state) {
        case State::queued:
        case State::retry_waiting:
            return "IN_QUEUE";
        case State::running:
            return "IN_PROGRESS";
        case State::completed:
            return "COMPLETED";
        case State::cancelled:
            return "CANCELLED";
        case State::expired:
            return "TIMED_OUT";
        case State::failed:
            break;
    }
    const Code code = job.failure ? job.failure->code : Code::internal;
    return code == Code::execution_timeout || code == Code::deadline_exceeded ? "TIMED_OUT"
                                                                              : "FAILED";
}

bool has_output(const jobs::Job& job) {
    return job.state == State::completed || (is_terminal(job.state) && !job.outputs.empty());
}

json::object encode_status(const jobs::View& view, std::optional<json::object> output) {
    const jobs::Job& job = view.job;
    json::object body;
    body["id"] = job.id.to_string();
    body["status"] = status_of(job);
    if (const auto waited = job.queue_time()) {
        body["delayTime"] = waited->count();
    }
    if (const auto ran = job.execution_time()) {
        body["executionTime"] = ran->count();
    }
    if (!job.worker.empty()) {
        body["workerId"] = job.worker;
    }
    if (view.queue_position) {
        body["queuePosition"] = *view.queue_position;
    }
    if (view.progress) {
        body["progress"] = view.progress->to_json();
    }
    if (job.state == State::failed || job.state == State::expired) {
        body["error"] = error_text(job);
        body["errorDetails"] = error_details(job.failure.value_or(jobs::Failure{}));
    }
    if (output) {
        body["output"] = std::move(*output);
    }
    return body;
}

json::object encode_error(const Error& error) {
    json::object body{{"error", error.message}, {"code", to_string(error.code)}};
    if (!error.details.empty()) {
        body["details"] = error.details;
    }
    return body;
}

json::object encode_health(
    const EndpointCounts& counts, const std::vector<jobs::WorkerInfo>& workers
) {
    using enum jobs::WorkerStatus;
    const auto count = [&workers](jobs::WorkerStatus status) {
        return std::count_if(workers.begin(), workers.end(), [status](const auto& worker) {
            return worker.status == status;
        });
    };
    return {
        {"jobs",
         {{"completed", counts.completed},
          {"failed", counts.failed},
          {"inProgress", counts.in_progress},
          {"inQueue", counts.in_queue},
          {"retried", counts.retried}}},
        {"workers",
         {{"idle", count(idle)},
          {"initializing", count(starting)},
          {"ready", count(idle) + count(running)},
          {"running", count(running)},
          {"throttled", count(draining)},
          {"unhealthy", count(down)}}},
    };
}

Task<json::object> make_file(
    const Services& services,
    std::string tenant,
    jobs::Output made,
    execution::Links links,
    std::uint64_t inline_bytes_max
) {
    const jobs::Output& output = as_wanted(made);
    json::object file{{"filename", output.name}};
    add_media(made, links, file);
    if (auto url = exported_url(made, services.clock.now())) {
        file["type"] = "s3_url";
        file["data"] = std::move(*url);
        co_return file;
    }
    if (base64_size(output.size_bytes) <= inline_bytes_max) {
        auto text = co_await read_base64(services, std::move(tenant), output, inline_bytes_max);
        if (text) {
            file["type"] = "base64";
            file["data"] = std::move(*text);
            co_return file;
        }
        if (text.error().code == Code::output_unavailable) {
            file["error"] = text.error().message;
            co_return file;
        }
    }
    file["type"] = "s3_url";
    file["data"] = links(output.asset).url;
    co_return file;
}

Task<json::object> make_output(
    const Services& services, jobs::Job job, execution::Links links, std::uint64_t inline_bytes_max
) {
    std::uint64_t left = comfy::text_of(job.dialect_data, "return") == "url" ? 0 : inline_bytes_max;
    json::array images;
    json::array files;
    json::array errors;
    if (const json::array* warnings = comfy::array_of(job.dialect_data, "warnings")) {
        errors = *warnings;
    }
    for (const jobs::Output& output : job.outputs) {
        if (!is_shown(output)) {
            continue;
        }
        auto file = co_await make_file(services, job.tenant, output, links, left);
        if (const auto why = comfy::maybe_text(output.exported, "error")) {
            errors.emplace_back(not_exported(output, *why));
        }
        if (const json::value* error = json::find(file, "error")) {
            errors.push_back(*error);
            continue;
        }
        left -= file.at("type") == "base64" ? file.at("data").get_string().size() : 0;
        if (output.type == "image") {
            images.push_back(std::move(file));
        } else {
            file["content_type"] = output.content_type;
            files.push_back(std::move(file));
        }
    }
    json::object made;
    if (images.empty() && files.empty() && errors.empty()) {
        made["status"] = "success_no_images";
    }
    made["images"] = std::move(images);
    if (!files.empty()) {
        made["files"] = std::move(files);
    }
    if (!errors.empty()) {
        made["errors"] = std::move(errors);
    }
    co_return made;
}

Task<std::optional<std::string>> webhook_body(
    const Services& services, jobs::Job job, jobs::Event event
) {
    if (job.dialect != kDialect) {
        co_return std::nullopt;
    }
    const execution::Links links = execution::links_at(services, job, event.at);
    std::optional<json::object> output;
    if (has_output(job)) {
        auto made = co_await make_output(services, job, links, kWebhookBytesMax);
        output = std::move(made);
    }
    jobs::View view;
    view.job = std::move(job);
    co_return json::serialize_ascii(encode_status(view, std::move(output)));
}

StreamCursors::Given& StreamCursors::touch(const JobId& job) {
    if (const auto found = jobs_.find(job); found != jobs_.end()) {
        by_use_.splice(by_use_.begin(), by_use_, found->second);
        return by_use_.front();
    }
    by_use_.push_front(Given{job, {}, 0});
    jobs_[job] = by_use_.begin();
    if (by_use_.size() > kJobsMax) {
        jobs_.erase(by_use_.back().job);
        by_use_.pop_back();
    }
    return by_use_.front();
}

bool StreamCursors::give_progress(const JobId& job, const std::string& text) {
    const Lock lock(mutex_);
    Given& given = touch(job);
    const bool is_new = given.progress != text;
    given.progress = text;
    return is_new;
}

bool StreamCursors::give_result(const JobId& job, int attempt) {
    const Lock lock(mutex_);
    Given& given = touch(job);
    const bool is_new = given.attempt != attempt;
    given.attempt = attempt;
    return is_new;
}

}  // namespace comfyd::api::runpod
