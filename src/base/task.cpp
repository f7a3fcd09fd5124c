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
#include "base/virtual_time.hpp"

namespace comfyd {

namespace asio = boost::asio;

using Timer = asio::basic_waitable_timer<
    std::chrono::steady_clock,
    asio::wait_traits<std::chrono::steady_clock>,
    Executor>;

namespace {

constexpr asio::use_awaitable_t<Executor> kAwait{};
constexpr Millis kForEver = Millis::max();

// Cancellation is a value in this program, not an exception: waits return it.
Task<> run_root(Task<> task) {
    co_await asio::this_coro::throw_if_cancelled(false);
    co_await std::move(task);
}

}  // namespace

struct VirtualTime::State {
    struct Wait {
        Timer* timer;
        bool is_over = false;
    };
    Time now;
    std::multimap<Time, Wait*> waits{};
};

class VirtualTime::Service final : public asio::execution_context::service {
public:
    static asio::execution_context::id id;

    explicit Service(asio::execution_context& context) : service(context) {}
    void shutdown() override {}

    std::shared_ptr<State> state;
};
asio::execution_context::id VirtualTime::Service::id;

VirtualTime::VirtualTime(asio::io_context& context, Time start)
    : state_(std::make_shared<State>(start)) {
    asio::use_service<Service>(context).state = state_;
}

Time VirtualTime::now() const {
    return state_->now;
}

std::chrono::steady_clock::time_point steady_time_of(asio::io_context& context) {
    if (!asio::has_service<VirtualTime::Service>(context)) {
        return std::chrono::steady_clock::now();
    }
    const auto& time = asio::use_service<VirtualTime::Service>(context).state;
    return std::chrono::steady_clock::time_point(time->now.time_since_epoch());
}

std::optional<Time> VirtualTime::next() const {
    return state_->waits.empty() ? std::nullopt : std::optional(state_->waits.begin()->first);
}

void VirtualTime::advance_to(Time then) {
    COMFYD_ASSERT(then >= state_->now);
    state_->now = then;
    auto& waits = state_->waits;
    while (!waits.empty() && waits.begin()->first <= then) {
        State::Wait* due = waits.begin()->second;
        waits.erase(waits.begin());
        due->is_over = true;
        due->timer->cancel();
    }
}

namespace {

// A wait of some length, in the time of its context. Lives in the frame of the coroutine that
// waits.
class Wait {
public:
    Wait(Executor executor, Millis duration) : timer(executor, Timer::time_point::max()) {
        if (duration == kForEver) {
            return;
        }
        if (!asio::has_service<VirtualTime::Service>(executor.context())) {
            timer.expires_after(duration);
            return;
        }
        time_ = asio::use_service<VirtualTime::Service>(executor.context()).state;
        entry_ = time_->waits.emplace(time_->now + duration, &virtual_);
    }
    ~Wait() {
        if (time_ && !virtual_.is_over) {
            time_->waits.erase(entry_);
        }
    }
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

    // After it: was it long enough, or was the timer cancelled before?
    bool is_over(const boost::system::error_code& error) const {
        return !error || virtual_.is_over;
    }

    Timer timer;

private:
    VirtualTime::State::Wait virtual_{&timer};
    std::shared_ptr<VirtualTime::State> time_;  // null: it is the real one
    std::multimap<Time, VirtualTime::State::Wait*>::iterator entry_;
};

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

Task<> TaskGroup::join_or_cancel() {
    auto state = state_;
    while (!state->running.empty()) {
        const bool stop = co_await is_cancelled();
        if (stop && !state->cancelled) {
            cancel();
        }
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
    Wait wait(executor, duration);
    boost::system::error_code error;
    co_await wait.timer.async_wait(asio::redirect_error(kAwait, error));
    co_return wait.is_over(error);
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
    Wait wait(state->executor, duration);
    const auto entry = state->waiters.insert(state->waiters.end(), &wait.timer);
    boost::system::error_code error;
    co_await wait.timer.async_wait(asio::redirect_error(kAwait, error));
    // notify() took our entry out before it cancelled the timer; a timeout or a cancelled task did
    // not.
    const auto still_there = std::find(state->waiters.begin(), state->waiters.end(), &wait.timer);
    if (still_there == state->waiters.end()) {
        co_return true;
    }
    state->waiters.erase(entry);
    co_return false;
}

Task<bool> Signal::wait() {
    return wait_for(kForEver);
}

}  // namespace comfyd
