// The coroutine type of the whole program, and the few ways to start and join coroutines.
//
// Rules (CONTRIBUTING.md has them all): one co_await per statement, parameters by value or
// references to objects that outlive the coroutine, no capturing lambda coroutines, and nothing
// runs detached: every task belongs to a TaskGroup.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include "base/error.hpp"
#include "base/time.hpp"

namespace comfyd {

// A concrete executor: the type-erased one costs 8 % of a request.
using Executor = boost::asio::io_context::executor_type;

template <class T = void>
using Task = boost::asio::awaitable<T, Executor>;

// Owns the coroutines that are started in it. All of its tasks run on one executor; every member
// function must be called there.
class TaskGroup {
public:
    explicit TaskGroup(Executor executor);
    ~TaskGroup();  // REQUIRES: drained (join() returned), or nothing was ever spawned
    TaskGroup(const TaskGroup&) = delete;
    TaskGroup& operator=(const TaskGroup&) = delete;

    // An exception that leaves a task is logged as an internal error with `name`; it ends that task
    // only.
    void spawn(const char* name, Task<> task);
    // Asks every running task to stop: its pending wait ends with Code::cancelled. Later spawns are
    // cancelled at once.
    void cancel();
    // Returns when no task is left, also where the joining task is cancelled.
    Task<> join();
    // The same; the tasks are cancelled when the joining one is.
    Task<> join_or_cancel();
    std::size_t size() const;

private:
    struct State;
    std::shared_ptr<State> state_;  // shared with completion handlers that may outlive the group
};

// True once the group of the calling task was cancelled. Loops ask it, or stop when a wait says so.
Task<bool> is_cancelled();

// Waits; false when the task was cancelled, before or meanwhile.
Task<bool> sleep_for(Millis duration);

// Continues the calling coroutine on `executor`, until its next wait brings it back to its own one.
Task<> resume_on(Executor executor);

// A flag that tasks of one executor can wait for. notify() wakes all who wait now.
class Signal {
public:
    explicit Signal(Executor executor);
    ~Signal();
    void notify();
    // false: timed out or cancelled.
    Task<bool> wait_for(Millis duration);
    Task<bool> wait();

private:
    struct State;
    std::shared_ptr<State> state_;  // shared with the tasks that wait
};

}  // namespace comfyd
