#include "api/dialects/execution/execution.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "api/dialects/kept_outputs.hpp"
#include "api/dialects/or_null.hpp"
#include "api/dialects/output_media.hpp"

namespace comfyd::api::execution {
namespace {

using jobs::State;

double seconds_of(Millis duration) {
    return std::chrono::duration<double>(duration).count();
}

json::value seconds_or_null(const std::optional<Millis>& duration) {
    return duration ? json::value(seconds_of(*duration)) : json::value(nullptr);
}

json::value gb_or_null(const std::optional<std::uint64_t>& bytes) {
    constexpr double kGibibyte = 1024.0 * 1024 * 1024;
    return bytes ? json::value(std::round(static_cast<double>(*bytes) / kGibibyte * 1000) / 1000)
                 : json::value(nullptr);
}

bool has_failed(State state) {
    return state == State::failed || state == State::expired;
}

json::value progress_of(const jobs::View& view) {
    switch (view.job.state) {
        case State::queued:
        case State::retry_waiting:
            return 0.0;
        case State::running:
            return view.progress ? json::value(view.progress->value) : json::value(nullptr);
        case State::completed:
            return 1.0;
        case State::failed:
        case State::cancelled:
        case State::expired:
            break;
    }
    return nullptr;
}

json::value failure_of(const jobs::Job& job) {
    if (!has_failed(job.state)) {
        return nullptr;
    }
    return encode_failure(
        job.failure.value_or(jobs::Failure{}), job.finished_at.value_or(job.created_at)
    );
}

json::value category_of(const std::optional<jobs::Failure>& failure) {
    return json::value(to_string(jobs::category_of(failure.value_or(jobs::Failure{}))));
}

}  // namespace

Links links_of(const Call& call, const Services& services) {
    return
        [&call, &services](const AssetId& id) { return download_link(id, call.request, services); };
}

Links links_at(const Services& services, const jobs::Job& job, Time at) {
    std::string base = services.options.public_url;
    if (const json::value* kept = json::find(job.dialect_data, "base_url");
        base.empty() && kept != nullptr && kept->is_string()) {
        base = kept->get_string();
    }
    base = without_last_slash(
        services.options.cdn_url.empty() ? std::move(base) : services.options.cdn_url
    );
    return [&services, base = std::move(base), at](const AssetId& id) {
        auto link = services.links.sign(id, at);
        return Download{base + link.target, link.expires_at};
    };
}

std::string_view status_of(State state) {
    switch (state) {
        case State::queued:
        case State::retry_waiting:
            return "queued";
        case State::running:
            return "processing";
        case State::completed:
            return "completed";
        case State::failed:
        case State::expired:
            return "failed";
        case State::cancelled:
            return "cancelled";
    }
    return "failed";
}

std::vector<State> states_of(std::string_view status) {
    return states_with(status, status_of);
}

std::vector<State> states_with(
    std::string_view status, std::string_view (*status_of_state)(State)
) {
    std::vector<State> states;
    for (int index = 0; index <= static_cast<int>(State::expired); ++index) {
        const auto state = static_cast<State>(index);
        if (status_of_state(state) == status) {
            states.push_back(state);
        }
    }
    return states;
}

json::object encode_output(const jobs::Output& output, const Links& links) {
    const Download link = links(output.asset);
    json::object encoded{
        {"node_id", output.node_id},
        {"name", output.name},
        {"type", output.type},
        {"content_type", output.content_type},
        {"size_bytes", output.size_bytes},
        {"asset_id", output.asset.to_string()},
        {"hash", output.hash},
        {"url", link.url},
        {"url_expires_at", to_rfc3339(link.expires_at)},
    };
    add_media(output, links, encoded);
    add_keeping(encoded, output, std::nullopt);
    return encoded;
}

json::object encode_result(const std::vector<jobs::Output>& produced, const Links& links) {
    json::array outputs;
    json::array images;
    for (const jobs::Output& output : produced) {
        json::object encoded = encode_output(output, links);
        if (output.type == "image") {
            images.emplace_back(links(as_wanted(output).asset).url);
        }
        outputs.emplace_back(std::move(encoded));
    }
    json::object result;
    result["outputs"] = std::move(outputs);
    result["images"] = std::move(images);
    return result;
}

json::value* outputs_in(json::object& body) {
    json::value* result = body.if_contains("result");
    return result != nullptr && result->is_object() ? result->get_object().if_contains("outputs")
                                                    : nullptr;
}

int http_status(Code code) {
    switch (code) {
        case Code::invalid_workflow:
        case Code::workflow_format_ui:
        case Code::missing_asset:
        case Code::no_capable_worker:
        case Code::worker_rejected:
            return 400;
        default:
            return info(code).http_status;
    }
}

std::optional<int> retry_after(const Error& error) {
    constexpr std::int64_t kWaitMaxS = 31 * 86'400;  // to the end of a month
    if (!info(error.code).retryable) {
        return std::nullopt;
    }
    const json::value* given = json::find(error.details, "retry_after");
    if (given != nullptr && given->is_int64() && given->get_int64() >= 0 &&
        given->get_int64() <= kWaitMaxS) {
        return static_cast<int>(given->get_int64());
    }
    switch (error.code) {
        case Code::out_of_memory:
        case Code::worker_unavailable:
        case Code::storage_full:
            return 60;
        default:
            return 5;
    }
}

void add_retry_after(const Error& error, net::Response& response) {
    if (const auto seconds = retry_after(error)) {
        response.headers.set("Retry-After", std::to_string(*seconds));
    }
}

json::object encode_error(const Error& error, Time now) {
    const CodeInfo& code = info(error.code);
    json::object details = error.details;
    details.emplace("suggested_action", code.suggested_action);  // unless there is a better one
    json::object body;
    body["category"] = to_string(code.category);
    body["code"] = code.name;
    body["message"] = error.message;
    body["details"] = std::move(details);
    body["retry_after"] = or_null(retry_after(error));
    body["timestamp"] = to_rfc3339(now);
    return body;
}

json::object encode_failure(const jobs::Failure& failure, Time at) {
    json::object body = encode_error(Error(failure.code, failure.message, failure.details), at);
    if (jobs::is_judged(failure)) {
        const jobs::CauseInfo& cause = info(jobs::cause_of(failure));
        body["category"] = to_string(cause.category);
        body["cause"] = cause.name;
        body["details"].get_object()["suggested_action"] = cause.suggested_action;
        body["retry_after"] = or_null(cause.retry_after_s);
    }
    body["type"] = to_string(failure.code);
    body["node_id"] = text_or_null(failure.node_id);
    body["class_type"] = text_or_null(failure.class_type);
    body["traceback"] = text_or_null(failure.traceback);
    return body;
}

double rounded_usd(double cost) {
    constexpr double kMicro = 1e6;
    return std::round(cost * kMicro) / kMicro;
}

json::object encode_execution(const Shown& shown, const Links& links) {
    const jobs::View& view = shown.view;
    const jobs::Job& job = view.job;
    json::object body;
    body["execution_id"] = job.id.to_string();
    body["status"] = status_of(job.state);
    body["submitted_at"] = to_rfc3339(job.created_at);
    body["started_at"] = time_or_null(job.started_at);
    body["completed_at"] = time_or_null(job.finished_at);
    body["progress"] = progress_of(view);
    body["estimated_remaining"] = or_null(view.estimated_remaining_s);
    if (view.estimate_confidence) {
        body["estimate_confidence"] = std::round(*view.estimate_confidence * 100) / 100;
    }
    // One that failed may have finished some of its outputs before.
    const bool has_result =
        job.state == State::completed || (is_terminal(job.state) && !job.outputs.empty());
    body["result"] =
        has_result ? json::value(encode_result(job.outputs, links)) : json::value(nullptr);
    body["error"] = failure_of(job);
    body["webhook_delivered"] = shown.webhook_delivered;
    body["queue_position"] = or_null(view.queue_position);
    body["priority"] = job.priority;
    body["metadata"] = job.metadata;
    body["retry_count"] = std::max(0, job.attempt - 1);
    if (!shown.attempts.empty()) {
        json::array attempts;
        for (const jobs::PastAttempt& attempt : shown.attempts) {
            attempts.emplace_back(attempt.to_json());
        }
        body["attempts"] = std::move(attempts);
    }
    body["worker"] = text_or_null(job.worker);
    body["cancel_requested"] = job.cancel_requested;
    json::array unbound;
    if (const json::value* kept = json::find(job.dialect_data, "unbound_inputs");
        kept != nullptr && kept->is_object()) {
        for (const auto& member : kept->get_object()) {
            unbound.emplace_back(member.key());
        }
    }
    body["unbound_inputs"] = std::move(unbound);
    if (job.reused_from) {
        body["outputs_reused"] = true;
        body["reused_from"] = job.reused_from->to_string();
    }
    for (const char* kept : {"chosen_parameters", "warnings", "workflow_version", "not_reusable"}) {
        if (const json::value* found = json::find(job.dialect_data, kept)) {
            body[kept] = *found;
        }
    }
    if (body.contains("workflow_version")) {
        body["workflow_id"] = job.workflow_id;
    }
    return body;
}

json::object encode_metrics(const jobs::Job& job) {
    std::optional<Millis> total;
    if (job.finished_at) {
        total = *job.finished_at - job.created_at;
    }
    const bool completed = job.state == State::completed;
    // Of an earlier attempt while another one runs: it would be read as the whole.
    const jobs::Usage* usage = is_terminal(job.state) && job.usage ? &*job.usage : nullptr;
    const auto used = [usage](auto read) {
        return usage != nullptr ? json::value(read(*usage)) : json::value(nullptr);
    };
    const auto images =
        std::count_if(job.outputs.begin(), job.outputs.end(), [](const jobs::Output& output) {
            return output.type == "image";
        });
    json::object body;
    body["execution_id"] = job.id.to_string();
    body["timing"] = json::object{
        {"queue_time", seconds_or_null(job.queue_time())},
        {"model_load_time", used([](const auto& of) { return seconds_of(of.model_load); })},
        {"inference_time",
         usage != nullptr ? json::value(seconds_of(usage->inference))
                          : seconds_or_null(job.execution_time())},
        {"total_time", seconds_or_null(total)},
    };
    body["resources"] = json::object{
        {"gpu_memory_peak_gb", used([](const auto& of) { return gb_or_null(of.vram_peak_bytes); })},
        {"gpu_utilization_percent", used([](const auto& of) { return or_null(of.gpu_percent); })},
        {"cpu_usage_percent", used([](const auto& of) { return or_null(of.cpu_percent); })},
        {"system_memory_gb", used([](const auto& of) { return gb_or_null(of.ram_peak_bytes); })},
    };
    body["workflow"] = json::object{
        {"node_count", job.node_count},
        {"image_count", completed ? json::value(images) : json::value(nullptr)},
        {"model_count", used([](const auto& of) { return of.models; })},
    };
    body["quality"] = json::object{
        {"success", is_terminal(job.state) ? json::value(completed) : json::value(nullptr)},
        {"error_category", has_failed(job.state) ? category_of(job.failure) : json::value(nullptr)},
        {"retry_count", std::max(0, job.attempt - 1)},
    };
    body["cost"] = json::object{
        {"estimate_usd", used([](const auto& of) { return rounded_usd(of.cost_usd); })},
    };
    return body;
}

Task<Result<Shown>> complete_view(const Services& services, jobs::View view) {
    Shown shown;
    shown.view = std::move(view);
    if (shown.view.job.has_webhook) {
        auto status = co_await services.jobs.webhook_status(shown.view.job.id);
        if (!status) {
            co_return fail(std::move(status.error()));
        }
        shown.webhook_delivered = status->any && status->delivered;
    }
    auto attempts = co_await services.jobs.attempts(shown.view.job);
    if (!attempts) {
        co_return fail(std::move(attempts.error()));
    }
    shown.attempts = std::move(*attempts);
    co_return shown;
}

Task<Result<json::object>> list_executions(
    const Call& call, const Services& services, jobs::ListQuery query, Encoder encode
) {
    auto page = co_await services.jobs.list(std::move(query));
    if (!page) {
        co_return fail(std::move(page.error()));
    }
    const Links links = links_of(call, services);
    json::array listed;
    for (jobs::Job& job : page->jobs) {
        jobs::View view;
        view.job = std::move(job);
        auto shown = co_await complete_view(services, std::move(view));
        if (!shown) {
            co_return fail(std::move(shown.error()));
        }
        listed.emplace_back(encode(*shown, links));
    }
    json::object body;
    body["count"] = listed.size();
    body["executions"] = std::move(listed);
    body["next_cursor"] =
        page->next_cursor ? json::value(page->next_cursor->to_string()) : json::value(nullptr);
    co_return body;
}

}  // namespace comfyd::api::execution
