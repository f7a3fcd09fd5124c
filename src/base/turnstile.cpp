#include "base/turnstile.hpp"

#include <utility>

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>

namespace comfyd {

Task<Result<Turnstile::Pass>> Turnstile::enter(std::string key) {
    const Executor executor = co_await boost::asio::this_coro::executor;
    auto waiter = line_up(key, executor);
    if (!waiter) {
        co_return fail(std::move(waiter.error()));
    }
    while (*waiter && !is_let_in(**waiter)) {
        const bool goes_on = co_await (*waiter)->woken.wait();
        if (!goes_on && !give_up(key, *waiter)) {
            co_return fail(Code::cancelled, "nobody waits for it any more");
        }
    }
    co_return Pass(*this, std::move(key));
}

Result<std::shared_ptr<Turnstile::Waiter>> Turnstile::line_up(
    const std::string& key, Executor executor
) {
    const Lock lock(mutex_);
    Lane& lane = lanes_[key];
    if (lane.inside < limits_.inside_max) {
        ++lane.inside;
        return nullptr;
    }
    if (lane.waiting.size() >= limits_.waiting_max) {
        return fail(
            Code::queue_full,
            std::to_string(lane.waiting.size()) +
                " such requests of yours wait already; ask again later"
        );
    }
    lane.waiting.push_back(std::make_shared<Waiter>(executor));
    return lane.waiting.back();
}

bool Turnstile::is_let_in(const Waiter& waiter) {
    const Lock lock(mutex_);
    return waiter.let_in;
}

bool Turnstile::give_up(const std::string& key, const std::shared_ptr<Waiter>& waiter) {
    const Lock lock(mutex_);
    if (waiter->let_in) {
        return true;
    }
    std::erase(lanes_.at(key).waiting, waiter);
    return false;
}

void Turnstile::leave(const std::string& key) {
    std::shared_ptr<Waiter> next;
    {
        const Lock lock(mutex_);
        const auto lane = lanes_.find(key);
        if (lane->second.waiting.empty()) {
            if (--lane->second.inside == 0) {
                lanes_.erase(lane);
            }
            return;
        }
        next = std::move(lane->second.waiting.front());  // takes the place
        lane->second.waiting.pop_front();
        next->let_in = true;
    }
    boost::asio::post(next->executor, [next] { next->woken.notify(); });
}

}  // namespace comfyd
