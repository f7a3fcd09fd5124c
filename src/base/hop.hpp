// Crossing from one executor to another and back. A context must outlive the threads that post to
// it: a post is still inside the context for a moment after what it posted has run.
#pragma once

#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

#include <boost/asio/thread_pool.hpp>

#include "base/task.hpp"

namespace comfyd {

// Does `work` on `target` and continues the caller on its own executor. The work is not interrupted
// by cancellation.
Task<> work_on(Executor target, std::function<void()> work);
Task<> work_on(boost::asio::thread_pool::executor_type target, std::function<void()> work);

// Runs a coroutine on `target` and continues the caller on its own executor. It is not interrupted
// by cancellation: what was begun on the core is ended there.
Task<> await_on(Executor target, Task<> task);

// The same with a result. Little of each is a template: what Asio makes of a hop takes long to
// compile.
template <class Target, class Work>
Task<std::invoke_result_t<Work>> call_on(Target target, Work work) {
    std::optional<std::invoke_result_t<Work>> value;
    co_await work_on(target, [&work, &value] {
        Work there = std::move(work);  // what it holds is freed there, too
        value.emplace(there());
    });
    co_return std::move(*value);
}

template <class T>
Task<> await_into(std::optional<T>& value, Task<T> task) {
    auto made = co_await std::move(task);
    value.emplace(std::move(made));
}

template <class T>
Task<T> await_on(Executor target, Task<T> task) {
    std::optional<T> value;
    co_await await_on(target, await_into(value, std::move(task)));
    co_return std::move(*value);
}

}  // namespace comfyd
