#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "api/reuse.hpp"
#include "api/submission.hpp"
#include "net/client.hpp"

namespace comfyd::api {
namespace {

constexpr int kMaxAttemptsMax = 10;
constexpr std::size_t kUrlBytesMax = 2048;
constexpr std::size_t kSecretBytesMax = 256;
constexpr std::size_t kWebhookHeadersMax = 20;
constexpr std::size_t kWebhookHeaderBytesMax = 4096;
constexpr std::array<std::string_view, 7> kWebhookEvents{
    "execution.queued",
    "execution.started",
    "execution.progress",
    "execution.completed",
    "execution.failed",
    "execution.cancelled",
    "execution.warning",
};
// These belong to the delivery itself.
constexpr std::array<std::string_view, 9> kReservedHeaders{
    "host",
    "content-length",
    "content-type",
    "transfer-encoding",
    "connection",
    "upgrade",
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
};

boost::json::string_view text(std::string_view of) {
    return {of.data(), of.size()};
}

tl::unexpected<Error> wrong(std::string_view field, std::string message) {
    return fail(Code::invalid_argument, std::move(message), {{"field", text(field)}});
}

std::string shown(double value) {
    return value == std::trunc(value) && std::abs(value) < 1e15
               ? std::to_string(static_cast<std::int64_t>(value))
               : std::to_string(value);
}

tl::unexpected<Error> out_of_bounds(std::string_view field, double value, double min, double max) {
    return fail(
        Code::invalid_argument,
        "'" + std::string(field) + "' is " + shown(value) + ", but must be from " + shown(min) +
            " to " + shown(max),
        {{"field", text(field)}, {"value", value}, {"min", min}, {"max", max}}
    );
}

Result<> decode_int(const json::object& body, std::string_view field, int min, int max, int& into) {
    const auto value = json::find_int(body, field);
    if (!value) {
        return fail(value.error());
    }
    if (!*value) {
        return {};
    }
    if (**value < min || **value > max) {
        return out_of_bounds(field, static_cast<double>(**value), min, max);
    }
    into = static_cast<int>(**value);
    return {};
}

Result<> decode_times(const json::object& body, const Services& services, jobs::Spec& spec) {
    const auto timeout = json::find_number(body, "timeout");
    if (!timeout) {
        return fail(timeout.error());
    }
    if (*timeout) {
        constexpr double kMax = std::chrono::duration<double>(jobs::kTimeoutMax).count();
        if (!(**timeout >= 1 && **timeout <= kMax)) {
            return out_of_bounds("timeout", **timeout, 1, kMax);
        }
        spec.timeout = Millis(std::llround(**timeout * 1000));
    }
    const auto deadline = json::find_string(body, "deadline");
    if (!deadline) {
        return fail(deadline.error());
    }
    if (*deadline) {
        const auto time = parse_rfc3339(**deadline);
        if (!time) {
            return wrong(
                "deadline",
                "'deadline' must be a time such as \"2030-01-31T12:00:00Z\" (RFC 3339), not \"" +
                    (*deadline)->substr(0, 64) + "\""
            );
        }
        const Time now = services.clock.now();
        if (*time <= now) {
            return wrong(
                "deadline",
                "'deadline' is " + to_rfc3339(*time) + ", but it is already " + to_rfc3339(now)
            );
        }
        spec.deadline = *time;
    }
    return {};
}

Result<> decode_metadata(const json::object& body, jobs::Spec& spec) {
    const auto metadata = json::find_object(body, "metadata");
    if (!metadata) {
        return fail(metadata.error());
    }
    if (*metadata == nullptr) {
        return {};
    }
    const std::size_t bytes = json::serialize(**metadata).size();
    if (bytes > jobs::kMetadataBytesMax) {
        return wrong(
            "metadata",
            "'metadata' has " + std::to_string(bytes) + " bytes, but may have at most " +
                std::to_string(jobs::kMetadataBytesMax)
        );
    }
    spec.metadata = **metadata;
    return {};
}

// Other names are checked when they are resolved, at each delivery.
bool is_private_host(const std::string& host) {
    in6_addr unused{};
    const bool is_address = ::inet_pton(AF_INET, host.c_str(), &unused) == 1 ||
                            ::inet_pton(AF_INET6, host.c_str(), &unused) == 1;
    return is_address ? net::is_private_address(host)
                      : net::equal_ignoring_case(host, "localhost") || host.ends_with(".localhost");
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
    if (!services.options.allow_private_webhooks && is_private_host(parsed->host)) {
        return fail(
            Code::address_refused,
            name + " points to the private address " + parsed->host +
                ", which this server does not call; use a public address",
            {{"field", text(field)}}
        );
    }
    return {};
}

bool is_header_name(std::string_view name) {
    constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
    return !name.empty() && std::all_of(name.begin(), name.end(), [kOthers](char c) {
        return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
               kOthers.find(c) != std::string_view::npos;
    });
}

bool is_header_value(std::string_view value) {
    return std::all_of(value.begin(), value.end(), [](unsigned char c) {
        return c == '\t' || (c >= 0x20 && c != 0x7F);
    });
}

Result<> check_webhook_headers(const jobs::Webhook& webhook) {
    constexpr std::string_view kField = "webhook_config.headers";
    if (webhook.headers.size() > kWebhookHeadersMax) {
        return wrong(
            kField,
            "'webhook_config.headers' has " + std::to_string(webhook.headers.size()) +
                " entries, but may have at most " + std::to_string(kWebhookHeadersMax)
        );
    }
    for (const auto& [name, value] : webhook.headers) {
        const bool reserved = std::any_of(
            kReservedHeaders.begin(),
            kReservedHeaders.end(),
            [&](std::string_view own) { return net::equal_ignoring_case(own, name); }
        );
        if (reserved) {
            return wrong(kField, "'webhook_config.headers' may not set '" + name + "'");
        }
        if (!is_header_name(name) || !is_header_value(value) ||
            name.size() + value.size() > kWebhookHeaderBytesMax) {
            return wrong(
                kField,
                "'webhook_config.headers' has a header that is not valid or longer than " +
                    std::to_string(kWebhookHeaderBytesMax) + " bytes"
            );
        }
    }
    return {};
}

Result<> check_webhook(const jobs::Webhook& webhook) {
    if (webhook.secret.size() > kSecretBytesMax) {
        return wrong(
            "webhook_config.secret",
            "'webhook_config.secret' has " + std::to_string(webhook.secret.size()) +
                " bytes, but may have at most " + std::to_string(kSecretBytesMax)
        );
    }
    for (const std::string& event : webhook.events) {
        if (std::find(kWebhookEvents.begin(), kWebhookEvents.end(), event) ==
            kWebhookEvents.end()) {
            std::string known;
            for (const std::string_view name : kWebhookEvents) {
                known += (known.empty() ? "" : ", ") + std::string(name);
            }
            return wrong(
                "webhook_config.events",
                "'webhook_config.events' has '" + event.substr(0, 64) + "', but knows only " + known
            );
        }
    }
    return check_webhook_headers(webhook);
}

jobs::Webhook plain_webhook(std::string url) {
    jobs::Webhook webhook;
    webhook.url = std::move(url);
    return webhook;
}

// webhook_config says most, so it wins; then the plain URLs, the body's before the header's.
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
        if (auto url = check_url("webhook_config.url", webhook->url, services); !url) {
            return url;
        }
        if (auto checked = check_webhook(*webhook); !checked) {
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

// The body's before the header's.
Result<std::string> member_or_header(
    const Call& call, const json::object& from, std::string_view member, std::string_view header
) {
    auto given = json::find_string(from, member);
    if (!given) {
        return fail(std::move(given.error()));
    }
    return *given ? std::move(**given) : std::string(call.request.headers.get(header));
}

bool is_printable(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](unsigned char c) {
        return c >= 0x20 && c < 0x7F;
    });
}

}  // namespace

