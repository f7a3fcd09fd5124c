// Crossing from one executor to another and back. A context must outlive the threads that post to
// it: a post is still inside the context for a moment after what it posted has run.
#pragma once

#include <type_traits>
#include <utility>

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/task.hpp"

namespace comfyd {

// Calls `work` on `target` and continues the caller on its own executor with the result, which must
// not be void. The call is not interrupted by cancellation.
template <class Target, class Work>
Task<std::invoke_result_t<Work>> call_on(Target target, Work work) {
    using Value = std::invoke_result_t<Work>;
    auto initiate = [](auto handler, Target where, Work job) {
        auto home = boost::asio::get_associated_executor(handler);
        auto guard = boost::asio::make_work_guard(home);
        boost::asio::post(
            where,
            [handler = std::move(handler), job = std::move(job), home, guard = std::move(guard)](
            ) mutable {
                auto value = job();
                boost::asio::post(
                    home,
                    [handler = std::move(handler), value = std::move(value)]() mutable {
                        std::move(handler)(std::move(value));
                    }
                );
            }
        );
    };
    constexpr boost::asio::use_awaitable_t<Executor> kAwait{};
    auto value = co_await boost::asio::
        async_initiate<const boost::asio::use_awaitable_t<Executor>, void(Value)>(
            std::move(initiate), kAwait, std::move(target), std::move(work)
        );
    co_return value;
}

// Runs a coroutine on `target` and continues the caller on its own executor with its result. It is
// not interrupted by cancellation: what was begun on the core is ended there. (Boost 1.81 would
// also tell a coroutine of it that has ended in the meantime.)
template <class T>
Task<T> await_on(Executor target, Task<T> task) {
    constexpr boost::asio::use_awaitable_t<Executor> kAwait{};
    const boost::asio::cancellation_slot none;
    if constexpr (std::is_void_v<T>) {
        co_await boost::asio::co_spawn(
            target, std::move(task), boost::asio::bind_cancellation_slot(none, kAwait)
        );
    } else {
        auto value = co_await boost::asio::co_spawn(
            target, std::move(task), boost::asio::bind_cancellation_slot(none, kAwait)
        );
        co_return value;
    }
}

}  // namespace comfyd
