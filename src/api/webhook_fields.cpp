#include "api/webhook_fields.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "jobs/webhook_headers.hpp"
#include "net/client.hpp"

namespace comfyd::api {
namespace {

constexpr std::size_t kUrlBytesMax = 2048;
constexpr std::size_t kSecretBytesMax = 256;
constexpr std::array<std::string_view, 9> kWebhookEvents{
    "execution.queued",
    "execution.started",
    "execution.progress",
    "execution.completed",
    "execution.failed",
    "execution.cancelled",
    "execution.warning",
    "batch.completed",
    "batch.cancelled",
};
tl::unexpected<Error> wrong(std::string_view field, std::string message) {
    return fail(
        Code::invalid_argument,
        std::move(message),
        {{"field", boost::json::string_view(field.data(), field.size())}}
    );
}

Result<> check_url(std::string_view field, const std::string& url, const Services& services) {
    const std::string name = "'" + std::string(field) + "'";
    if (url.size() > kUrlBytesMax) {
        return wrong(
            field,
            name + " has " + std::to_string(url.size()) + " bytes, but may have at most " +
                std::to_string(kUrlBytesMax)
        );
    }
    const auto parsed = net::Url::parse(url);
    if (!parsed) {
        return wrong(field, name + " is not a usable URL: " + parsed.error().message);
    }
    if (parsed->scheme != "http" && parsed->scheme != "https") {
        return wrong(
            field, name + " must start with http:// or https://, not " + parsed->scheme + "://"
        );
    }
    if (!services.options.allow_private_webhooks && net::is_private_host(parsed->host)) {
        return fail(
            Code::address_refused,
            name + " points to the private address " + parsed->host +
                ", which this server does not call; use a public address",
            {{"field", boost::json::string_view(field.data(), field.size())}}
        );
    }
    return {};
}

Result<> check_headers(const jobs::Webhook& webhook, const std::string& field) {
    const std::string name_of_field = "'" + field + "'";
    if (webhook.headers.size() > jobs::kWebhookHeadersMax) {
        return wrong(
            field,
            name_of_field + " has " + std::to_string(webhook.headers.size()) +
                " entries, but may have at most " + std::to_string(jobs::kWebhookHeadersMax)
        );
    }
    for (const auto& [name, value] : webhook.headers) {
        if (jobs::is_reserved_webhook_header(name)) {
            return wrong(field, name_of_field + " may not set '" + name + "'");
        }
        if (!jobs::is_webhook_header(name, value)) {
            return wrong(
                field,
                name_of_field + " has a header that is not valid or longer than " +
                    std::to_string(jobs::kWebhookHeaderBytesMax) + " bytes"
            );
        }
    }
    return {};
}

Result<> check_events(
    const jobs::Webhook& webhook,
    const std::string& field,
    const std::vector<std::string>& more_events
) {
    std::vector<std::string> known(kWebhookEvents.begin(), kWebhookEvents.end());
    known.insert(known.end(), more_events.begin(), more_events.end());
    for (const std::string& event : webhook.events) {
        if (std::ranges::find(known, event) == known.end()) {
            std::string names;
            for (const std::string& name : known) {
                names += (names.empty() ? "" : ", ") + name;
            }
            return wrong(
                field, "'" + field + "' has '" + event.substr(0, 64) + "', but knows only " + names
            );
        }
    }
    return {};
}

jobs::Webhook plain_webhook(std::string url) {
    jobs::Webhook webhook;
    webhook.url = std::move(url);
    return webhook;
}

}  // namespace

Result<> check_webhook(
    const jobs::Webhook& webhook,
    const std::string& prefix,
    const Services& services,
    const std::vector<std::string>& more_events
) {
    if (auto url = check_url(prefix + "url", webhook.url, services); !url) {
        return url;
    }
    if (webhook.secret.size() > kSecretBytesMax) {
        return wrong(
            prefix + "secret",
            "'" + prefix + "secret' has " + std::to_string(webhook.secret.size()) +
                " bytes, but may have at most " + std::to_string(kSecretBytesMax)
        );
    }
    if (auto events = check_events(webhook, prefix + "events", more_events); !events) {
        return events;
    }
    if (auto headers = check_headers(webhook, prefix + "headers"); !headers) {
        return headers;
    }
    // Saying nothing would let a delivery fail that was meant to work.
    if (!webhook.verify_tls && !services.options.allow_unverified_webhooks) {
        return wrong(
            prefix + "verify_ssl",
            "'" + prefix +
                "verify_ssl' cannot be false: this server verifies certificates in any case. Those "
                "of another authority are accepted where the server's webhooks.ca_file names it"
        );
    }
    return {};
}

Result<> decode_webhook(
    const Call& call, const Services& services, const json::object& body, jobs::Spec& spec
) {
    const auto config = json::find_object(body, "webhook_config");
    if (!config) {
        return fail(config.error());
    }
    if (*config != nullptr) {
        auto webhook = jobs::Webhook::from_json(**config);
        if (!webhook) {
            return fail(
                Code::invalid_argument,
                "'webhook_config': " + webhook.error().message,
                {{"field", "webhook_config"}}
            );
        }
        if (auto checked = check_webhook(*webhook, "webhook_config.", services); !checked) {
            return checked;
        }
        spec.webhook = std::move(*webhook);
        return {};
    }
    for (const std::string_view field : {"webhook_url", "callback_url"}) {
        auto url = json::find_string(body, field);
        if (!url) {
            return fail(std::move(url.error()));
        }
        if (!*url || (*url)->empty()) {
            continue;
        }
        if (auto checked = check_url(field, **url, services); !checked) {
            return checked;
        }
        spec.webhook = plain_webhook(std::move(**url));
        return {};
    }
    std::string header(call.request.headers.get("X-Webhook-URL"));
    if (!header.empty()) {
        if (auto checked = check_url("X-Webhook-URL", header, services); !checked) {
            return checked;
        }
        spec.webhook = plain_webhook(std::move(header));
    }
    return {};
}

}  // namespace comfyd::api