Result<> decode_turn(const Call& call, const json::object& from, jobs::Spec& spec) {
    auto key = member_or_header(call, from, "fairness_key", "X-Comfyd-Fairness-Key");
    if (!key) {
        return fail(std::move(key.error()));
    }
    if (key->size() > jobs::kFairnessKeyBytesMax || !is_printable(*key)) {
        return wrong(
            "fairness_key",
            "'fairness_key' may have at most " + std::to_string(jobs::kFairnessKeyBytesMax) +
                " printable ASCII characters"
        );
    }
    auto wait_class = member_or_header(call, from, "class", "X-Comfyd-Class");
    if (!wait_class) {
        return fail(std::move(wait_class.error()));
    }
    if (!wait_class->empty() && *wait_class != "batch") {
        return wrong(
            "class", "'class' can only be \"batch\"; the other classes follow from 'priority'"
        );
    }
    spec.fairness_key = std::move(*key);
    spec.batch = !wait_class->empty();
    return {};
}

Result<std::string> decode_pool(
    const Call& call, const Services& services, const json::object& from
) {
    auto given = member_or_header(call, from, "pool", "X-Comfyd-Pool");
    if (!given) {
        return fail(std::move(given.error()));
    }
    if (given->empty()) {
        const auto own = services.options.tenant_pools.find(call.caller.tenant);
        return own == services.options.tenant_pools.end() ? std::string() : own->second;
    }
    const std::set<std::string>& known = services.options.pools;
    if (known.contains(*given)) {
        return given;
    }
    std::string names;
    for (const std::string& name : known) {
        names += (names.empty() ? "" : ", ") + name;
    }
    return fail(
        Code::invalid_argument,
        "there is no pool '" + (is_printable(*given) ? given->substr(0, 64) : std::string("?")) +
            "'; the pools are " + names,
        {{"field", "pool"}, {"pools", json::array(known.begin(), known.end())}}
    );
}

