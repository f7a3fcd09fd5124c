#include "base/hop.hpp"

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace comfyd {
namespace {

constexpr boost::asio::use_awaitable_t<Executor> kAwait{};

template <class Target>
Task<> work_there(Target target, std::function<void()> work) {
    auto initiate = [](auto handler, Target where, std::function<void()> job) {
        auto home = boost::asio::get_associated_executor(handler);
        auto guard = boost::asio::make_work_guard(home);
        boost::asio::post(
            where,
            [handler = std::move(handler), job = std::move(job), home, guard = std::move(guard)](
            ) mutable {
                job();
                boost::asio::post(home, [handler = std::move(handler)]() mutable {
                    std::move(handler)();
                });
            }
        );
    };
    return boost::asio::async_initiate<const boost::asio::use_awaitable_t<Executor>, void()>(
        std::move(initiate), kAwait, std::move(target), std::move(work)
    );
}

}  // namespace

Task<> work_on(Executor target, std::function<void()> work) {
    return work_there(std::move(target), std::move(work));
}

Task<> work_on(boost::asio::thread_pool::executor_type target, std::function<void()> work) {
    return work_there(std::move(target), std::move(work));
}

Task<> await_on(Executor target, Task<> task) {
    // No slot: Boost 1.81 would also tell a coroutine of a cancellation that has ended meanwhile.
    const boost::asio::cancellation_slot none;
    co_await boost::asio::co_spawn(
        target, std::move(task), boost::asio::bind_cancellation_slot(none, kAwait)
    );
}

}  // namespace comfyd
