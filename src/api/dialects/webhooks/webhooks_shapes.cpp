#include <array>
#include <utility>

#include "api/dialects/or_null.hpp"
#include "api/dialects/webhooks/webhooks.hpp"
#include "api/webhook_fields.hpp"
#include "api/wrong_field.hpp"

namespace comfyd::api::webhooks {
namespace {

using notify::Endpoint;

constexpr std::size_t kDescriptionBytesMax = 1024;
constexpr std::string_view kEndpointPrefix = "endpoint:";
constexpr std::string_view kOwnReceiver = "job";
// What jobs::Webhook reads of them.
constexpr std::array<std::string_view, 8> kWebhookMembers{
    "url", "headers", "events", "method", "timeout", "max_retries", "retry_delay", "verify_ssl"
};

json::value seconds_or_null(const std::optional<Millis>& time) {
    return time ? json::value(std::chrono::duration<double>(*time).count()) : json::value(nullptr);
}

// A name out of a fixed list.
template <class T, class Parse>
Result<> decode_name(
    const json::object& members, const char* field, Parse parse, const char* known, T& into
) {
    const auto text = json::find_string(members, field);
    if (!text) {
        return fail(text.error());
    }
    if (*text) {
        const auto parsed = parse(**text);
        if (!parsed) {
            return wrong(field, "'" + std::string(field) + "' must be one of " + known);
        }
        into = *parsed;
    }
    return {};
}

Result<> decode_enabled(const json::object& members, Endpoint& endpoint) {
    const auto enabled = json::find_bool(members, "enabled");
    if (!enabled) {
        return fail(enabled.error());
    }
    if (*enabled && **enabled) {
        endpoint.disabled.reset();
    } else if (*enabled && !endpoint.disabled) {
        endpoint.disabled = "by request";
    }
    return {};
}

Result<> decode_description(const json::object& members, Endpoint& endpoint) {
    auto description = json::find_string(members, "description");
    if (!description) {
        return fail(std::move(description.error()));
    }
    if (*description && (*description)->size() > kDescriptionBytesMax) {
        return wrong(
            "description",
            "'description' may have at most " + std::to_string(kDescriptionBytesMax) + " bytes"
        );
    }
    if (members.contains("description")) {
        endpoint.description = description->value_or("");
    }
    return {};
}

}  // namespace

json::object encode_endpoint(const Endpoint& endpoint) {
    const jobs::Webhook& webhook = endpoint.webhook;
    json::object headers;  // their values may be secrets
    for (const auto& [name, value] : webhook.headers) {
        headers[name] = "***";
    }
    return {
        {"id", endpoint.id.to_string()},
        {"url", webhook.url},
        {"description", endpoint.description},
        {"events", json::array(webhook.events.begin(), webhook.events.end())},
        {"scheme", to_string(endpoint.scheme)},
        {"body", to_string(endpoint.body)},
        {"method", webhook.method},
        {"headers", std::move(headers)},
        {"timeout", seconds_or_null(webhook.timeout)},
        {"max_retries", or_null(webhook.max_retries)},
        {"retry_delay", seconds_or_null(webhook.retry_delay)},
        {"verify_ssl", webhook.verify_tls},
        {"enabled", !endpoint.disabled},
        {"disabled_reason", or_null(endpoint.disabled)},
        {"old_secret_until", time_or_null(endpoint.previous_until)},
        {"created_at", to_rfc3339(endpoint.created_at)},
        {"updated_at", to_rfc3339(endpoint.updated_at)},
    };
}

Result<Endpoint> changed_endpoint(
    Endpoint endpoint, const json::object& members, const Services& services
) {
    json::object wanted = endpoint.webhook.to_json();
    for (const std::string_view name : kWebhookMembers) {
        if (members.contains(name)) {
            wanted[name] = members.at(name);
        }
    }
    wanted.erase("secret");
    auto webhook = jobs::Webhook::from_json(wanted);
    if (!webhook) {
        return fail(std::move(webhook.error()));
    }
    auto checked = check_webhook(*webhook, "", services, services.webhooks->operator_events);
    if (!checked) {
        return fail(std::move(checked.error()));
    }
    webhook->secret = std::move(endpoint.webhook.secret);
    endpoint.webhook = std::move(*webhook);
    auto decoded = decode_name(
        members,
        "scheme",
        notify::parse_scheme,
        "all, standard, x-signature, x-webhook",
        endpoint.scheme
    );
    if (decoded) {
        decoded = decode_name(
            members, "body", notify::parse_body_form, "plain, cloudevents", endpoint.body
        );
    }
    if (decoded) {
        decoded = decode_enabled(members, endpoint);
    }
    if (decoded) {
        decoded = decode_description(members, endpoint);
    }
    return decoded ? Result<Endpoint>(std::move(endpoint)) : fail(std::move(decoded.error()));
}

Result<std::string> decode_secret(const json::object& members, notify::Scheme scheme) {
    constexpr std::size_t kBytesMax = 256;
    auto secret = json::find_string(members, "secret");
    if (!secret) {
        return fail(std::move(secret.error()));
    }
    if (!*secret || (*secret)->empty()) {
        return notify::make_endpoint_secret();
    }
    if ((*secret)->size() > kBytesMax) {
        return wrong("secret", "'secret' may have at most " + std::to_string(kBytesMax) + " bytes");
    }
    return scheme == notify::Scheme::standard ? notify::as_standard_secret(std::move(**secret))
                                              : std::move(**secret);
}

std::string encode_receiver(const std::string& endpoint) {
    if (endpoint == notify::kOwnWebhook) {
        return std::string(kOwnReceiver);
    }
    return endpoint.starts_with(kEndpointPrefix) ? endpoint.substr(kEndpointPrefix.size())
                                                 : endpoint;
}

std::string decode_receiver(const std::string& text) {
    if (text == kOwnReceiver) {
        return std::string(notify::kOwnWebhook);
    }
    const auto id = notify::EndpointId::parse(text);
    return id ? Endpoint::name_of(*id) : text;
}

json::object encode_delivery(
    const notify::DeliveryView& view, const notify::EndpointBook& endpoints
) {
    const notify::Delivery& delivery = view.delivery;
    json::value url;
    if (const auto* own =
            delivery.target ? std::get_if<jobs::Webhook>(&*delivery.target) : nullptr) {
        url = own->url;
    } else if (const auto* named = delivery.target
                                       ? std::get_if<notify::EndpointTarget>(&*delivery.target)
                                       : nullptr) {
        const auto endpoint = endpoints.find(named->id);
        url = endpoint ? json::value(endpoint->webhook.url) : json::value(nullptr);
    }
    json::array log;
    for (const notify::AttemptNote& note : delivery.log) {
        log.emplace_back(json::object{
            {"at", to_rfc3339(note.at)},
            {"status", note.status == 0 ? json::value(nullptr) : json::value(note.status)},
            {"duration_ms", note.took.count()},
            {"error", text_or_null(note.error)},
        });
    }
    const bool is_pending = view.state == notify::DeliveryState::pending;
    return {
        {"id", view.key().to_string()},
        {"state", to_string(view.state)},
        {"event", jobs::webhook_event_name(view.event)},
        {"execution_id", delivery.job.to_string()},
        {"receiver", encode_receiver(delivery.endpoint)},
        {"url", std::move(url)},
        {"attempts", delivery.attempts},
        {"created_at", to_rfc3339(delivery.created_at)},
        {"next_attempt_at",
         is_pending ? json::value(to_rfc3339(delivery.next_attempt_at)) : json::value(nullptr)},
        {"ended_at", time_or_null(view.ended_at)},
        {"error", text_or_null(view.error)},
        {"log", std::move(log)},
    };
}

json::object encode_letter(const notify::Letter& letter) {
    json::object headers;
    for (const auto& [name, value] : letter.headers) {
        headers[name] = value;
    }
    return {
        {"method", letter.method},
        {"url", letter.url},
        {"headers", std::move(headers)},
        {"body", letter.body},
    };
}

}  // namespace comfyd::api::webhooks
