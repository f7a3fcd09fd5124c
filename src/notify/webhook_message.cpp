#include "notify/webhook_message.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/crypto.hpp"
#include "jobs/webhook_headers.hpp"

namespace comfyd::notify {
namespace {

constexpr std::string_view kSecretPrefix =
    "whsec_";  // of Standard Webhooks: what follows is base64

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
    if (event.state != jobs::State::completed) {
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
    if (event.type == jobs::EventType::completed) {
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

std::string signing_key(const std::string& secret) {
    if (secret.starts_with(kSecretPrefix)) {
        auto decoded = from_base64(std::string_view(secret).substr(kSecretPrefix.size()));
        if (decoded) {
            return std::move(*decoded);
        }
    }
    return secret;
}

std::string_view bytes_of(const Digest& digest) {
    return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

}  // namespace

std::string webhook_body(
    const jobs::Job& job, const jobs::Event& event, const ShowResult& show_result
) {
    const std::string name = jobs::webhook_event_name(event.type);
    const std::string at = to_rfc3339(event.at);
    const json::value result = result_of(job, event, show_result);
    // In ASCII, as every JSON library can write it again: some receivers check the signature over
    // what they make of the parsed body.
    return json::serialize_ascii({
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
    });
}

net::Headers webhook_headers(
    const jobs::Webhook& webhook,
    const jobs::Job& job,
    const jobs::Event& event,
    const std::string& body,
    Time now
) {
    net::Headers headers;
    headers.set("User-Agent", "comfyd/" COMFYD_VERSION);
    const std::size_t own_headers = std::min(webhook.headers.size(), jobs::kWebhookHeadersMax);
    for (std::size_t i = 0; i < own_headers; ++i) {
        const auto& [name, value] = webhook.headers[i];
        if (jobs::is_webhook_header(name, value) && !jobs::is_reserved_webhook_header(name)) {
            headers.set(name, value);
        }
    }
    const std::string id = "msg_" + job.id.to_string() + "_" + std::to_string(event.sequence);
    const auto unix_seconds = [](Time at) {
        return std::to_string(std::chrono::floor<std::chrono::seconds>(at).time_since_epoch().count(
        ));
    };
    const std::string timestamp = unix_seconds(now);
    headers.set("Content-Type", "application/json");
    headers.set("X-Execution-ID", job.id.to_string());
    headers.set("X-Webhook-Event", jobs::webhook_event_name(event.type));
    headers.set("X-Webhook-ID", id);
    headers.set("X-Webhook-Timestamp", unix_seconds(event.at));
    headers.set("webhook-id", id);
    headers.set("webhook-timestamp", timestamp);
    if (!webhook.secret.empty()) {
        const std::string signature = "sha256=" + to_hex(hmac_sha256(webhook.secret, body));
        headers.set("X-Signature", signature);
        headers.set("X-Webhook-Signature", signature);
        std::string signed_text = id;
        signed_text += '.';
        signed_text += timestamp;
        signed_text += '.';
        signed_text += body;
        const Digest digest = hmac_sha256(signing_key(webhook.secret), signed_text);
        headers.set("webhook-signature", "v1," + to_base64(bytes_of(digest)));
    }
    return headers;
}

}  // namespace comfyd::notify
