#include "api/dialects/execution.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace comfyd::api::execution {
namespace {

using jobs::EventType;
using jobs::State;

constexpr std::int64_t kListLimitMax = 1000;
constexpr std::int64_t kMaxRetriesMax = 9;

json::value time_or_null(const std::optional<Time>& time) {
    return time ? json::value(to_rfc3339(*time)) : json::value(nullptr);
}

template <class T>
json::value or_null(const std::optional<T>& from) {
    return from ? json::value(*from) : json::value(nullptr);
}

json::value seconds_or_null(const std::optional<Millis>& duration) {
    return duration ? json::value(std::chrono::duration<double>(*duration).count())
                    : json::value(nullptr);
}

json::value text_or_null(const std::string& text) {
    return text.empty() ? json::value(nullptr) : json::value(text);
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

std::string progress_message(const json::object& data) {
    const auto text = [&data](std::string_view key) -> std::string {
        const json::value* found = json::find(data, key);
        return found != nullptr && found->is_string() ? std::string(found->get_string())
                                                      : std::string();
    };
    const auto number = [&data](std::string_view key) -> std::int64_t {
        const json::value* found = json::find(data, key);
        return found != nullptr && found->is_int64() ? found->get_int64() : 0;
    };
    if (std::string given = text("message"); !given.empty()) {
        return given;
    }
    std::string node = text("current_node_class");
    if (node.empty()) {
        node = text("current_node");
    }
    if (node.empty()) {
        return "Running";
    }
    std::string message = "Running " + node;
    if (number("steps") > 0) {
        message +=
            ", step " + std::to_string(number("step")) + " of " + std::to_string(number("steps"));
    }
    return message;
}

std::string status_message(EventType type) {
    switch (type) {
        case EventType::queued:
            return "Waiting for a worker";
        case EventType::started:
            return "Running on a worker";
        case EventType::retrying:
            return "The attempt failed in a way that may pass; another one follows";
        case EventType::cancelling:
            return "Asked the worker to stop";
        case EventType::cancelled:
            return "Cancelled";
        case EventType::progress:
        case EventType::output:
        case EventType::completed:
        case EventType::failed:
        case EventType::expired:
        case EventType::preview:
            break;
    }
    return std::string(to_string(type));
}

void add_progress(const json::object& data, json::object& into) {
    for (const auto& member : data) {
        if (member.key() == "value") {
            into["progress"] = member.value();
        } else {
            into[member.key()] = member.value();
        }
    }
    into["message"] = progress_message(data);
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
    return json::value(to_string(info(failure ? failure->code : Code::internal).category));
}

json::object failure_of(const jobs::Event& event) {
    const json::value* error = json::find(event.data, "error");
    const bool given = error != nullptr && error->is_object();
    return encode_failure(
        given ? jobs::Failure::from_json(error->get_object()) : jobs::Failure{}, event.at
    );
}

jobs::Output output_of(const jobs::Event& event) {
    const json::value* output = json::find(event.data, "output");
    const bool given = output != nullptr && output->is_object();
    return given ? jobs::Output::from_json(output->get_object()) : jobs::Output{};
}

std::vector<jobs::Output> outputs_of(const jobs::Event& event) {
    std::vector<jobs::Output> outputs;
    const json::value* listed = json::find(event.data, "outputs");
    if (listed != nullptr && listed->is_array()) {
        for (const json::value& output : listed->get_array()) {
            if (output.is_object()) {
                outputs.push_back(jobs::Output::from_json(output.get_object()));
            }
        }
    }
    return outputs;
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && text.front() == ' ') {
        text.remove_prefix(1);
    }
    while (!text.empty() && text.back() == ' ') {
        text.remove_suffix(1);
    }
    return text;
}

void copy_member(const json::object& from, std::string_view key, json::object& into) {
    if (const json::value* found = json::find(from, key); found != nullptr) {
        into[key] = *found;
    }
}

Result<> copy_max_retries(const json::object& from, json::object& into) {
    const auto max_retries = json::find_int(from, "max_retries");
    if (!max_retries) {
        return fail(max_retries.error());
    }
    if (!*max_retries) {
        return {};
    }
    if (**max_retries < 0 || **max_retries > kMaxRetriesMax) {
        return fail(
            Code::invalid_argument,
            "'max_retries' is " + std::to_string(**max_retries) + ", but must be from 0 to " +
                std::to_string(kMaxRetriesMax),
            {{"field", "max_retries"}}
        );
    }
    into["max_attempts"] = **max_retries + 1;
    return {};
}

Result<> decode_states(
    std::string_view text,
    const StatusParser& states_of_status,
    std::string_view status_names,
    std::vector<State>& into
) {
    while (!text.empty()) {
        const std::size_t comma = std::min(text.find(','), text.size());
        const std::string_view name = trimmed(text.substr(0, comma));
        text.remove_prefix(std::min(comma + 1, text.size()));
        const auto states = states_of_status(name);
        if (states.empty()) {
            return fail(
                Code::invalid_argument,
                "status: \"" + std::string(name) + "\" is unknown; use one of " +
                    std::string(status_names)
            );
        }
        for (const State state : states) {
            if (std::find(into.begin(), into.end(), state) == into.end()) {
                into.push_back(state);
            }
        }
    }
    return {};
}

}  // namespace

