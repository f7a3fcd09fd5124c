#include "notify/webhooks.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <optional>
#include <unordered_set>
#include <utility>

#include <boost/asio/post.hpp>

#include "base/assert.hpp"
#include "base/crypto.hpp"
#include "base/log.hpp"
#include "notify/backoff.hpp"
#include "notify/lanes.hpp"
#include "notify/outcome.hpp"
#include "notify/progress_news.hpp"
#include "notify/sender.hpp"

namespace comfyd::notify {
namespace {

constexpr int kPollBatch = 256;
constexpr std::size_t kKnownMax = 8192;  // deliveries held in memory
constexpr std::size_t kWaitingPerOriginMax = 1024;
constexpr Millis kLaneFullWait{30'000};
constexpr Millis kLookAtLeastEvery{60'000};
constexpr Millis kLookWhileBusy{500
};  // what is in flight hides from next_due() what is due after it
constexpr Millis kStorageWaitFirst{100};
constexpr Millis kStorageWaitMax{10'000};
constexpr Millis kReadAgainWait{1'000};

double random_share() {
    std::uint32_t bits = 0;
    random_bytes(&bits, sizeof bits);
    return static_cast<double>(bits) /
           static_cast<double>(std::numeric_limits<std::uint32_t>::max());
}

// wake() may be called while the object is being destroyed on its executor, so what is posted owns
// this.
struct Waker {
    explicit Waker(Executor waker_executor) : executor(waker_executor), signal(waker_executor) {}
    Executor executor;
    std::atomic<bool> is_posted{false};
    bool is_requested = false;
    Signal signal;

    void request() {
        is_requested = true;
        signal.notify();
    }
};

}  // namespace

class Webhooks::Impl {
public:
    Impl(
        Executor executor,
        Clock& clock,
        Outbox& outbox,
        jobs::Ledger& ledger,
        WebhookOptions options
    )
        : executor_(executor),
          clock_(clock),
          outbox_(outbox),
          ledger_(ledger),
          options_(std::move(options)),
          waker_(std::make_shared<Waker>(executor)),
          news_(options_.progress_interval) {}

    void start();
    void wake();
    void tell_progress(ProgressNews::News news) {
        if (news_.put(std::move(news), clock_.now())) {
            wake();
        }
    }
    void tell_change(const jobs::Event& event) {
        news_.drop(event.job, event.sequence);
        wake();
    }
    Task<> stop();
    WebhookCounters counters() const {
        return {.delivered = delivered_, .failed_attempts = failed_attempts_, .dead = dead_};
    }

private:
    Task<> run();
    Task<Result<Millis>> look();
    Task<Result<bool>> take_in_batch();
    Task<Result<>> take_in(Delivery delivery);
    void take_in_progress();
    Millis next_look(std::optional<Time> next_due) const;
    void start_attempts();
    Task<> attempt(Attempt attempt);
    Task<> record(const Attempt& attempt, Outcome outcome);
    Task<Result<>> write(Attempt attempt, Outcome outcome, Time now);
    void done(const Attempt& attempt);

    Executor executor_;
    Clock& clock_;
    Outbox& outbox_;
    jobs::Ledger& ledger_;
    WebhookOptions options_;
    std::shared_ptr<Waker> waker_;  // shared with posted wake-ups
    ProgressNews news_;

    // From start() to stop().
    std::optional<TaskGroup> group_;
    std::optional<Sender> sender_;
    std::optional<Lanes> lanes_;
    // Jobs whose delivery ended while we ask the outbox: its answer may still list them.
    std::unordered_set<JobId> ended_meanwhile_;

    std::atomic<std::uint64_t> delivered_{0};
    std::atomic<std::uint64_t> failed_attempts_{0};
    std::atomic<std::uint64_t> dead_{0};
};

void Webhooks::Impl::start() {
    COMFYD_ASSERT(!group_);
    sender_.emplace(executor_, clock_, ledger_, options_);
    lanes_.emplace(Lanes::Limits{
        .in_flight_max = options_.in_flight_max,
        .in_flight_per_origin_max = options_.in_flight_per_origin_max,
        .waiting_per_origin_max = kWaitingPerOriginMax,
    });
    group_.emplace(executor_);
    group_->spawn("webhooks", run());
}

void Webhooks::Impl::wake() {
    if (waker_->is_posted.exchange(true)) {
        return;
    }
    boost::asio::post(executor_, [waker = waker_] {
        waker->is_posted = false;
        waker->request();
    });
}

Task<> Webhooks::Impl::stop() {
    if (!group_) {
        co_return;
    }
    group_->cancel();
    co_await group_->join();
    group_.reset();
    sender_.reset();
    lanes_.reset();
    ended_meanwhile_.clear();
}

Task<> Webhooks::Impl::run() {
    Millis storage_wait = kStorageWaitFirst;
    for (;;) {
        waker_->is_requested = false;
        auto next_look = co_await look();
        const bool stop = co_await is_cancelled();
        if (stop) {
            co_return;
        }
        if (next_look) {
            storage_wait = kStorageWaitFirst;
            if (!waker_->is_requested) {
                co_await waker_->signal.wait_for(*next_look);
            }
            continue;
        }
        log::warning("cannot read the webhook deliveries", {{"error", next_look.error().message}});
        // Wake-ups do not cut this short: more work does not mend the storage.
        co_await sleep_for(storage_wait);
        storage_wait = std::min(storage_wait * 2, kStorageWaitMax);
    }
}

// Starts what is due; says how long nothing else will be.
Task<Result<Millis>> Webhooks::Impl::look() {
    start_attempts();  // for whom a place became free
    bool has_more = true;
    while (has_more) {
        auto taken = co_await take_in_batch();
        start_attempts();  // also after a failure: some may have been taken in before it
        if (!taken) {
            co_return fail(std::move(taken.error()));
        }
        has_more = *taken;
    }
    take_in_progress();
    start_attempts();
    auto next = co_await outbox_.next_due();
    if (!next) {
        co_return fail(std::move(next.error()));
    }
    co_return std::min(next_look(*next), next_look(news_.next_due()));
}

Millis Webhooks::Impl::next_look(std::optional<Time> next_due) const {
    if (!next_due) {
        return kLookAtLeastEvery;
    }
    const Millis wait = *next_due - clock_.now();
    return wait <= Millis(0) ? kLookWhileBusy : std::min(wait, kLookAtLeastEvery);
}

// True when there may be more to take in at once.
Task<Result<bool>> Webhooks::Impl::take_in_batch() {
    if (lanes_->size() >= kKnownMax) {
        co_return false;
    }
    // What we know already is listed again, so it is asked for on top.
    const int limit = static_cast<int>(lanes_->size()) + kPollBatch;
    ended_meanwhile_.clear();
    auto due = co_await outbox_.due(clock_.now(), limit);
    if (!due) {
        co_return fail(std::move(due.error()));
    }
    const bool is_full = due->size() >= static_cast<std::size_t>(limit);
    std::erase_if(*due, [this](const Delivery& delivery) {
        return lanes_->contains(delivery.job) || ended_meanwhile_.contains(delivery.job);
    });
    for (const Delivery& delivery : *due) {
        auto taken = co_await take_in(delivery);
        if (!taken) {
            co_return fail(std::move(taken.error()));
        }
        const bool stop = co_await is_cancelled();
        if (stop) {
            co_return false;
        }
    }
    co_return is_full && !due->empty();
}

Task<Result<>> Webhooks::Impl::take_in(Delivery delivery) {
    auto spec = co_await ledger_.find_spec(delivery.job);
    if (!spec) {
        co_return fail(std::move(spec.error()));
    }
    const bool has_webhook = *spec && (*spec)->webhook;
    auto checked = has_webhook
                       ? check_webhook_url((*spec)->webhook->url, options_.allow_private_addresses)
                       : fail(Code::not_found, "the job has no webhook any more");
    if (!checked) {
        auto given_up = co_await outbox_.give_up(delivery, clock_.now(), checked.error().message);
        dead_ += given_up ? 1 : 0;
        co_return given_up;
    }
    jobs::Webhook webhook = std::move(*(*spec)->webhook);
    const auto url = net::Url::parse(webhook.url);
    Attempt attempt{
        .delivery = delivery,
        .webhook = std::move(webhook),
        .origin = url->scheme + "://" + url->host_header(),
    };
    if (lanes_->add(std::move(attempt))) {
        co_return Result<>();
    }
    // Put aside, so that a receiver with a very long queue does not fill what we can hold for all.
    auto put_aside = co_await outbox_.put_aside(
        delivery, clock_.now() + kLaneFullWait, "waits for earlier deliveries to the same receiver"
    );
    co_return put_aside;
}

// After what the outbox has of the same job, and dropped where its receiver is far behind.
void Webhooks::Impl::take_in_progress() {
    const auto is_busy = [this](const JobId& job) { return lanes_->contains(job); };
    for (auto& news : news_.take_due(clock_.now(), is_busy)) {
        const auto url = net::Url::parse(news->webhook.url);
        if (!url || !check_webhook_url(news->webhook.url, options_.allow_private_addresses)) {
            continue;  // the end of the job is given up with the reason
        }
        Attempt attempt{
            .delivery = {.job = news->job.id, .sequence = news->event.sequence},
            .webhook = news->webhook,
            .origin = url->scheme + "://" + url->host_header(),
            .progress = std::move(news),
        };
        lanes_->add(std::move(attempt));
    }
}

void Webhooks::Impl::start_attempts() {
    while (auto next = lanes_->take()) {
        group_->spawn("webhook", attempt(std::move(*next)));
    }
}

Task<> Webhooks::Impl::attempt(Attempt attempt) {
    // Whatever happens below, the place in the lane becomes free.
    struct Guard {
        Impl& impl;
        const Attempt& held;
        ~Guard() { impl.done(held); }
    } const guard{*this, attempt};
    auto outcome = co_await sender_->send(attempt);
    if (attempt.progress) {
        delivered_ += outcome.kind == Outcome::Kind::delivered ? 1 : 0;
        failed_attempts_ += outcome.kind == Outcome::Kind::retry ? 1 : 0;
        co_return;
    }
    if (outcome.kind == Outcome::Kind::storage_failed) {
        log::warning(
            "cannot read a job for its webhook",
            {{"job", attempt.delivery.job}, {"error", outcome.error}}
        );
        co_await sleep_for(kReadAgainWait);
        co_return;
    }
    if (outcome.kind != Outcome::Kind::cancelled) {
        co_await record(attempt, std::move(outcome));
    }
}

void Webhooks::Impl::done(const Attempt& attempt) {
    lanes_->done(attempt.delivery.job, attempt.origin);
    ended_meanwhile_.insert(attempt.delivery.job);
    waker_->request();
}

// Until it is written down: what was delivered is not to be sent again.
Task<> Webhooks::Impl::record(const Attempt& attempt, Outcome outcome) {
    const Time now = clock_.now();
    const bool is_too_late = now - attempt.delivery.created_at >= options_.give_up_after;
    const auto& retries_max = attempt.webhook.max_retries;
    const bool is_last = retries_max && attempt.delivery.attempts >= *retries_max;
    if (outcome.kind == Outcome::Kind::retry && (is_too_late || is_last)) {
        outcome.kind = Outcome::Kind::give_up;
    }
    if (outcome.kind != Outcome::Kind::delivered) {
        ++failed_attempts_;
        log::debug("webhook failed", {{"job", attempt.delivery.job}, {"error", outcome.error}});
    }
    for (Millis wait = kStorageWaitFirst;; wait = std::min(wait * 2, kStorageWaitMax)) {
        auto written = co_await write(attempt, outcome, now);
        if (written || written.error().code == Code::not_found) {
            break;
        }
        log::warning(
            "cannot record a webhook delivery",
            {{"job", attempt.delivery.job}, {"error", written.error().message}}
        );
        const bool go_on = co_await sleep_for(wait);
        if (!go_on) {
            co_return;
        }
    }
    if (outcome.kind == Outcome::Kind::delivered) {
        ++delivered_;
    } else if (outcome.kind == Outcome::Kind::give_up) {
        ++dead_;
        log::warning("webhook given up", {{"job", attempt.delivery.job}, {"error", outcome.error}});
    }
}

Task<Result<>> Webhooks::Impl::write(Attempt attempt, Outcome outcome, Time now) {
    Delivery delivery = std::move(attempt.delivery);
    if (outcome.kind == Outcome::Kind::delivered) {
        return outbox_.delivered(std::move(delivery), now);
    }
    if (outcome.kind == Outcome::Kind::give_up) {
        return outbox_.give_up(std::move(delivery), now, std::move(outcome.error));
    }
    Millis wait = retry_wait(
        attempt.webhook.retry_delay.value_or(options_.first_retry),
        options_.retry_max,
        delivery.attempts,
        random_share()
    );
    if (outcome.retry_after) {
        wait = std::max(wait, std::min(*outcome.retry_after, options_.retry_max));
    }
    // The last attempt is made when its time is over, not some time before.
    const Time last = delivery.created_at + options_.give_up_after;
    return outbox_.retry_at(
        std::move(delivery), std::min(now + wait, last), std::move(outcome.error)
    );
}

Webhooks::Webhooks(
    Executor executor, Clock& clock, Outbox& outbox, jobs::Ledger& ledger, WebhookOptions options
)
    : impl_(std::make_unique<Impl>(executor, clock, outbox, ledger, std::move(options))) {}

Webhooks::~Webhooks() = default;

void Webhooks::start() {
    impl_->start();
}
void Webhooks::wake() {
    impl_->wake();
}
void Webhooks::tell_progress(jobs::Job job, jobs::Webhook webhook, jobs::Event progress) {
    impl_->tell_progress({std::move(job), std::move(webhook), std::move(progress)});
}
void Webhooks::tell_change(const jobs::Event& event) {
    impl_->tell_change(event);
}
Task<> Webhooks::stop() {
    return impl_->stop();
}
WebhookCounters Webhooks::counters() const {
    return impl_->counters();
}

}  // namespace comfyd::notify
