#include "ledger/codec.hpp"

#include <boost/json/parse.hpp>

#include "notify/target.hpp"

namespace comfyd::ledger {
namespace {

// Above base's limit for what comes from outside, because what was accepted may be wrapped before
// it is stored.
constexpr std::size_t kStoredDepthMax = json::kDepthMax * 2;

Result<json::value> decode(std::string_view text) {
    boost::json::parse_options options;
    options.max_depth = kStoredDepthMax;
    boost::system::error_code error;
    auto parsed =
        boost::json::parse(boost::json::string_view(text.data(), text.size()), error, {}, options);
    if (error) {
        return fail(damaged("JSON document"));
    }
    return parsed;
}

}  // namespace

Error damaged(std::string_view what) {
    return Error(
        Code::internal,
        "a stored " + std::string(what) + " cannot be read; restore the database from a backup"
    );
}

std::optional<std::string> encode(const json::object& object) {
    return object.empty() ? std::nullopt : std::optional(json::serialize(object));
}

std::optional<std::string> encode(const json::array& array) {
    return array.empty() ? std::nullopt : std::optional(json::serialize(array));
}

Result<json::object> decode_object(std::string_view text) {
    if (text.empty()) {
        return json::object();
    }
    auto value = decode(text);
    if (!value) {
        return fail(std::move(value.error()));
    }
    if (!value->is_object()) {
        return fail(damaged("JSON object"));
    }
    return std::move(value->get_object());
}

Result<json::array> decode_array(std::string_view text) {
    if (text.empty()) {
        return json::array();
    }
    auto value = decode(text);
    if (!value) {
        return fail(std::move(value.error()));
    }
    if (!value->is_array()) {
        return fail(damaged("JSON list"));
    }
    return std::move(value->get_array());
}

std::string encode_spec(const jobs::Spec& spec) {
    json::object object{
        {"priority", spec.priority},
        {"timeout_ms", spec.timeout.count()},
        {"max_attempts", spec.max_attempts},
        {"node_count", spec.node_count},
    };
    if (spec.batch) {
        object["batch"] = true;
    }
    if (!spec.fairness_key.empty()) {
        object["fairness_key"] = spec.fairness_key;
    }
    if (spec.deadline) {
        object["deadline"] = to_unix_ms(*spec.deadline);
    }
    if (!spec.idempotency_key.empty()) {
        object["idempotency_key"] = spec.idempotency_key;
    }
    if (!spec.request_hash.empty()) {
        object["request_hash"] = spec.request_hash;
    }
    if (!spec.targets.empty()) {
        object["targets"] = json::array(spec.targets.begin(), spec.targets.end());
    }
    return json::serialize(object);
}

Result<> decode_spec(std::string_view text, jobs::Spec& into) {
    const auto object = decode_object(text);
    if (!object) {
        return fail(object.error());
    }
    const auto integer = [&object](std::string_view key) {
        return json::find_int(*object, key).value_or(std::nullopt);
    };
    const auto string = [&object](std::string_view key) {
        return json::find_string(*object, key).value_or(std::nullopt).value_or("");
    };
    into.priority = static_cast<int>(integer("priority").value_or(into.priority));
    into.timeout = Millis(integer("timeout_ms").value_or(into.timeout.count()));
    into.max_attempts = static_cast<int>(integer("max_attempts").value_or(into.max_attempts));
    into.node_count = static_cast<int>(integer("node_count").value_or(0));
    if (const auto deadline = integer("deadline")) {
        into.deadline = from_unix_ms(*deadline);
    }
    const json::value* batch = json::find(*object, "batch");
    into.batch = batch != nullptr && batch->is_bool() && batch->get_bool();
    into.fairness_key = string("fairness_key");
    into.idempotency_key = string("idempotency_key");
    into.request_hash = string("request_hash");
    if (const auto targets = json::find_array(*object, "targets"); targets && *targets != nullptr) {
        for (const json::value& target : **targets) {
            if (target.is_string()) {
                into.targets.emplace_back(target.get_string());
            }
        }
    }
    return {};
}

Result<> decode_webhook(const std::optional<std::string>& target, jobs::Spec& into) {
    if (!target) {
        return {};
    }
    auto decoded = notify::decode_target(*target);
    auto* webhook = decoded ? std::get_if<jobs::Webhook>(&*decoded) : nullptr;
    if (webhook == nullptr) {
        return fail(damaged("webhook"));
    }
    into.webhook = std::move(*webhook);
    return {};
}

std::string encode_webhook_events(const jobs::Webhook& webhook) {
    std::string names;
    for (const std::string& name : webhook.events) {
        names.append(names.empty() ? "" : "\n").append(name);
    }
    return names;
}

bool wants_event(std::string_view webhook_events, jobs::EventType type) {
    jobs::Webhook webhook;
    while (!webhook_events.empty()) {
        const std::size_t end = webhook_events.find('\n');
        webhook.events.emplace_back(webhook_events.substr(0, end));
        webhook_events.remove_prefix(
            end == std::string_view::npos ? webhook_events.size() : end + 1
        );
    }
    return webhook.wants(jobs::webhook_event_name(type));
}

}  // namespace comfyd::ledger
