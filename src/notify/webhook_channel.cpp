#include "notify/webhook_channel.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/on_executor.hpp"
#include "base/text.hpp"
#include "net/http_date.hpp"
#include "notify/webhook_url.hpp"

namespace comfyd::notify {
namespace {

constexpr std::uint64_t kAnswerBytesMax = 64 * 1024;

net::ClientOptions client_options(const WebhookOptions& options) {
    net::ClientOptions client;
    client.policy =
        options.allow_private_addresses ? net::AddressPolicy::any : net::AddressPolicy::public_only;
    client.ca_file = options.ca_file;
    return client;
}

// 2xx is delivered, 410 ends it, anything else is tried again.
Outcome judge(const net::ClientResponse& response, Time now) {
    if (response.status >= 200 && response.status < 300) {
        return {.kind = Outcome::Kind::delivered, .status = response.status};
    }
    std::string text = "the receiver answered HTTP " + std::to_string(response.status);
    if (response.status == 410) {
        return {
            .kind = Outcome::Kind::give_up,
            .error = text + ": it wants no more",
            .status = response.status,
            .is_gone = true,
        };
    }
    if (response.status >= 300 && response.status < 400) {
        text += ": redirects are not followed";
    }
    return {
        .kind = Outcome::Kind::retry,
        .error = std::move(text),
        .retry_after = net::parse_retry_after(response.headers.get("Retry-After"), now),
        .status = response.status,
    };
}

// An address that may not be called or a request that cannot be sent will not get better; the rest
// may.
Outcome judge(const Error& error) {
    switch (error.code) {
        case Code::cancelled:
            return {.kind = Outcome::Kind::cancelled};
        case Code::address_refused:
        case Code::invalid_argument:
            return {.kind = Outcome::Kind::give_up, .error = error.message};
        default:
            return {.kind = Outcome::Kind::retry, .error = error.message};
    }
}

// What a client set for itself may be a password, and a signature is good for whoever has it.
bool is_secret_header(const std::string& name, const jobs::Webhook& webhook) {
    const bool is_own = std::ranges::any_of(webhook.headers, [&name](const auto& own) {
        return net::equal_ignoring_case(own.first, name);
    });
    return is_own || lower(name).ends_with("-signature");
}

}  // namespace

WebhookChannel::WebhookChannel(Executor executor, Clock& clock, WebhookOptions options)
    : executor_(executor),
      clock_(clock),
      options_(std::move(options)),
      client_(executor, client_options(options_)) {}

Result<WebhookChannel::Address> WebhookChannel::find_address(const Target& target) const {
    if (const auto* own = std::get_if<jobs::Webhook>(&target)) {
        return Address{*own};
    }
    const EndpointId id = std::get<EndpointTarget>(target).id;
    const auto endpoint = options_.find_endpoint ? options_.find_endpoint(id) : nullptr;
    if (!endpoint) {
        return fail(Code::not_found, "the endpoint was removed");
    }
    return Address{endpoint->webhook, endpoint->manner(clock_.now()), false, endpoint->disabled};
}

Result<WebhookChannel::Address> WebhookChannel::address_of(const Target& target) const {
    auto address = find_address(target);
    if (address && address->disabled) {
        return fail(Code::conflict, "the endpoint is disabled: " + *address->disabled);
    }
    return address;
}

Result<std::string> WebhookChannel::lane_of(const Target& target) const {
    const auto address = address_of(target);
    if (!address) {
        return fail(address.error());
    }
    const jobs::Webhook& webhook = address->webhook;
    if (auto checked = check_webhook_url(webhook.url, options_.allow_private_addresses); !checked) {
        return fail(std::move(checked.error()));
    }
    if (!webhook.verify_tls && !options_.allow_unverified_tls) {
        return fail(
            Code::address_refused, "this server verifies certificates of webhooks in any case"
        );
    }
    if (!address->is_own) {
        return Endpoint::name_of(std::get<EndpointTarget>(target).id);
    }
    const auto url = net::Url::parse(webhook.url);
    return url->scheme + "://" + url->host_header();
}

RetryWish WebhookChannel::retry_wish(const Target& target) const {
    const auto address = address_of(target);
    return address ? RetryWish{address->webhook.max_retries, address->webhook.retry_delay}
                   : RetryWish{};
}

Task<Outcome> WebhookChannel::deliver(Message message) {
    COMFYD_ON(executor_);
    const auto address = address_of(message.to);
    if (!address) {
        co_return Outcome{.kind = Outcome::Kind::give_up, .error = address.error().message};
    }
    std::string body = co_await body_of(message, *address);
    auto outcome =
        co_await post(*address, envelope_of(message.job, message.event), std::move(body));
    co_return outcome;
}

Task<std::optional<Letter>> WebhookChannel::show(Message message) {
    COMFYD_ON(executor_);
    const auto address = find_address(message.to);
    if (!address) {
        co_return std::nullopt;
    }
    const jobs::Webhook& webhook = address->webhook;
    Letter letter{webhook.method, webhook.url, {}, {}};
    letter.body = co_await body_of(message, *address);
    const Envelope envelope = envelope_of(message.job, message.event);
    const net::Headers headers =
        webhook_headers(webhook, envelope, letter.body, clock_.now(), address->manner);
    for (const auto& [name, value] : headers.all()) {
        letter.headers.emplace_back(name, is_secret_header(name, webhook) ? "***" : value);
    }
    co_return letter;
}

Task<Outcome> WebhookChannel::announce(Target to, Announcement announcement) {
    COMFYD_ON(executor_);
    // Whose address is judged before each delivery of a job's message, too.
    auto lane = lane_of(to);
    const auto address = address_of(to);
    if (!lane || !address) {
        const Error& error = lane ? address.error() : lane.error();
        co_return Outcome{.kind = Outcome::Kind::give_up, .error = error.message};
    }
    auto outcome = co_await post(
        *address, envelope_of(announcement), webhook_body(announcement, address->manner.body)
    );
    co_return outcome;
}

Task<std::string> WebhookChannel::body_of(const Message& message, const Address& address) const {
    // Of progress all dialects tell alike, and an endpoint hears of jobs of all dialects.
    if (address.is_own && options_.own_body && message.event.type != jobs::EventType::progress) {
        auto own = co_await options_.own_body(message.job, message.event);
        if (own) {
            co_return std::move(*own);
        }
    }
    co_return webhook_body(message.job, message.event, options_.show_result, address.manner.body);
}

Task<Outcome> WebhookChannel::post(
    const Address& address, const Envelope& envelope, std::string body
) {
    const jobs::Webhook& webhook = address.webhook;
    net::ClientRequest request;
    request.method = webhook.method;
    request.url = webhook.url;
    request.headers = webhook_headers(webhook, envelope, body, clock_.now(), address.manner);
    request.body = std::move(body);
    request.timeout = webhook.timeout.value_or(options_.attempt_timeout);
    request.response_bytes_max = std::numeric_limits<std::uint64_t>::max();
    request.verify_tls = webhook.verify_tls || !options_.allow_unverified_tls;
    // The sink is called for 2xx answers only: once it was, the receiver has taken the message, and
    // how the rest of its answer reads does not matter.
    bool is_accepted = false;
    std::uint64_t received = 0;
    net::Client::Sink sink = [&is_accepted, &received](std::string_view piece) -> Result<> {
        is_accepted = true;
        received += piece.size();
        if (received > kAnswerBytesMax) {
            return fail(Code::payload_too_large, "the rest of the answer is of no interest");
        }
        return {};
    };
    auto response = co_await client_.download(std::move(request), std::move(sink));
    if (is_accepted) {
        co_return Outcome{
            .kind = Outcome::Kind::delivered, .status = response ? response->status : 200
        };
    }
    co_return response ? judge(*response, clock_.now()) : judge(response.error());
}

void WebhookChannel::close() {
    COMFYD_ON(executor_);
    client_.close_idle();
}

}  // namespace comfyd::notify
