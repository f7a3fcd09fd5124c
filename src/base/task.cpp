#include "base/task.hpp"

#include <algorithm>
#include <exception>
#include <list>
#include <utility>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/assert.hpp"
#include "base/log.hpp"

namespace comfyd {

namespace asio = boost::asio;

using Timer = asio::basic_waitable_timer<
    std::chrono::steady_clock,
    asio::wait_traits<std::chrono::steady_clock>,
    Executor>;

namespace {

constexpr asio::use_awaitable_t<Executor> kAwait{};

// Cancellation is a value in this program, not an exception: waits return it.
Task<> run_root(Task<> task) {
    co_await asio::this_coro::throw_if_cancelled(false);
    co_await std::move(task);
}

}  // namespace

struct TaskGroup::State {
    explicit State(Executor group_executor) : executor(group_executor), empty(group_executor) {
        empty.expires_at(Timer::time_point::max());
    }
    Executor executor;
    std::list<asio::cancellation_signal> running;
    Timer empty;  // cancelled when the last task ends
    bool cancelled = false;
};

TaskGroup::TaskGroup(Executor executor) : state_(std::make_shared<State>(executor)) {}

TaskGroup::~TaskGroup() {
    COMFYD_ASSERT(state_->running.empty());
}

void TaskGroup::spawn(const char* name, Task<> task) {
    auto state = state_;
    const auto entry = state->running.emplace(state->running.end());
    asio::co_spawn(
        state->executor,
        run_root(std::move(task)),
        asio::bind_cancellation_slot(
            entry->slot(),
            [state, entry, name](std::exception_ptr error) {
                state->running.erase(entry);
                if (state->running.empty()) {
                    state->empty.cancel();
                }
                if (error) {
                    try {
                        std::rethrow_exception(error);
                    } catch (const std::exception& exception) {
                        log::error("task failed", {{"task", name}, {"error", exception.what()}});
                    } catch (...) {
                        log::error("task failed", {{"task", name}, {"error", "unknown exception"}});
                    }
                }
            }
        )
    );
    if (state->cancelled) {
        entry->emit(asio::cancellation_type::terminal);
    }
}

void TaskGroup::cancel() {
    state_->cancelled = true;
    // Posted, because a task that ends at once would change the list that we walk.
    for (auto& signal : state_->running) {
        asio::post(state_->executor, [state = state_, target = &signal] {
            for (auto& running : state->running) {
                if (&running == target) {
                    running.emit(asio::cancellation_type::terminal);
                    return;
                }
            }
        });
    }
}

Task<> TaskGroup::join() {
    auto state = state_;
    // A cancellation of the joining task ends one wait, not the loop: the tasks may use what the
    // joiner owns.
    while (!state->running.empty()) {
        boost::system::error_code ignored;
        co_await state->empty.async_wait(asio::redirect_error(kAwait, ignored));
        state->empty.expires_at(Timer::time_point::max());
    }
}

std::size_t TaskGroup::size() const {
    return state_->running.size();
}

Task<bool> is_cancelled() {
    const auto state = co_await asio::this_coro::cancellation_state;
    co_return state.cancelled() != asio::cancellation_type::none;
}

Task<bool> sleep_for(Millis duration) {
    const bool stop = co_await is_cancelled();
    if (stop) {
        co_return false;
    }
    const auto executor = co_await asio::this_coro::executor;
    Timer timer(executor, duration);
    boost::system::error_code error;
    co_await timer.async_wait(asio::redirect_error(kAwait, error));
    co_return !error;
}

Task<> resume_on(Executor executor) {
    // Bound: otherwise the coroutine would be handed straight back to the executor it was spawned
    // on.
    co_await asio::post(asio::bind_executor(executor, kAwait));
}

struct Signal::State {
    explicit State(Executor signal_executor) : executor(signal_executor) {}
    Executor executor;
    std::list<Timer*> waiters;  // each lives in the frame of its wait_for()
};

Signal::Signal(Executor executor) : state_(std::make_shared<State>(executor)) {}
Signal::~Signal() {
    notify();
}

void Signal::notify() {
    auto waiters = std::exchange(state_->waiters, {});
    for (Timer* timer : waiters) {
        timer->cancel();
    }
}

Task<bool> Signal::wait_for(Millis duration) {
    auto state = state_;  // the signal may be destroyed while we wait
    const bool stop = co_await is_cancelled();
    if (stop) {
        co_return false;
    }
    Timer timer(state->executor, duration);
    const auto entry = state->waiters.insert(state->waiters.end(), &timer);
    boost::system::error_code error;
    co_await timer.async_wait(asio::redirect_error(kAwait, error));
    // notify() took our entry out before it cancelled the timer; a timeout or a cancelled task did
    // not.
    const auto still_there = std::find(state->waiters.begin(), state->waiters.end(), &timer);
    if (still_there == state->waiters.end()) {
        co_return true;
    }
    state->waiters.erase(entry);
    co_return false;
}

Task<bool> Signal::wait() {
    return wait_for(std::chrono::hours(24 * 365));
}

}  // namespace comfyd
