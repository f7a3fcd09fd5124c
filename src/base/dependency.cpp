#include "base/dependency.hpp"

#include <random>
#include <utility>

namespace comfyd {
namespace {

// Nodes that lost the same server do not all come back at once.
double some_share() {
    thread_local std::mt19937 random(std::random_device{}());
    return std::uniform_real_distribution<double>(0, 1)(random);
}

}  // namespace

Dependency::Pass::Pass(Pass&& other) noexcept
    : of_(other.of_), is_try_(std::exchange(other.is_try_, false)) {}

Dependency::Pass::~Pass() {
    if (is_try_) {
        of_->end_try();
    }
}

Dependency::Dependency(std::string name, CircuitBreaker::Limits limits, const Clock& clock)
    : name_(std::move(name)), clock_(clock), breaker_(limits) {}

CircuitBreaker::State Dependency::state() const {
    const Lock lock(mutex_);
    return breaker_.state(clock_.now());
}

Millis Dependency::wait() const {
    const Lock lock(mutex_);
    return breaker_.wait(clock_.now());
}

bool Dependency::succeeded() {
    const Lock lock(mutex_);
    const bool was_closed = breaker_.state(clock_.now()) == CircuitBreaker::State::closed;
    breaker_.succeeded();
    return !was_closed;
}

bool Dependency::failed() {
    const Lock lock(mutex_);
    const Time now = clock_.now();
    const bool was_closed = breaker_.state(now) == CircuitBreaker::State::closed;
    return breaker_.failed(now, some_share()) && was_closed;
}

std::optional<Dependency::Pass> Dependency::admit() {
    const Lock lock(mutex_);
    const auto state = breaker_.state(clock_.now());
    const bool is_try = state == CircuitBreaker::State::half_open;
    if (state == CircuitBreaker::State::open || (is_try && is_tried_)) {
        return std::nullopt;
    }
    is_tried_ = is_tried_ || is_try;
    return Pass(*this, is_try);
}

void Dependency::end_try() {
    const Lock lock(mutex_);
    is_tried_ = false;
}

}  // namespace comfyd