// Structured-field strings come in quotes, plain keys without; both are in use.
Result<std::string> decode_idempotency_key(const Call& call) {
    constexpr std::string_view kHeader = "Idempotency-Key";
    if (!call.request.headers.contains(kHeader)) {
        return std::string();
    }
    std::string_view key = call.request.headers.get(kHeader);
    if (key.size() >= 2 && key.front() == '"' && key.back() == '"') {
        key = key.substr(1, key.size() - 2);
    }
    if (key.empty() || key.size() > jobs::kIdempotencyKeyBytesMax) {
        return wrong(
            kHeader,
            "header Idempotency-Key has " + std::to_string(key.size()) +
                " bytes, but must have from 1 to " + std::to_string(jobs::kIdempotencyKeyBytesMax)
        );
    }
    if (!is_printable(key)) {
        return wrong(kHeader, "header Idempotency-Key may have printable ASCII characters only");
    }
    return std::string(key);
}

Result<> decode_common(
    const Call& call, const Services& services, const json::object& body, jobs::Spec& spec
) {
    if (auto done =
            decode_int(body, "priority", jobs::kPriorityMin, jobs::kPriorityMax, spec.priority);
        !done) {
        return done;
    }
    if (auto done = decode_turn(call, body, spec); !done) {
        return done;
    }
    const auto pool = decode_pool(call, services, body);
    if (!pool) {
        return fail(pool.error());
    }
    spec.requirement = workflow::with_pool(spec.requirement, *pool);
    if (auto done = decode_int(body, "max_attempts", 1, kMaxAttemptsMax, spec.max_attempts);
        !done) {
        return done;
    }
    if (auto done = decode_times(body, services, spec); !done) {
        return done;
    }
    if (auto done = decode_metadata(body, spec); !done) {
        return done;
    }
    if (auto done = decode_reuse(body, spec); !done) {
        return done;
    }
    if (auto done = decode_webhook(call, services, body, spec); !done) {
        return done;
    }
    auto key = decode_idempotency_key(call);
    if (!key) {
        return fail(std::move(key.error()));
    }
    spec.idempotency_key = std::move(*key);
    return {};
}

}  // namespace comfyd::api
