// Waiting for a coroutine outside of coroutines: what a program does at its start and end, and what
// tests do. Little of it is a template, because what Asio makes of a start takes long to compile.
#pragma once

#include <future>
#include <optional>
#include <utility>

#include <boost/asio/io_context.hpp>

#include "base/hop.hpp"
#include "base/task.hpp"

namespace comfyd {

// Runs the task on `executor`, whose context another thread runs. What it throws, get() throws.
std::future<void> start_task(Executor executor, Task<> task);
// Likewise, and blocks until the task has ended.
void wait_for(Executor executor, Task<> task);
// Runs the context here until nothing is left to do in it.
void run_task(boost::asio::io_context& context, Task<> task);

template <class T>
T wait_for(Executor executor, Task<T> task) {
    std::optional<T> value;
    wait_for(executor, await_into(value, std::move(task)));
    return std::move(*value);
}

template <class T>
T run_task(boost::asio::io_context& context, Task<T> task) {
    std::optional<T> value;
    run_task(context, await_into(value, std::move(task)));
    return std::move(*value);
}

}  // namespace comfyd
