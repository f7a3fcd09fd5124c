#include "notify/lanes.hpp"

#include <utility>

#include "base/assert.hpp"

namespace comfyd::notify {

bool Lanes::add(Attempt attempt) {
    COMFYD_ASSERT(!contains(attempt.delivery.thread()));
    const std::string name = attempt.lane;
    Lane& lane = lanes_[name];
    if (lane.waiting.size() >= limits_.waiting_per_lane_max) {
        return false;
    }
    threads_.insert(attempt.delivery.thread());
    lane.waiting.push_back(std::move(attempt));
    give_turn(name, lane);
    return true;
}

std::optional<Attempt> Lanes::take() {
    if (in_flight_ >= limits_.in_flight_max || turns_.empty()) {
        return std::nullopt;
    }
    const std::string name = std::move(turns_.front());
    turns_.pop_front();
    Lane& lane = lanes_.at(name);
    lane.has_turn = false;
    Attempt attempt = std::move(lane.waiting.front());
    lane.waiting.pop_front();
    ++lane.in_flight;
    ++in_flight_;
    give_turn(name, lane);
    return attempt;
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
    }
    return along;
}

void Lanes::done(const Thread& thread, const std::string& name) {
    const auto found = lanes_.find(name);
    COMFYD_ASSERT(found != lanes_.end() && found->second.in_flight > 0);
    threads_.erase(thread);
    --in_flight_;
    --found->second.in_flight;
    if (found->second.in_flight == 0 && found->second.waiting.empty()) {
        lanes_.erase(found);
        return;
    }
    give_turn(name, found->second);
}

void Lanes::give_turn(const std::string& name, Lane& lane) {
    if (!lane.has_turn && !lane.waiting.empty() &&
        lane.in_flight < limits_.in_flight_per_lane_max) {
        lane.has_turn = true;
        turns_.push_back(name);
    }
}

}  // namespace comfyd::notify