Links links_of(const Call& call, const Services& services) {
    return
        [&call, &services](const AssetId& id) { return download_link(id, call.request, services); };
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
    std::vector<State> states;
    for (int index = 0; index <= static_cast<int>(State::expired); ++index) {
        const auto state = static_cast<State>(index);
        if (status_of(state) == status) {
            states.push_back(state);
        }
    }
    return states;
}

json::object encode_output(const jobs::Output& output, const Links& links) {
    const Download link = links(output.asset);
    return {
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
}

json::object encode_result(const std::vector<jobs::Output>& produced, const Links& links) {
    json::array outputs;
    json::array images;
    for (const jobs::Output& output : produced) {
        json::object encoded = encode_output(output, links);
        if (output.type == "image") {
            images.emplace_back(encoded["url"]);
        }
        outputs.emplace_back(std::move(encoded));
    }
    json::object result;
    result["outputs"] = std::move(outputs);
    result["images"] = std::move(images);
    return result;
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
    if (!info(error.code).retryable) {
        return std::nullopt;
    }
    const json::value* given = json::find(error.details, "retry_after");
    if (given != nullptr && given->is_int64() && given->get_int64() >= 0 &&
        given->get_int64() < 86'400) {
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
    details["suggested_action"] = code.suggested_action;
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
    body["type"] = to_string(failure.code);
    body["node_id"] = text_or_null(failure.node_id);
    body["class_type"] = text_or_null(failure.class_type);
    body["traceback"] = text_or_null(failure.traceback);
    return body;
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
    body["result"] = job.state == State::completed ? json::value(encode_result(job.outputs, links))
                                                   : json::value(nullptr);
    body["error"] = failure_of(job);
    body["webhook_delivered"] = shown.webhook_delivered;
    body["queue_position"] = or_null(view.queue_position);
    body["priority"] = job.priority;
    body["metadata"] = job.metadata;
    body["retry_count"] = std::max(0, job.attempt - 1);
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
    return body;
}

json::object encode_metrics(const jobs::Job& job) {
    std::optional<Millis> total;
    if (job.finished_at) {
        total = *job.finished_at - job.created_at;
    }
    const bool completed = job.state == State::completed;
    const auto images =
        std::count_if(job.outputs.begin(), job.outputs.end(), [](const jobs::Output& output) {
            return output.type == "image";
        });
    json::object body;
    body["execution_id"] = job.id.to_string();
    body["timing"] = json::object{
        {"queue_time", seconds_or_null(job.queue_time())},
        {"model_load_time", nullptr},
        {"inference_time", seconds_or_null(job.execution_time())},
        {"total_time", seconds_or_null(total)},
    };
    body["resources"] = json::object{
        {"gpu_memory_peak_gb", nullptr},
        {"gpu_utilization_percent", nullptr},
        {"cpu_usage_percent", nullptr},
        {"system_memory_gb", nullptr},
    };
    body["workflow"] = json::object{
        {"node_count", job.node_count},
        {"image_count", completed ? json::value(images) : json::value(nullptr)},
        {"model_count", nullptr},
    };
    body["quality"] = json::object{
        {"success", is_terminal(job.state) ? json::value(completed) : json::value(nullptr)},
        {"error_category", has_failed(job.state) ? category_of(job.failure) : json::value(nullptr)},
        {"retry_count", std::max(0, job.attempt - 1)},
    };
    body["cost"] = json::object{{"estimate_usd", nullptr}};
    return body;
}

EventEncoder::EventEncoder(const jobs::View& view, Links links)
    : links_(std::move(links)), sequence_(view.job.sequence), started_at_(view.job.started_at) {}

bool EventEncoder::is_last(const jobs::Event& event) const {
    return is_terminal(event.state) && event.sequence >= sequence_;
}

json::object EventEncoder::encode(const jobs::Event& event) {
    json::object body;
    body["type"] = "status_change";
    body["execution_id"] = event.job.to_string();
    body["sequence"] = event.sequence;
    body["timestamp"] = to_rfc3339(event.at);
    body["status"] = status_of(event.state);
    switch (event.type) {
        case EventType::progress:
            body["type"] = "progress";
            add_progress(event.data, body);
            return body;
        case EventType::output:
            body["type"] = "output";
            body["output"] = encode_output(output_of(event), links_);
            return body;
        case EventType::completed:
            body["type"] = "completed";
            body["result"] = encode_result(outputs_of(event), links_);
            body["execution_time"] = seconds_or_null(
                started_at_ ? std::optional<Millis>(event.at - *started_at_) : std::nullopt
            );
            return body;
        case EventType::failed:
        case EventType::expired:
            body["type"] = "error";
            body["error"] = failure_of(event);
            return body;
        case EventType::started:
            started_at_ = event.at;
            break;
        case EventType::retrying:
            body["error"] = failure_of(event);
            break;
        default:
            break;
    }
    for (const std::string_view key : {"worker", "attempt", "retry_at"}) {
        if (const json::value* known = json::find(event.data, key); known != nullptr) {
            body[key] = *known;
        }
    }
    body["message"] = status_message(event.type);
    return body;
}

bool is_over(const jobs::Job& job, std::uint64_t since) {
    return is_terminal(job.state) && since >= job.sequence;
}

std::uint64_t since_state(const jobs::Job& job) {
    return is_terminal(job.state) && job.sequence > 0 ? job.sequence - 1 : job.sequence;
}

Result<JobId> parse_id(std::string_view text) {
    const auto id = JobId::parse(text);
    if (!id) {
        return fail(
            Code::not_found, "There is no job \"" + std::string(text.substr(0, 64)) + "\"."
        );
    }
    return *id;
}

Result<std::optional<std::uint64_t>> parse_sequence(std::string_view text) {
    if (text.empty()) {
        return std::optional<std::uint64_t>();
    }
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) {
        return fail(
            Code::invalid_argument,
            "The sequence to resume after must be a number that an earlier event had, not \"" +
                std::string(text.substr(0, 64)) + "\"."
        );
    }
    return std::optional<std::uint64_t>(number);
}

Result<> check_sequence(const jobs::Job& job, std::uint64_t since) {
    // Events that are not stored are numbered after the latest stored one, after a restart in the
    // next block.
    if (since >= jobs::next_sequence_block(jobs::next_sequence_block(job.sequence))) {
        return fail(
            Code::invalid_argument,
            "No event of this job has had the number " + std::to_string(since) +
                " yet, so nothing can follow it."
        );
    }
    return {};
}

Result<jobs::ListQuery> decode_list_query(
    const Call& call, const StatusParser& states_of_status, std::string_view status_names
) {
    jobs::ListQuery query;
    query.tenant = call.caller.tenant;
    const auto states =
        decode_states(call.query_value("status"), states_of_status, status_names, query.states);
    if (!states) {
        return fail(states.error());
    }
    if (const std::string_view text = call.query_value("limit"); !text.empty()) {
        std::int64_t limit = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), limit);
        if (error != std::errc() || end != text.data() + text.size() || limit < 1 ||
            limit > kListLimitMax) {
            return fail(Code::invalid_argument, "limit: must be a whole number from 1 to 1000");
        }
        query.limit = static_cast<int>(limit);
    }
    if (const std::string_view text = call.query_value("cursor"); !text.empty()) {
        query.cursor = JobId::parse(text);
        if (!query.cursor) {
            return fail(
                Code::invalid_argument, "cursor: must be the next_cursor of an earlier page"
            );
        }
    }
    return query;
}

