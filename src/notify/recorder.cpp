#include "notify/recorder.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/crypto.hpp"
#include "base/log.hpp"
#include "notify/backoff.hpp"

namespace comfyd::notify {
namespace {

constexpr Millis kStorageWaitFirst{100};
constexpr Millis kStorageWaitMax{10'000};
constexpr int kGiveUpAtOnce = 500;

double random_share() {
    std::uint32_t bits = 0;
    random_bytes(&bits, sizeof bits);
    return static_cast<double>(bits) /
           static_cast<double>(std::numeric_limits<std::uint32_t>::max());
}

}  // namespace

void Recorder::count_progress(const Outcome& outcome) {
    delivered_ += outcome.kind == Outcome::Kind::delivered ? 1 : 0;
    failed_attempts_ += outcome.kind == Outcome::Kind::retry ? 1 : 0;
}

Task<Result<>> Recorder::give_up(Delivery delivery, std::string why) {
    auto given_up = co_await outbox_.give_up(delivery, clock_.now(), std::move(why));
    dead_ += given_up ? 1 : 0;
    co_return given_up;
}

Task<> Recorder::give_up_waiting(std::string endpoint, std::string why) {
    for (int given_up = kGiveUpAtOnce; given_up == kGiveUpAtOnce;) {
        auto done = co_await outbox_.give_up_waiting(endpoint, clock_.now(), why, kGiveUpAtOnce);
        if (!done) {
            co_return;  // they are given up one by one when they are due
        }
        given_up = *done;
        dead_ += static_cast<std::uint64_t>(given_up);
    }
}

Task<> Recorder::record(const Attempt& attempt, Outcome outcome, RetryWish wish, Millis took) {
    const Time now = clock_.now();
    const bool is_too_late = now - attempt.delivery.created_at >= options_.give_up_after;
    const bool is_last = wish.retries_max && attempt.delivery.attempts >= *wish.retries_max;
    if (outcome.kind == Outcome::Kind::retry && (is_too_late || is_last)) {
        outcome.kind = Outcome::Kind::give_up;
    }
    if (outcome.kind == Outcome::Kind::retry || outcome.kind == Outcome::Kind::give_up) {
        ++failed_attempts_;
        log::debug("webhook failed", {{"job", attempt.delivery.job}, {"error", outcome.error}});
    }
    Delivery noted = attempt.delivery;
    if (outcome.kind != Outcome::Kind::put_aside) {
        noted.log.push_back({now, outcome.status, took, outcome.error});
    }
    for (Millis wait = kStorageWaitFirst;; wait = std::min(wait * 2, kStorageWaitMax)) {
        auto written = co_await write(noted, outcome, wish, now);
        if (written || written.error().code == Code::not_found) {
            break;
        }
        log::warning(
            "cannot record a delivery",
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
        log::warning(
            std::string(kind_of(attempt.target)) + " given up",
            {{"job", attempt.delivery.job}, {"error", outcome.error}}
        );
    }
}

Task<Result<>> Recorder::write(Delivery delivery, Outcome outcome, RetryWish wish, Time now) {
    if (outcome.kind == Outcome::Kind::delivered) {
        return outbox_.delivered(std::move(delivery), now);
    }
    if (outcome.kind == Outcome::Kind::give_up) {
        return outbox_.give_up(std::move(delivery), now, std::move(outcome.error));
    }
    if (outcome.kind == Outcome::Kind::put_aside) {
        return outbox_.put_aside(
            std::move(delivery), outcome.next_at.value_or(now), std::move(outcome.error)
        );
    }
    if (outcome.next_at) {
        return outbox_.retry_at(std::move(delivery), *outcome.next_at, std::move(outcome.error));
    }
    Millis wait = retry_wait(
        wish.first_retry.value_or(options_.first_retry),
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

NotifierCounters Recorder::counters() const {
    return {.delivered = delivered_, .failed_attempts = failed_attempts_, .dead = dead_};
}

}  // namespace comfyd::notify
