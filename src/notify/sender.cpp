#include "notify/sender.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace comfyd::notify {
namespace {

constexpr std::uint64_t kAnswerBytesMax = 64 * 1024;

net::ClientOptions client_options(const WebhookOptions& options) {
    net::ClientOptions client;
    client.policy =
        options.allow_private_addresses ? net::AddressPolicy::any : net::AddressPolicy::public_only;
    client.idle_per_origin_max = options.in_flight_per_origin_max;
    client.ca_file = options.ca_file;
    return client;
}

// The job as it was when the event happened, as far as the body tells of it: it may have been
// started anew since, and a repeated delivery must not differ from the first.
jobs::Job as_of(jobs::Job job, const std::vector<jobs::Event>& events, const jobs::Event& event) {
    job.state = event.state;
    job.started_at.reset();
    for (const jobs::Event& earlier : events) {
        if (earlier.sequence >= event.sequence) {
            break;
        }
        if (earlier.type == jobs::EventType::started) {
            job.started_at = earlier.at;
        } else if (is_terminal(earlier.state)) {
            job.started_at.reset();  // it was revived after this
        }
    }
    return job;
}

}  // namespace

Sender::Sender(Executor executor, Clock& clock, jobs::Ledger& ledger, const WebhookOptions& options)
    : clock_(clock),
      ledger_(ledger),
      options_(options),
      client_(executor, client_options(options)) {}

Task<Outcome> Sender::send(const Attempt& attempt) {
    if (attempt.progress) {
        const ProgressNews::News& news = *attempt.progress;
        auto told = co_await post(
            make_request(news.webhook, news.job, news.event, webhook_body(news.job, news.event))
        );
        co_return told;
    }
    auto job = co_await ledger_.find(attempt.delivery.job);
    if (!job) {
        co_return Outcome{.kind = Outcome::Kind::storage_failed, .error = job.error().message};
    }
    auto events = co_await ledger_.events(attempt.delivery.job, 0);
    if (!events) {
        co_return Outcome{.kind = Outcome::Kind::storage_failed, .error = events.error().message};
    }
    const auto event =
        std::find_if(events->begin(), events->end(), [&](const jobs::Event& candidate) {
            return candidate.sequence == attempt.delivery.sequence;
        });
    if (!*job || event == events->end()) {
        co_return Outcome{.kind = Outcome::Kind::give_up, .error = "the event is no longer stored"};
    }
    const jobs::Job then = as_of(std::move(**job), *events, *event);
    std::optional<std::string> own;
    if (options_.own_body) {
        own = co_await options_.own_body(then, *event);
    }
    std::string body = own ? std::move(*own) : webhook_body(then, *event, options_.show_result);
    auto outcome = co_await post(make_request(attempt.webhook, then, *event, std::move(body)));
    co_return outcome;
}

net::ClientRequest Sender::make_request(
    const jobs::Webhook& webhook, const jobs::Job& job, const jobs::Event& event, std::string body
) const {
    net::ClientRequest request;
    request.method = "POST";
    request.url = webhook.url;
    request.headers = webhook_headers(webhook, job, event, body, clock_.now());
    request.body = std::move(body);
    request.timeout = webhook.timeout.value_or(options_.attempt_timeout);
    request.response_bytes_max = std::numeric_limits<std::uint64_t>::max();
    return request;
}

Task<Outcome> Sender::post(net::ClientRequest request) {
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
        co_return Outcome{.kind = Outcome::Kind::delivered};
    }
    co_return response ? judge(*response, clock_.now()) : judge(response.error());
}

}  // namespace comfyd::notify
