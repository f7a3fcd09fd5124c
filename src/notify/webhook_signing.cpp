#include "notify/webhook_signing.hpp"

#include <algorithm>

#include "base/crypto.hpp"
#include "jobs/webhook_headers.hpp"

namespace comfyd::notify {
namespace {

constexpr std::string_view kSecretPrefix =
    "whsec_";  // of Standard Webhooks: what follows is base64

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

std::string unix_seconds(Time at) {
    return std::to_string(std::chrono::floor<std::chrono::seconds>(at).time_since_epoch().count());
}

std::string_view user_agent(Scheme scheme) {
    switch (scheme) {
        case Scheme::x_signature:
            return "ComfyUI-Serverless/1.0";
        case Scheme::x_webhook:
            return "ComfyUI-Webhooks/1.0";
        default:
            return "comfyd/" COMFYD_VERSION;
    }
}

// Over the body alone, with the secret as it was given.
std::string plain_signature(const std::string& secret, const std::string& body) {
    return "sha256=" + to_hex(hmac_sha256(secret, body));
}

void add_standard(
    net::Headers& headers,
    const jobs::Webhook& webhook,
    const Manner& manner,
    const std::string& id,
    const std::string& body,
    Time now
) {
    const std::string timestamp = unix_seconds(now);
    headers.set("webhook-id", id);
    headers.set("webhook-timestamp", timestamp);
    const std::string signed_text = id + '.' + timestamp + '.' + body;
    std::string signatures;
    for (const std::string* secret : {&webhook.secret, &manner.previous_secret}) {
        if (!secret->empty()) {
            const Digest digest = hmac_sha256(signing_key(*secret), signed_text);
            signatures.append(signatures.empty() ? "v1," : " v1,")
                .append(to_base64(bytes_of(digest)));
        }
    }
    if (!signatures.empty()) {
        headers.set("webhook-signature", signatures);
    }
}

}  // namespace

Envelope envelope_of(const jobs::Job& job, const jobs::Event& event) {
    const std::string about = job.id.to_string();
    return {
        "msg_" + about + "_" + std::to_string(event.sequence),
        about,
        jobs::webhook_event_name(event.type),
        event.at
    };
}

Envelope envelope_of(const Announcement& announcement) {
    return {announcement.id, announcement.about, announcement.event, announcement.at};
}

net::Headers webhook_headers(
    const jobs::Webhook& webhook,
    const Envelope& envelope,
    const std::string& body,
    Time now,
    const Manner& manner
) {
    net::Headers headers;
    headers.set("User-Agent", std::string(user_agent(manner.scheme)));
    const std::size_t own_headers = std::min(webhook.headers.size(), jobs::kWebhookHeadersMax);
    for (std::size_t i = 0; i < own_headers; ++i) {
        const auto& [name, value] = webhook.headers[i];
        if (jobs::is_webhook_header(name, value) && !jobs::is_reserved_webhook_header(name)) {
            headers.set(name, value);
        }
    }
    headers.set(
        "Content-Type",
        manner.body == BodyForm::cloud_events ? "application/cloudevents+json; charset=UTF-8"
                                              : "application/json"
    );
    const bool has_all = manner.scheme == Scheme::all;
    const bool is_signed = !webhook.secret.empty();
    if (has_all || manner.scheme == Scheme::x_signature) {
        headers.set("X-Execution-ID", envelope.about);
        if (is_signed) {
            headers.set("X-Signature", plain_signature(webhook.secret, body));
        }
    }
    if (has_all || manner.scheme == Scheme::x_webhook) {
        headers.set("X-Webhook-Event", envelope.event);
        headers.set("X-Webhook-ID", envelope.id);
        headers.set("X-Webhook-Timestamp", unix_seconds(envelope.at));
        if (is_signed) {
            headers.set("X-Webhook-Signature", plain_signature(webhook.secret, body));
        }
    }
    if (has_all || manner.scheme == Scheme::standard) {
        add_standard(headers, webhook, manner, envelope.id, body, now);
    }
    return headers;
}

}  // namespace comfyd::notify
