#include "notify/webhook_message.hpp"

#include <array>
#include <cmath>
#include <utility>

#include "notify/webhook_signing.hpp"

namespace comfyd::notify {
namespace {

// The states that webhook receivers know. A job that missed its deadline has failed for them;
// data.status tells the difference, and the error's category is timeout_error.
std::string_view status_word(jobs::State state) {
    switch (state) {
        case jobs::State::queued:
        case jobs::State::retry_waiting:
            return "queued";
        case jobs::State::running:
            return "processing";
        case jobs::State::completed:
            return "completed";
        case jobs::State::failed:
        case jobs::State::expired:
            return "failed";
        case jobs::State::cancelled:
            return "cancelled";
    }
    return "failed";
}

json::value member_or_null(const json::object& from, std::string_view key) {
    const json::value* found = json::find(from, key);
    return found == nullptr ? json::value(nullptr) : *found;
}

// Seconds between the start of the attempt and the event that ended it.
json::value execution_seconds(const jobs::Job& job, const jobs::Event& event) {
    if (!is_terminal(event.state) || !job.started_at || *job.started_at > event.at) {
        return nullptr;
    }
    return static_cast<double>((event.at - *job.started_at).count()) / 1000.0;
}

std::vector<jobs::Output> outputs_of(const json::object& data) {
    std::vector<jobs::Output> outputs;
    const json::value* listed = json::find(data, "outputs");
    if (listed != nullptr && listed->is_array()) {
        for (const json::value& output : listed->get_array()) {
            if (output.is_object()) {
                outputs.push_back(jobs::Output::from_json(output.get_object()));
            }
        }
    }
    return outputs;
}

json::value result_of(
    const jobs::Job& job, const jobs::Event& event, const ShowResult& show_result
) {
    const bool has_result = event.state == jobs::State::completed || event.data.contains("outputs");
    if (!has_result) {
        return nullptr;
    }
    if (show_result) {
        return show_result(job, outputs_of(event.data), event.at);
    }
    const json::value* outputs = json::find(event.data, "outputs");
    return json::object{{"outputs", outputs == nullptr ? json::value(json::array()) : *outputs}};
}

json::value error_of(const jobs::Event& event) {
    const bool has_failed =
        event.state == jobs::State::failed || event.state == jobs::State::expired;
    return has_failed ? member_or_null(event.data, "error") : json::value(nullptr);
}

void describe_end(
    json::object& data, const jobs::Job& job, const jobs::Event& event, const json::value& result
) {
    data["execution_time_seconds"] = execution_seconds(job, event);
    data["success"] = event.state == jobs::State::completed;
    if (event.type == jobs::EventType::completed || data.contains("outputs")) {
        data.erase("outputs");
        data["result"] = result;
    }
}

void describe_progress(json::object& data) {
    const json::value* value = json::find(data, "value");
    const bool is_known = value != nullptr && value->is_number();
    data["progress_percent"] =
        is_known ? json::value(std::round(value->to_number<double>() * 10'000) / 100)
                 : json::value(nullptr);
    data["current_step"] = member_or_null(data, "current_node_class");
    data["eta_seconds"] = member_or_null(data, "eta_seconds");
}

// The event's own data, and beside it the fields that receivers expect of this kind of event.
json::object data_of(const jobs::Job& job, const jobs::Event& event, const json::value& result) {
    json::object data = event.data;
    switch (event.type) {
        case jobs::EventType::queued:
            data["queue_position"] = member_or_null(data, "queue_position");
            data["estimated_wait_seconds"] = member_or_null(data, "estimated_wait_seconds");
            break;
        case jobs::EventType::started:
            data["gpu_assigned"] = member_or_null(data, "worker");
            data["estimated_duration_seconds"] = member_or_null(data, "estimated_duration_seconds");
            break;
        case jobs::EventType::progress:
            describe_progress(data);
            break;
        case jobs::EventType::completed:
        case jobs::EventType::failed:
        case jobs::EventType::cancelled:
        case jobs::EventType::expired:
            describe_end(data, job, event, result);
            break;
        case jobs::EventType::output:
        case jobs::EventType::retrying:
        case jobs::EventType::cancelling:
        case jobs::EventType::preview:
        case jobs::EventType::warning:
            break;
    }
    data["status"] = event.state == jobs::State::expired ? "expired" : status_word(event.state);
    return data;
}

json::object webhook_document(
    const jobs::Job& job, const jobs::Event& event, const ShowResult& show_result
) {
    const std::string name = jobs::webhook_event_name(event.type);
    const std::string at = to_rfc3339(event.at);
    const json::value result = result_of(job, event, show_result);
    return {
        {"event", name},
        {"type", name},
        {"execution_id", job.id.to_string()},
        {"timestamp", at},
        {"status", status_word(event.state)},
        {"submitted_at", to_rfc3339(job.created_at)},
        {"completed_at", is_terminal(event.state) ? json::value(at) : json::value(nullptr)},
        {"execution_time", execution_seconds(job, event)},
        {"result", result},
        {"error", error_of(event)},
        {"metadata", {{"webhook_version", "1.0"}, {"timestamp", at}}},
        {"job_metadata", job.metadata},
        {"data", data_of(job, event, result)},
    };
}

// In the structured form: all of it is the body.
json::object cloud_event(Envelope envelope, std::string_view source, json::object data) {
    return {
        {"specversion", "1.0"},
        {"id", std::move(envelope.id)},
        {"source", source},
        {"type", std::move(envelope.event)},
        {"time", to_rfc3339(envelope.at)},
        {"subject", std::move(envelope.about)},
        {"datacontenttype", "application/json"},
        {"data", std::move(data)},
    };
}

}  // namespace

std::string webhook_body(
    const jobs::Job& job, const jobs::Event& event, const ShowResult& show_result, BodyForm form
) {
    json::object document = webhook_document(job, event, show_result);
    if (form == BodyForm::cloud_events) {
        document = cloud_event(envelope_of(job, event), "/v2/jobs", std::move(document));
    }
    // In ASCII, as every JSON library can write it again: some receivers check the signature over
    // what they make of the parsed body.
    return json::serialize_ascii(document);
}

std::string webhook_body(const Announcement& announcement, BodyForm form) {
    if (form == BodyForm::plain) {
        return json::serialize_ascii(announcement.body);
    }
    return json::serialize_ascii(
        cloud_event(envelope_of(announcement), announcement.source, announcement.body)
    );
}

}  // namespace comfyd::notify
