// What is to happen, by its time: messages that arrive, machines that come back. The time of a
// schedule is the time of what happens.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "base/time.hpp"

namespace comfyd::simulation {

class Agenda final : public Clock {
public:
    explicit Agenda(Time start) : now_(start) {}

    Time now() const override { return now_; }
    void in(Millis time, std::function<void()> happen) {
        entries_.push({now_ + time, ++number_, std::move(happen)});
    }
    std::optional<Time> next() const {
        return entries_.empty() ? std::nullopt : std::optional(entries_.top().at);
    }
    // What is due by then happens, in its order.
    void go_to(Time then) {
        while (!entries_.empty() && entries_.top().at <= then) {
            const Entry entry = std::move(const_cast<Entry&>(entries_.top()));
            entries_.pop();
            now_ = entry.at;
            entry.happen();
        }
        now_ = then;
    }

private:
    struct Entry {
        Time at;
        std::uint64_t number;  // those of one moment keep their order
        std::function<void()> happen;

        bool operator<(const Entry& other) const {
            return std::pair(at, number) > std::pair(other.at, other.number);
        }
    };

    Time now_;
    std::uint64_t number_ = 0;
    std::priority_queue<Entry> entries_;
};

}  // namespace comfyd::simulation
