// Running a coroutine on another executor for a caller that may be cancelled meanwhile.
#pragma once

#include <exception>
#include <memory>
#include <utility>

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/task.hpp"

namespace comfyd {
namespace detail {

// Owned by the executor that the call runs on: only there it is told to stop, so never after its
// end.
struct CancellableCall {
    boost::asio::cancellation_signal stop;
    bool has_ended = false;
};

// Cancellation is a value here as in a TaskGroup.
template <class T>
Task<T> run_cancellable(Task<T> task) {
    co_await boost::asio::this_coro::throw_if_cancelled(false);
    auto value = co_await std::move(task);
    co_return value;
}

}  // namespace detail

// As await_on(), but the coroutine is told when the caller is cancelled. The caller goes on when it
// has ended all the same: it may use what the caller owns.
template <class T>
Task<T> await_cancellable_on(Executor target, Task<T> task) {
    namespace asio = boost::asio;
    auto initiate = [](auto handler, Executor where, Task<T> job) {
        const auto call = std::make_shared<detail::CancellableCall>();
        const auto home = asio::get_associated_executor(handler);
        if (auto slot = asio::get_associated_cancellation_slot(handler); slot.is_connected()) {
            slot.assign([where, call](asio::cancellation_type type) {
                asio::post(where, [call, type] {
                    if (!call->has_ended) {
                        call->stop.emit(type);
                    }
                });
            });
        }
        auto ended = [call,
                      home,
                      guard = asio::make_work_guard(home),
                      handler = std::move(handler)](std::exception_ptr error, T value) mutable {
            call->has_ended = true;
            asio::post(
                home,
                [handler = std::move(handler), error, value = std::move(value)]() mutable {
                    std::move(handler)(error, std::move(value));
                }
            );
        };
        asio::post(where, [where, call, job = std::move(job), ended = std::move(ended)]() mutable {
            asio::co_spawn(
                where,
                detail::run_cancellable(std::move(job)),
                asio::bind_cancellation_slot(call->stop.slot(), std::move(ended))
            );
        });
    };
    constexpr asio::use_awaitable_t<Executor> kAwait{};
    auto value = co_await asio::
        async_initiate<const asio::use_awaitable_t<Executor>, void(std::exception_ptr, T)>(
            std::move(initiate), kAwait, std::move(target), std::move(task)
        );
    co_return value;
}

}  // namespace comfyd
