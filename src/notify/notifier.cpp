#include "notify/notifier.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <boost/asio/post.hpp>

#include "base/assert.hpp"
#include "base/clock_jumps.hpp"
#include "base/hop.hpp"
#include "base/log.hpp"
#include "base/on_executor.hpp"
#include "notify/fresh_changes.hpp"
#include "notify/lanes.hpp"
#include "notify/messages.hpp"
#include "notify/progress_news.hpp"
#include "notify/recorder.hpp"

namespace comfyd::notify {
namespace {

constexpr int kPollBatch = 256;
constexpr int kKnownMax = 8192;  // deliveries held in memory
constexpr std::size_t kWaitingPerLaneMax = 1024;
constexpr Millis kLaneFullWait{30'000};
constexpr Millis kLookAtLeastEvery{60'000};
constexpr Millis kLookWhileBusy{500
};  // what is in flight hides from next_due() what is due after it
constexpr Millis kSoon{5};
constexpr Millis kStorageWaitFirst{100};
constexpr Millis kStorageWaitMax{10'000};
constexpr Millis kReadAgainWait{1'000};
// Looking into the outbox takes no more than a fifth of the time, however long the list is.
constexpr int kRestPerLook = 4;

// wake() may be called while the object is being destroyed on its executor, so what is posted owns
// this.
struct Waker {
    explicit Waker(Executor waker_executor)
        : executor(waker_executor), signal(waker_executor), soon(waker_executor) {}
    Executor executor;
    std::atomic<bool> is_posted{false};
    std::atomic<bool> is_soon_posted{false};
    bool is_requested = false;
    bool is_wanted_soon = false;
    Signal signal;
    Signal soon;

    void request() {
        is_requested = true;
        signal.notify();
    }
};

}  // namespace

class Notifier::Impl {
public:
    Impl(
        Executor executor,
        Clock& clock,
        Outbox& outbox,
        jobs::Ledger& ledger,
        Channels channels,
        NotifierOptions options
    )
        : executor_(executor),
          clock_(clock),
          pace_(options.pace != nullptr ? *options.pace : clock),
          outbox_(outbox),
          ledger_(ledger),
          channels_(std::move(channels)),
          options_(options),
          recorder_(clock, outbox, options),
          waker_(std::make_shared<Waker>(executor)),
          news_(options_.progress_interval) {}

    void start();
    void wake();
    void wake_soon();
    void tell_progress(ProgressNews::News news) {
        if (news_.put(std::move(news), pace_.now())) {
            wake();
        }
    }
    void tell_change(const jobs::Job& job, const jobs::Event& event) {
        news_.drop(event.job, event.sequence);
        fresh_.put(job, event);
        is_terminal(event.state) ? wake() : wake_soon();
    }
    Task<Outcome> try_once(Message message) {
        Channel& channel = channel_to(message.to);
        return await_on(executor_, channel.deliver(std::move(message)));
    }
    Task<Result<std::optional<Letter>>> show(Delivery delivery);
    Task<> stop();
    Task<std::map<std::string, CircuitBreaker::State>> breakers() const {
        return call_on(executor_, [this] { return breakers_now(); });
    }
    NotifierCounters counters() const {
        NotifierCounters counters = recorder_.counters();
        counters.in_flight = in_flight_;
        counters.resting = resting_;
        return counters;
    }

private:
    Task<> run();
    Task<> look_soon();
    Task<Result<Millis>> look();
    Task<Result<>> make_up_for_jumps();
    Task<Result<bool>> take_in_batch();
    Task<Result<>> take_in(Delivery delivery);
    Task<Result<>> take_in_freed();
    bool is_new(const Delivery& delivery) const;
    Task<> put_aside(Delivery delivery);
    void take_in_progress();
    static Millis next_look(std::optional<Time> next_due, const Clock& clock);
    Channel& channel_to(const Target& target) const { return *channels_.at(target.index()); }
    std::map<std::string, CircuitBreaker::State> breakers_now() const;
    void start_attempts();
    Task<> attempt(Attempt attempt);
    Task<> attempt_together(std::vector<Attempt> attempts);
    static Lanes::Ended ended_by(const Outcome& outcome);
    Task<Outcome> send(const Attempt& attempt, Message message);
    Task<> tell_of_progress(const Attempt& attempt);
    Task<> tell_of_change(const Attempt& attempt);
    Task<std::optional<Message>> read_message(const Attempt& attempt);
    Task<> record(const Attempt& attempt, Outcome outcome, Millis took);
    Task<> leave_alone(const Attempt& attempt, std::string why);
    void left(const Attempt& attempt, Lanes::Ended ended);
    void done(const Attempt& attempt);

    Executor executor_;
    Clock& clock_;
    const Clock& pace_;  // of all that is not stored
    Outbox& outbox_;
    jobs::Ledger& ledger_;
    const Channels channels_;
    const NotifierOptions options_;
    Recorder recorder_;
    std::shared_ptr<Waker> waker_;  // shared with posted wake-ups
    ProgressNews news_;
    FreshChanges fresh_;
    std::atomic<std::uint64_t> in_flight_{0};
    std::atomic<std::uint64_t> resting_{0};

    // From start() to stop().
    std::optional<TaskGroup> group_;
    std::optional<Lanes> lanes_;
    // What ended while we ask the outbox, by its thread: its answer may still list it.
    std::map<Thread, std::uint64_t> ended_meanwhile_;
    std::set<Thread> put_aside_;  // being written
    // What we were handed while its thread was busy. Nobody is handed it again for a while, so it
    // waits here until the thread is free.
    std::map<Thread, Delivery> held_;
    std::map<Thread, Delivery> freed_;
    std::chrono::steady_clock::time_point look_again_at_{};
    ClockJumps jumps_{clock_, pace_};
    Millis set_back_{0};  // the outbox has not been told yet
};

void Notifier::Impl::start() {
    COMFYD_ON(executor_);
    COMFYD_ASSERT(!group_);
    lanes_.emplace(Lanes::Limits{
        .in_flight_max = options_.in_flight_max,
        .in_flight_per_lane_max = options_.in_flight_per_lane_max,
        .waiting_per_lane_max = kWaitingPerLaneMax,
        .failures_before_rest = options_.failures_before_rest,
        .rest_first = options_.first_retry,
        .rest_max = options_.rest_max,
    });
    group_.emplace(executor_);
    group_->spawn("webhooks", run());
    group_->spawn("webhooks soon", look_soon());
}

void Notifier::Impl::wake() {
    if (waker_->is_posted.exchange(true)) {
        return;
    }
    boost::asio::post(executor_, [waker = waker_] {
        waker->is_posted = false;
        waker->request();
    });
}

// Of most jobs only the end is told, and a look for what else may be due would only be in its way.
void Notifier::Impl::wake_soon() {
    if (waker_->is_soon_posted.exchange(true)) {
        return;
    }
    boost::asio::post(executor_, [waker = waker_] {
        waker->is_soon_posted = false;
        waker->is_wanted_soon = true;
        waker->soon.notify();
    });
}

Task<> Notifier::Impl::look_soon() {
    bool goes_on = true;
    while (goes_on) {
        if (!waker_->is_wanted_soon) {
            co_await waker_->soon.wait();
        }
        goes_on = co_await sleep_for(kSoon);
        if (std::exchange(waker_->is_wanted_soon, false)) {
            waker_->request();
        }
    }
}

Task<> Notifier::Impl::stop() {
    COMFYD_ON(executor_);
    if (!group_) {
        co_return;
    }
    group_->cancel();
    co_await group_->join();
    group_.reset();
    lanes_.reset();
    for (const auto& channel : channels_) {
        channel->close();
    }
    ended_meanwhile_.clear();
    put_aside_.clear();
    held_.clear();
    freed_.clear();
    look_again_at_ = {};
}

Task<> Notifier::Impl::run() {
    Millis storage_wait = kStorageWaitFirst;
    for (;;) {
        waker_->is_requested = false;
        waker_->is_wanted_soon = false;
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
Task<Result<Millis>> Notifier::Impl::look() {
    auto freed = co_await take_in_freed();
    start_attempts();  // for whom a place became free
    if (!freed) {
        co_return fail(std::move(freed.error()));
    }
    const auto begun = std::chrono::steady_clock::now();
    if (begun < look_again_at_) {
        co_return std::chrono::ceil<Millis>(look_again_at_ - begun);
    }
    auto made_up = co_await make_up_for_jumps();
    if (!made_up) {
        co_return fail(std::move(made_up.error()));
    }
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
    const auto looked = std::chrono::steady_clock::now();
    look_again_at_ = looked + (looked - begun) * kRestPerLook;
    const Millis until_news = next_look(news_.next_due(), pace_);
    const Millis until_rested = next_look(lanes_->next_rested(), pace_);
    co_return std::min({next_look(*next, clock_), until_news, until_rested});
}

// What waits for a time of day would wait longer by as much.
Task<Result<>> Notifier::Impl::make_up_for_jumps() {
    set_back_ += std::max(Millis(0), -jumps_.look());
    if (set_back_ == Millis(0)) {
        co_return Result<>();
    }
    const Millis by = set_back_;
    auto hastened = co_await outbox_.hasten(clock_.now(), by);
    if (hastened) {
        set_back_ -= by;
        log::warning(
            "the clock was set back; what is to be delivered does not wait for that",
            {{"by_ms", by.count()}}
        );
    }
    co_return hastened;
}

Millis Notifier::Impl::next_look(std::optional<Time> next_due, const Clock& clock) {
    if (!next_due) {
        return kLookAtLeastEvery;
    }
    const Millis wait = *next_due - clock.now();
    return wait <= Millis(0) ? kLookWhileBusy : std::min(wait, kLookAtLeastEvery);
}

// True when there may be more to take in at once.
Task<Result<bool>> Notifier::Impl::take_in_batch() {
    if (lanes_->size() + kPollBatch > kKnownMax) {
        co_return false;
    }
    // What we know already is listed again, so it is asked for on top; as much again, because a
    // long list would be read very often in small pieces.
    const auto known = static_cast<int>(lanes_->size());
    const int limit = known + std::clamp(known, kPollBatch, kKnownMax - known);
    ended_meanwhile_.clear();
    auto due = co_await outbox_.due(clock_.now(), limit);
    if (!due) {
        co_return fail(std::move(due.error()));
    }
    const bool is_full = due->size() >= static_cast<std::size_t>(limit);
    std::erase_if(*due, [this](const Delivery& delivery) { return !is_new(delivery); });
    std::erase_if(*due, [this](const Delivery& delivery) {
        const bool is_busy = lanes_->contains(delivery.thread());
        if (is_busy) {
            held_.insert_or_assign(delivery.thread(), delivery);
        }
        return is_busy;
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

bool Notifier::Impl::is_new(const Delivery& delivery) const {
    const Thread thread = delivery.thread();
    const auto ended = ended_meanwhile_.find(thread);
    const bool has_ended = ended != ended_meanwhile_.end() && delivery.sequence <= ended->second;
    return !has_ended && !put_aside_.contains(thread) && !freed_.contains(thread);
}

Task<Result<>> Notifier::Impl::take_in_freed() {
    while (!freed_.empty()) {
        auto freed = freed_.extract(freed_.begin());
        auto taken = co_await take_in(std::move(freed.mapped()));
        if (!taken) {
            co_return taken;
        }
    }
    co_return Result<>();
}

Task<Result<>> Notifier::Impl::take_in(Delivery delivery) {
    if (!delivery.target) {
        auto given_up =
            co_await recorder_.give_up(delivery, "whom to tell cannot be read any more");
        co_return given_up;
    }
    const Target target = *delivery.target;
    auto lane = channel_to(target).lane_of(target);
    if (!lane) {
        auto given_up = co_await recorder_.give_up(delivery, std::move(lane.error().message));
        co_return given_up;
    }
    Attempt attempt{
        .delivery = delivery, .target = target, .lane = std::move(*lane), .progress = {}
    };
    if (lanes_->add(std::move(attempt))) {
        co_return Result<>();
    }
    // So that a receiver with a very long queue does not fill what we can hold for all.
    put_aside_.insert(delivery.thread());
    group_->spawn("webhook put aside", put_aside(std::move(delivery)));
    co_return Result<>();
}

Task<> Notifier::Impl::put_aside(Delivery delivery) {
    const Thread thread = delivery.thread();
    const std::uint64_t sequence = delivery.sequence;
    auto written = co_await outbox_.put_aside(
        std::move(delivery),
        clock_.now() + kLaneFullWait,
        "waits for earlier deliveries to the same receiver"
    );
    static_cast<void>(written);  // it is found again then
    put_aside_.erase(thread);
    ended_meanwhile_.insert_or_assign(thread, sequence);
}

// After what the outbox has of the same job, and dropped where its receiver is far behind.
void Notifier::Impl::take_in_progress() {
    const auto is_busy = [this](const Thread& thread) {
        return lanes_->contains(thread) || freed_.contains(thread);
    };
    for (auto& news : news_.take_due(pace_.now(), is_busy)) {
        auto lane = channel_to(news->to.target).lane_of(news->to.target);
        if (!lane) {
            continue;  // the end of the job is given up with the reason
        }
        Attempt attempt{
            .delivery =
                {.job = news->job.id,
                 .sequence = news->event.sequence,
                 .endpoint = news->to.endpoint},
            .target = news->to.target,
            .lane = std::move(*lane),
            .progress = std::move(news),
        };
        lanes_->add(std::move(attempt));
    }
}

void Notifier::Impl::start_attempts() {
    while (auto next = lanes_->take(pace_.now())) {
        const std::size_t max = channel_to(next->target).together_max(next->target);
        std::vector<Attempt> along = lanes_->take_along(next->lane, max - 1);
        in_flight_ += 1 + along.size();
        if (along.empty()) {
            group_->spawn("webhook", attempt(std::move(*next)));
        } else {
            along.push_back(std::move(*next));
            group_->spawn("digest", attempt_together(std::move(along)));
        }
    }
    resting_ = lanes_->resting(pace_.now());
}

std::map<std::string, CircuitBreaker::State> Notifier::Impl::breakers_now() const {
    using enum CircuitBreaker::State;
    std::map<std::string, CircuitBreaker::State> breakers;
    for (const auto& channel : channels_) {
        for (const Channel::Server& server : channel->servers()) {
            const auto of_lanes = lanes_ ? lanes_->breaker(server.lane, pace_.now()) : closed;
            breakers[server.lane] = server.is_paused ? open : of_lanes;
        }
    }
    return breakers;
}

Task<> Notifier::Impl::attempt(Attempt attempt) {
    // Whatever happens below, the next of its thread can follow.
    struct Guard {
        Impl& impl;
        const Attempt& held;
        ~Guard() { impl.done(held); }
    } const guard{*this, attempt};
    if (attempt.progress) {
        co_await tell_of_progress(attempt);
    } else {
        co_await tell_of_change(attempt);
    }
}

Task<> Notifier::Impl::attempt_together(std::vector<Attempt> attempts) {
    struct Guard {
        Impl& impl;
        const std::vector<Attempt>& held;
        Lanes::Ended ended = Lanes::Ended::unknown;
        ~Guard() {
            for (const Attempt& one : held) {
                impl.left(one, ended);
                impl.done(one);
            }
        }
    } guard{*this, attempts};
    std::vector<Message> messages;
    std::vector<const Attempt*> told;
    for (const Attempt& attempt : attempts) {
        auto message = co_await read_message(attempt);
        if (message) {
            messages.push_back(std::move(*message));
            told.push_back(&attempt);
        }
    }
    if (messages.empty()) {
        co_return;
    }
    const Target target = messages.front().to;
    const Time begun = pace_.now();
    auto outcomes = co_await channel_to(target).deliver_together(std::move(messages));
    guard.ended = ended_by(outcomes.front());
    const Millis took = pace_.now() - begun;
    for (std::size_t i = 0; i < told.size(); ++i) {
        co_await record(*told[i], std::move(outcomes[i]), took);
    }
}

Lanes::Ended Notifier::Impl::ended_by(const Outcome& outcome) {
    switch (outcome.kind) {
        case Outcome::Kind::delivered:
            return Lanes::Ended::served;
        case Outcome::Kind::retry:
            return outcome.is_of_one ? Lanes::Ended::unknown : Lanes::Ended::failed;
        default:
            return Lanes::Ended::unknown;
    }
}

// Sends it. Its place in the lane becomes free then, whatever happens; only where the receiver is
// gone it is kept until nobody else is sent there.
Task<Outcome> Notifier::Impl::send(const Attempt& attempt, Message message) {
    struct Guard {
        Impl& impl;
        const Attempt& held;
        Lanes::Ended ended = Lanes::Ended::unknown;
        bool is_kept = false;
        ~Guard() {
            if (!is_kept) {
                impl.left(held, ended);
            }
        }
    } guard{*this, attempt};
    auto outcome = co_await channel_to(attempt.target).deliver(std::move(message));
    guard.ended = ended_by(outcome);
    guard.is_kept = outcome.is_gone;
    co_return outcome;
}

Task<> Notifier::Impl::tell_of_progress(const Attempt& attempt) {
    const ProgressNews::News& news = *attempt.progress;
    auto outcome = co_await send(attempt, {news.to.target, news.job, news.event});
    recorder_.count_progress(outcome);
    if (outcome.is_gone) {
        left(attempt, Lanes::Ended::unknown);
    }
}

Task<> Notifier::Impl::tell_of_change(const Attempt& attempt) {
    auto message = co_await read_message(attempt);
    if (!message) {
        left(attempt, Lanes::Ended::unknown);
        co_return;
    }
    const Time begun = pace_.now();
    auto outcome = co_await send(attempt, std::move(*message));
    const bool is_gone = outcome.is_gone;
    co_await record(attempt, std::move(outcome), pace_.now() - begun);
    if (is_gone) {
        left(attempt, Lanes::Ended::unknown);
    }
}

Task<Result<std::optional<Letter>>> Notifier::Impl::show(Delivery delivery) {
    if (!delivery.target) {
        co_return std::nullopt;
    }
    Target to = *delivery.target;
    auto message = co_await find_message(ledger_, std::move(delivery), std::move(to));
    if (!message) {
        co_return fail(std::move(message.error()));
    }
    if (!*message) {
        co_return std::nullopt;
    }
    Channel& channel = channel_to((*message)->to);
    auto letter = co_await await_on(executor_, channel.show(std::move(**message)));
    co_return letter;
}

// Nullopt: there is nothing to tell, now or ever.
Task<std::optional<Message>> Notifier::Impl::read_message(const Attempt& attempt) {
    const Delivery& delivery = attempt.delivery;
    if (const auto fresh = fresh_.find(delivery.job, delivery.sequence)) {
        co_return Message{attempt.target, fresh->job, fresh->event};
    }
    auto message = co_await find_message(ledger_, delivery, attempt.target);
    if (!message) {
        log::warning(
            "cannot read a job for its webhook",
            {{"job", delivery.job}, {"error", message.error().message}}
        );
        co_await sleep_for(kReadAgainWait);
        co_return std::nullopt;
    }
    if (!*message) {
        Outcome gone{.kind = Outcome::Kind::give_up, .error = "the event is no longer stored"};
        co_await record(attempt, std::move(gone), Millis(0));
    }
    co_return std::move(*message);
}

Task<> Notifier::Impl::record(const Attempt& attempt, Outcome outcome, Millis took) {
    if (outcome.kind == Outcome::Kind::cancelled) {
        co_return;
    }
    const bool is_gone = outcome.is_gone;
    const std::string why = outcome.error;
    const RetryWish wish = channel_to(attempt.target).retry_wish(attempt.target);
    co_await recorder_.record(attempt, std::move(outcome), wish, took);
    if (is_gone) {
        co_await leave_alone(attempt, why);
    }
}

// What waits for it becomes dead letters with that reason.
Task<> Notifier::Impl::leave_alone(const Attempt& attempt, std::string why) {
    const auto* endpoint = std::get_if<EndpointTarget>(&attempt.target);
    if (endpoint == nullptr || !options_.disable_endpoint) {
        co_return;
    }
    auto disabled = co_await options_.disable_endpoint(endpoint->id, why);
    if (!disabled) {
        log::warning(
            "cannot disable an endpoint of webhooks",
            {{"endpoint", endpoint->id}, {"error", disabled.error().message}}
        );
        co_return;  // the next delivery is told the same
    }
    log::info("endpoint of webhooks disabled", {{"endpoint", endpoint->id}, {"reason", why}});
    co_await recorder_.give_up_waiting(attempt.delivery.endpoint, why);
}

void Notifier::Impl::left(const Attempt& attempt, Lanes::Ended ended) {
    lanes_->left(attempt.lane, ended, pace_.now());
    --in_flight_;
    waker_->request();
}

void Notifier::Impl::done(const Attempt& attempt) {
    const Thread thread = attempt.delivery.thread();
    lanes_->done(thread);
    if (!attempt.progress) {
        fresh_.drop(thread.job);
        ended_meanwhile_.insert_or_assign(thread, attempt.delivery.sequence);
    }
    // The same one was listed once more, or it is the next.
    auto held = held_.extract(thread);
    if (held && (attempt.progress || held.mapped().sequence > attempt.delivery.sequence)) {
        freed_.insert(std::move(held));
    }
    waker_->request();
}

Notifier::Notifier(
    Executor executor,
    Clock& clock,
    Outbox& outbox,
    jobs::Ledger& ledger,
    Channels channels,
    NotifierOptions options
)
    : impl_(std::make_unique<Impl>(executor, clock, outbox, ledger, std::move(channels), options)) {
}

Notifier::~Notifier() = default;

void Notifier::start() {
    impl_->start();
}
void Notifier::wake() {
    impl_->wake();
}
void Notifier::tell_progress(jobs::Job job, Recipient to, jobs::Event progress) {
    impl_->tell_progress({std::move(job), std::move(to), std::move(progress)});
}
void Notifier::tell_change(const jobs::Job& job, const jobs::Event& event) {
    impl_->tell_change(job, event);
}
Task<Outcome> Notifier::try_once(Message message) {
    return impl_->try_once(std::move(message));
}
Task<Result<std::optional<Letter>>> Notifier::show(Delivery delivery) {
    return impl_->show(std::move(delivery));
}
Task<> Notifier::stop() {
    return impl_->stop();
}
NotifierCounters Notifier::counters() const {
    return impl_->counters();
}
Task<std::map<std::string, CircuitBreaker::State>> Notifier::breakers() const {
    return impl_->breakers();
}

}  // namespace comfyd::notify
