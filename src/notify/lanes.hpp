// Decides which delivery is attempted next: one lane per receiver, first come first served in it,
// lanes in turn. So a receiver that is slow or dead fills its own lane and no other.
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
#include <vector>

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
    };
    explicit Lanes(Limits limits) : limits_(limits) {}

    bool contains(const Thread& thread) const { return threads_.contains(thread); }
    std::size_t size() const { return threads_.size(); }

    // False when its lane is full. REQUIRES: !contains(attempt.delivery.thread())
    bool add(Attempt attempt);
    // The next one that may start now; it counts as in flight until done().
    std::optional<Attempt> take();
    // Further ones of the same lane, at most `count_max`, to go along with one that was taken.
    std::vector<Attempt> take_along(const std::string& name, std::size_t count_max);
    void done(const Thread& thread, const std::string& name);

private:
    struct Lane {
        std::deque<Attempt> waiting;
        std::size_t in_flight = 0;
        bool has_turn = false;  // is in turns_
    };
    void give_turn(const std::string& name, Lane& lane);

    Limits limits_;
    std::size_t in_flight_ = 0;
    std::map<std::string, Lane> lanes_;
    std::deque<std::string> turns_;  // lanes that have somebody waiting and a place free
    std::set<Thread> threads_;
};

}  // namespace comfyd::notify
