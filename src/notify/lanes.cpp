#include "notify/lanes.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace comfyd::notify {
namespace {

constexpr std::size_t kIdleLanesMax = 1024;

}  // namespace

Lanes::Lane& Lanes::lane(const std::string& name) {
    const CircuitBreaker::Limits limits{
        limits_.failures_before_rest, limits_.rest_first, limits_.rest_max
    };
    return lanes_.try_emplace(name, limits).first->second;
}

bool Lanes::add(Attempt attempt) {
    COMFYD_ASSERT(!contains(attempt.delivery.thread()));
    const std::string name = attempt.lane;
    Lane& lane = this->lane(name);
    if (lane.waiting.size() >= limits_.waiting_per_lane_max) {
        return false;
    }
    threads_.insert(attempt.delivery.thread());
    lane.waiting.push_back(std::move(attempt));
    give_turn(name, lane);
    return true;
}

std::optional<Attempt> Lanes::take(Time now) {
    while (!resting_.empty() && resting_.begin()->first <= now) {
        turns_.push_back(resting_.begin()->second);
        resting_.erase(resting_.begin());
    }
    while (in_flight_ < limits_.in_flight_max && !turns_.empty()) {
        const std::string name = std::move(turns_.front());
        turns_.pop_front();
        Lane& lane = lanes_.at(name);
        lane.has_turn = false;
        // Others of it may have failed since it got its turn.
        if (lane.breaker.wait(now) > Millis(0) || lane.in_flight >= places_of(lane)) {
            give_turn(name, lane);
            continue;
        }
        Attempt attempt = std::move(lane.waiting.front());
        lane.waiting.pop_front();
        ++lane.in_flight;
        ++in_flight_;
        give_turn(name, lane);
        return attempt;
    }
    return std::nullopt;
}

std::vector<Attempt> Lanes::take_along(const std::string& name, std::size_t count_max) {
    std::vector<Attempt> along;
    Lane& lane = lanes_.at(name);
    while (along.size() < count_max && !lane.waiting.empty()) {
        along.push_back(std::move(lane.waiting.front()));
        lane.waiting.pop_front();
        ++lane.in_flight;
        ++in_flight_;
    }
    if (lane.has_turn && lane.waiting.empty()) {
        lane.has_turn = false;
        std::erase(turns_, name);
        resting_.erase({lane.rests_until.value_or(Time{}), name});
    }
    return along;
}

void Lanes::left(const std::string& name, Ended how, Time now) {
    const auto found = lanes_.find(name);
    COMFYD_ASSERT(found != lanes_.end() && found->second.in_flight > 0);
    Lane& lane = found->second;
    --in_flight_;
    --lane.in_flight;
    if (how == Ended::served && resting_.erase({lane.rests_until.value_or(Time{}), name}) > 0) {
        lane.has_turn = false;
    }
    note(lane, how, now);
    if (lane.in_flight == 0 && lane.waiting.empty() && !lane.has_failed) {
        lanes_.erase(found);
        return;
    }
    give_turn(name, lane);
    if (lanes_.size() > kIdleLanesMax) {
        drop_rested(now);
    }
}

void Lanes::note(Lane& lane, Ended how, Time now) {
    if (how == Ended::served) {
        lane.has_failed = false;
        lane.breaker.succeeded();
        lane.rests_until.reset();
    } else if (how == Ended::failed) {
        lane.has_failed = true;
        // Those that were under way together fail together: that is one rest.
        if (lane.breaker.failed(now, 0)) {
            lane.rests_until = now + lane.breaker.wait(now);
        }
    }
}

std::size_t Lanes::places_of(const Lane& lane) const {
    return lane.rests_until ? 1 : limits_.in_flight_per_lane_max;
}

void Lanes::give_turn(const std::string& name, Lane& lane) {
    if (lane.has_turn || lane.waiting.empty() || lane.in_flight >= places_of(lane)) {
        return;
    }
    lane.has_turn = true;
    if (lane.rests_until) {
        resting_.emplace(*lane.rests_until, name);
    } else {
        turns_.push_back(name);
    }
}

// A receiver that nobody speaks to is forgotten, with its failures.
void Lanes::drop_rested(Time now) {
    std::erase_if(lanes_, [now](const auto& entry) {
        const Lane& lane = entry.second;
        return lane.in_flight == 0 && lane.waiting.empty() && lane.breaker.wait(now) <= Millis(0);
    });
}

std::optional<Time> Lanes::next_rested() const {
    return resting_.empty() ? std::nullopt : std::optional(resting_.begin()->first);
}

std::size_t Lanes::resting(Time now) const {
    return static_cast<std::size_t>(std::ranges::count_if(lanes_, [now](const auto& entry) {
        return entry.second.breaker.state(now) == CircuitBreaker::State::open;
    }));
}

CircuitBreaker::State Lanes::breaker(const std::string& name, Time now) const {
    using enum CircuitBreaker::State;
    auto worst = closed;
    for (auto at = lanes_.lower_bound(name); at != lanes_.end() && at->first.starts_with(name);
         ++at) {
        const bool is_its = at->first.size() == name.size() || at->first[name.size()] == ':';
        const auto state = is_its ? at->second.breaker.state(now) : closed;
        if (worst == closed || state == open) {
            worst = state;
        }
    }
    return worst;
}

}  // namespace comfyd::notify
