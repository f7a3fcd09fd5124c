#include "notify/announcer.hpp"

#include <limits>
#include <utility>

#include "base/on_executor.hpp"
#include "notify/backoff.hpp"
#include "notify/webhook_signing.hpp"
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

// With the signatures that the messages of jobs have.
net::Headers headers_of(const jobs::Webhook& webhook, const Announcement& announcement, Time now) {
    jobs::Job stand_in;
    stand_in.id.uuid = announcement.about;
    jobs::Event event;
    event.at = announcement.at;
    event.sequence = static_cast<std::uint64_t>(to_unix_ms(announcement.at));
    net::Headers headers = webhook_headers(webhook, stand_in, event, announcement.body, now);
    headers.set("X-Webhook-Event", announcement.event);
    return headers;
}

Outcome judge(const Result<net::ClientResponse>& response, Time now) {
    using enum Outcome::Kind;
    if (!response) {
        const Code code = response.error().code;
        if (code == Code::cancelled) {
            return {.kind = cancelled};
        }
        const bool is_final = code == Code::address_refused || code == Code::invalid_argument;
        return {.kind = is_final ? give_up : retry, .error = response.error().message};
    }
    if (response->status >= 200 && response->status < 300) {
        return {.kind = delivered};
    }
    return {
        .kind = response->status == 410 ? give_up : retry,
        .error = "the receiver answered HTTP " + std::to_string(response->status),
        .retry_after = parse_retry_after(response->headers.get("Retry-After"), now),
    };
}

}  // namespace

Announcer::Announcer(Executor executor, Clock& clock, const WebhookOptions& options)
    : executor_(executor),
      clock_(clock),
      allow_private_addresses_(options.allow_private_addresses),
      attempt_timeout_(options.attempt_timeout),
      client_(executor, client_options(options)) {}

Task<Outcome> Announcer::post(jobs::Webhook to, Announcement announcement) {
    COMFYD_ON(executor_);
    if (auto checked = check_webhook_url(to.url, allow_private_addresses_); !checked) {
        co_return Outcome{.kind = Outcome::Kind::give_up, .error = checked.error().message};
    }
    net::ClientRequest request;
    request.method = "POST";
    request.url = to.url;
    request.headers = headers_of(to, announcement, clock_.now());
    request.body = std::move(announcement.body);
    request.timeout = to.timeout.value_or(attempt_timeout_);
    request.response_bytes_max = std::numeric_limits<std::uint64_t>::max();
    // The sink is called for 2xx answers only: once it was, the message has been taken, and how the
    // rest of the answer reads does not matter.
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
        co_return Outcome{.kind = Outcome::Kind::delivered};
    }
    co_return judge(response, clock_.now());
}

void Announcer::close() {
    COMFYD_ON(executor_);
    client_.close_idle();
}

}  // namespace comfyd::notify
