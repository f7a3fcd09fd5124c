// Decides which delivery is attempted next: one lane per receiver, first come first served in it,
// lanes in turn. So a receiver that is slow or dead fills its own lane and no other.
//
// Each lane has a circuit breaker: where several attempts in a row failed it rests, nothing is
// tried there for a while, then one attempt, and the rest is longer each time until one succeeds.
// What waits in it loses no attempt of its own by that. Times are those of a clock that nobody
// sets.
//
// Plain state of one executor; no I/O. A thread (a job and a receiver) has at most one delivery in
// here, from add() to done().
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/circuit_breaker.hpp"
#include "notify/channel.hpp"
#include "notify/outbox.hpp"
#include "notify/progress_news.hpp"

namespace comfyd::notify {

struct Attempt {
    Delivery delivery;
    Target target;     // the delivery's
    std::string lane;  // as its channel says
    // Set: progress, which is sent once and of which the outbox knows nothing.
    std::shared_ptr<const ProgressNews::News> progress{};
};

class Lanes {
public:
    struct Limits {
        std::size_t in_flight_max;
        std::size_t in_flight_per_lane_max;
        std::size_t waiting_per_lane_max;
        int failures_before_rest;
        Millis rest_first;  // then doubled each time
        Millis rest_max;
    };
    // What an attempt says of its receiver.
    enum class Ended { served, failed, unknown };
    explicit Lanes(Limits limits) : limits_(limits) {}

    bool contains(const Thread& thread) const { return threads_.contains(thread); }
    std::size_t size() const { return threads_.size(); }

    // False when its lane is full. REQUIRES: !contains(attempt.delivery.thread())
    bool add(Attempt attempt);
    // The next one that may start now; it counts as in flight until left().
    std::optional<Attempt> take(Time now);
    // Further ones of the same lane, at most `count_max`, to go along with one that was taken.
    std::vector<Attempt> take_along(const std::string& name, std::size_t count_max);
    // The receiver has been told, or not: its place is free for another, while what came of it may
    // still have to be written down.
    void left(const std::string& name, Ended how, Time now);
    // Nothing is to be done for it any more.
    void done(const Thread& thread) { threads_.erase(thread); }
    // When the next lane in which something waits has rested; nullopt: none rests.
    std::optional<Time> next_rested() const;
    std::size_t resting(Time now) const;
    // Of the lanes of that name, or with a name of their own after it and a colon: the one that is
    // worst off.
    CircuitBreaker::State breaker(const std::string& name, Time now) const;

private:
    struct Lane {
        explicit Lane(CircuitBreaker::Limits limits) : breaker(limits) {}
        std::deque<Attempt> waiting{};
        std::size_t in_flight = 0;
        bool has_turn = false;    // is in turns_
        bool has_failed = false;  // since the latest success
        CircuitBreaker breaker;
        std::optional<Time> rests_until{};  // set from its first rest to the next success
    };
    Lane& lane(const std::string& name);
    static void note(Lane& lane, Ended how, Time now);
    std::size_t places_of(const Lane& lane) const;
    void give_turn(const std::string& name, Lane& lane);
    void drop_rested(Time now);

    Limits limits_;
    std::size_t in_flight_ = 0;
    std::map<std::string, Lane> lanes_;
    std::deque<std::string> turns_;  // lanes that have somebody waiting and a place free
    std::set<std::pair<Time, std::string>> resting_;  // those of them that rest, by when they have
    std::set<Thread> threads_;
};

}  // namespace comfyd::notify