Result<json::object> common_members(const json::object& body) {
    const auto config = json::find_object(body, "execution_config");
    if (!config) {
        return fail(config.error());
    }
    json::object common;
    for (const std::string_view key :
         {"metadata", "callback_url", "webhook_url", "webhook_config"}) {
        copy_member(body, key, common);
    }
    for (const json::object* from : {&body, *config}) {
        if (from == nullptr) {
            continue;
        }
        for (const std::string_view key : {"timeout", "priority", "deadline", "max_attempts"}) {
            copy_member(*from, key, common);
        }
        if (auto done = copy_max_retries(*from, common); !done) {
            return fail(std::move(done.error()));
        }
    }
    return common;
}

Result<> keep_objects(
    const json::object& body, std::initializer_list<std::string_view> keys, json::object& into
) {
    for (const std::string_view key : keys) {
        const auto found = json::find_object(body, key);
        if (!found) {
            return fail(found.error());
        }
        if (*found != nullptr) {
            into[key] = **found;
        }
    }
    return {};
}

Result<> take_inputs(const json::object& body, std::string_view key, Submission& into) {
    const auto inputs = json::find_object(body, key);
    if (!inputs) {
        return fail(inputs.error());
    }
    if (*inputs == nullptr) {
        return {};
    }
    json::object unbound;
    for (const auto& member : **inputs) {
        const bool is_bound = member.key().find('.') != std::string_view::npos;
        (is_bound ? into.parameters : unbound)[member.key()] = member.value();
    }
    if (!unbound.empty()) {
        into.spec.dialect_data["unbound_inputs"] = std::move(unbound);
    }
    return {};
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
