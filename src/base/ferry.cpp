#include "base/ferry.hpp"

#include <utility>

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace comfyd {

struct Ferry::Passenger {
    Passenger(Executor from, std::function<void()> what)
        : home(from), guard(from), work(std::move(what)) {}
    virtual ~Passenger() = default;
    Passenger(const Passenger&) = delete;
    Passenger& operator=(const Passenger&) = delete;

    // Continues the caller; on its executor.
    virtual void land(std::unique_ptr<Passenger> self) = 0;

    Executor home;
    boost::asio::executor_work_guard<Executor> guard;
    std::function<void()> work;
};

namespace {

using Passengers = std::vector<std::unique_ptr<Ferry::Passenger>>;

template <class Handler>
struct Waiting final : Ferry::Passenger {
    Waiting(Executor from, std::function<void()> what, Handler continuation)
        : Passenger(from, std::move(what)), handler(std::move(continuation)) {}

    void land(std::unique_ptr<Passenger> self) override {
        Handler continuation = std::move(handler);
        self.reset();
        std::move(continuation)();
    }

    Handler handler;
};

void take_home(Passengers all) {
    while (!all.empty()) {
        const Executor home = all.front()->home;
        Passengers together;
        Passengers others;
        for (auto& one : all) {
            (one->home == home ? together : others).push_back(std::move(one));
        }
        all = std::move(others);
        boost::asio::post(home, [together = std::move(together)]() mutable {
            for (auto& one : together) {
                Ferry::Passenger& passenger = *one;
                passenger.land(std::move(one));
            }
        });
    }
}

}  // namespace

Ferry::Ferry(Executor target) : target_(target) {}

Ferry::~Ferry() = default;

Task<> Ferry::cross(std::function<void()> work) {
    constexpr boost::asio::use_awaitable_t<Executor> kAwait{};
    auto initiate = [this](auto handler, std::function<void()> what) {
        const Executor home = boost::asio::get_associated_executor(handler);
        board(
            std::make_unique<Waiting<decltype(handler)>>(home, std::move(what), std::move(handler))
        );
    };
    return boost::asio::async_initiate<const boost::asio::use_awaitable_t<Executor>, void()>(
        std::move(initiate), kAwait, std::move(work)
    );
}

void Ferry::board(std::unique_ptr<Passenger> passenger) {
    const Executor home = passenger->home;
    bool is_first = false;
    {
        const Lock lock(mutex_);
        is_first = waiting_.empty();
        waiting_.push_back(std::move(passenger));
    }
    if (is_first) {
        // By way of the caller's own queue, so that all that is ready there comes along.
        boost::asio::post(home, [this] { boost::asio::post(target_, [this] { carry(); }); });
    }
}

void Ferry::carry() {
    Passengers crossing;
    {
        const Lock lock(mutex_);
        crossing.swap(waiting_);
    }
    for (const auto& one : crossing) {
        one->work();
        one->work = nullptr;  // what it holds is freed here, too
    }
    take_home(std::move(crossing));
}

}  // namespace comfyd
