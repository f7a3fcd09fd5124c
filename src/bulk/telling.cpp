#include "bulk/telling.hpp"

#include <algorithm>
#include <utility>

#include <boost/asio/this_coro.hpp>

#include "base/log.hpp"
#include "bulk/news.hpp"
#include "notify/backoff.hpp"

namespace comfyd::bulk {
namespace {

using notify::Outcome;

// A webhook that came with a batch is there to hear of it, unless its filter says otherwise.
bool wants(const std::optional<jobs::Webhook>& own, std::string_view event) {
    return own && (own->events.empty() || own->wants(event));
}

// nullopt: who was meant is not to be reached any more.
std::optional<notify::Target> target_of(
    const std::string& name, const std::optional<jobs::Webhook>& own, std::string_view event
) {
    if (name == jobs::kOwnWebhookOfBulk) {
        return wants(own, event) ? std::optional<notify::Target>(*own) : std::nullopt;
    }
    const auto id = notify::EndpointId::parse(name);
    return id ? std::optional<notify::Target>(notify::EndpointTarget{*id}) : std::nullopt;
}

// One who has not heard.
struct Listener {
    std::string name;
    notify::Target target;
    Outcome outcome{};
};

Task<> tell_one(
    const Messengers& messengers, notify::Announcement announcement, Listener& listener
) {
    listener.outcome = co_await messengers.announce(listener.target, std::move(announcement));
}

}  // namespace

std::optional<jobs::BulkNews> news_of(
    const jobs::Bulk& bulk, const std::optional<jobs::Webhook>& own, const Messengers& messengers
) {
    const std::string event = end_event_of(bulk);
    jobs::BulkNews news{.due = bulk.ended_at.value_or(bulk.created_at), .to = {}};
    if (wants(own, event)) {
        news.to.emplace_back(jobs::kOwnWebhookOfBulk);
    }
    if (messengers.listeners) {
        for (const notify::EndpointId& id : messengers.listeners(bulk.tenant, event)) {
            news.to.push_back(id.to_string());
        }
    }
    return news.to.empty() ? std::nullopt : std::optional(std::move(news));
}

Task<Result<std::optional<jobs::BulkNews>>> tell_end(
    jobs::BulkStore& store,
    const Messengers& messengers,
    TellingOptions options,
    jobs::Bulk bulk,
    std::optional<jobs::Webhook> own,
    Time now
) {
    auto announcement = co_await make_news(store, bulk);
    if (!announcement) {
        co_return fail(std::move(announcement.error()));
    }
    std::vector<Listener> listeners;
    for (const std::string& name : bulk.news->to) {
        if (auto target = target_of(name, own, announcement->event)) {
            listeners.push_back({name, std::move(*target)});
        }
    }
    const Executor here = co_await boost::asio::this_coro::executor;
    TaskGroup group(here);
    for (Listener& listener : listeners) {
        group.spawn("tell of a batch", tell_one(messengers, *announcement, listener));
    }
    // A join that is itself cancelled returns early; the tasks end all the same.
    while (group.size() > 0) {
        co_await group.join();
    }
    jobs::BulkNews left{.due = {}, .attempts = bulk.news->attempts + 1, .to = {}};
    const bool is_late = bulk.ended_at && now - *bulk.ended_at >= options.give_up_after;
    Millis wait = options.retry_max;
    for (Listener& listener : listeners) {
        Outcome& outcome = listener.outcome;
        if (outcome.kind == Outcome::Kind::cancelled) {
            co_return fail(Code::cancelled, "the telling of a batch's end was broken off");
        }
        if (outcome.kind == Outcome::Kind::delivered) {
            continue;
        }
        const notify::RetryWish wish = messengers.retry_wish(listener.target);
        const bool is_last = wish.retries_max && bulk.news->attempts >= *wish.retries_max;
        if (outcome.kind != Outcome::Kind::retry || is_late || is_last) {
            log::warning(
                "the end of a batch could not be told",
                {{"batch", bulk.id}, {"to", listener.name}, {"error", outcome.error}}
            );
            continue;
        }
        const Millis usual = notify::retry_wait(
            wish.first_retry.value_or(options.first_retry),
            options.retry_max,
            bulk.news->attempts,
            1.0
        );
        wait = std::min(wait, std::max(usual, outcome.retry_after.value_or(usual)));
        left.error = std::move(outcome.error);
        left.to.push_back(std::move(listener.name));
    }
    if (left.to.empty()) {
        co_return std::optional<jobs::BulkNews>();
    }
    left.due = now + wait;
    co_return std::optional(std::move(left));
}

}  // namespace comfyd::bulk
