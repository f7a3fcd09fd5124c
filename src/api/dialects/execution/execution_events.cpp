// The messages of an execution's event stream.
#include <utility>

#include "api/dialects/execution/execution.hpp"

namespace comfyd::api::execution {
namespace {

using jobs::EventType;

json::value seconds_between(Time from, Time to) {
    return std::chrono::duration<double>(to - from).count();
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
        case EventType::warning:
            break;
    }
    return std::string(to_string(type));
}

void add_progress(const json::object& data, json::object& into) {
    for (const auto& member : data) {
        if (member.key() == "value") {
            into["progress"] = member.value();
        } else if (member.key() == "eta_seconds") {
            into["estimated_remaining"] = member.value();
        } else {
            into[member.key()] = member.value();
        }
    }
    into["message"] = progress_message(data);
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

}  // namespace

EventEncoder::EventEncoder(const jobs::View& view, Links links)
    : links_(std::move(links)), sequence_(view.job.sequence), started_at_(view.job.started_at) {}

bool EventEncoder::is_last(const jobs::Event& event) const {
    return is_terminal(event.state) && event.sequence >= sequence_;
}

void EventEncoder::follow(const jobs::Event& event) {
    if (event.type == EventType::started) {
        started_at_ = event.at;
    }
}

std::string EventEncoder::variant_of(const jobs::Event& event) const {
    const bool tells_time = event.type == EventType::completed && started_at_;
    return (is_last(event) ? "last " : "") +
           (tells_time ? std::to_string(started_at_->time_since_epoch().count()) : std::string());
}

json::object EventEncoder::encode(const jobs::Event& event) {
    follow(event);
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
            body["execution_time"] =
                started_at_ ? seconds_between(*started_at_, event.at) : nullptr;
            for (const std::string_view key : {"outputs_reused", "reused_from"}) {
                if (const json::value* known = json::find(event.data, key)) {
                    body[key] = *known;
                }
            }
            return body;
        case EventType::warning:
            body["type"] = "warning";
            body["warnings"] = event.data.at("warnings");
            body["message"] = "Accepted, but not all of it as it was asked for";
            return body;
        case EventType::failed:
        case EventType::expired:
            body["type"] = "error";
            body["error"] = failure_of(event);
            if (event.data.contains("outputs")) {
                body["result"] = encode_result(outputs_of(event), links_);
            }
            return body;
        case EventType::retrying:
            body["error"] = failure_of(event);
            break;
        default:
            break;
    }
    for (const std::string_view key :
         {"worker",
          "attempt",
          "retry_at",
          "queue_position",
          "estimated_wait_seconds",
          "estimated_duration_seconds"}) {
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

Result<> check_sequence(const jobs::Job& job, std::uint64_t since) {
    // Events that are not stored are numbered after the latest stored one, after a restart in the
    // next block.
    if (since >= jobs::next_sequence_block(jobs::next_sequence_block(job.sequence))) {
        return fail(
            Code::invalid_argument,
            "no event of this job has had the number " + std::to_string(since) +
                " yet, so nothing can follow it"
        );
    }
    return {};
}

}  // namespace comfyd::api::execution
