// What nodes share, as this one has read it last: its store counts the changes, and all of it is
// read again where that count has grown, by whoever asks and every second. An older state never
// follows a newer one.
//
// Any thread, but for start() and stop().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/assert.hpp"
#include "base/log.hpp"
#include "base/mutex.hpp"
#include "base/on_executor.hpp"
#include "base/task.hpp"

namespace comfyd {

template <class State>
class Mirror {
public:
    using StatePtr = std::shared_ptr<const State>;
    struct Reading {
        std::uint64_t changes = 0;  // that had been made when it was read, or fewer
        StatePtr state;
    };
    struct Source {
        std::string what{};  // for the log
        std::function<Task<Result<std::uint64_t>>()> changes{};
        std::function<Task<Result<Reading>>()> read{};
        // Told of each state, one after the other; nobody learns of it before.
        std::function<void(const State&)> taken{};
        // Done each second, after what was changed is known.
        std::function<Task<>()> then{};
    };

    Mirror(Executor executor, Source source, StatePtr first)
        : executor_(executor), source_(std::move(source)), now_(std::move(first)) {}

    StatePtr now() const {
        const Lock lock(mutex_);
        return now_;
    }

    Task<Result<>> refresh() {
        auto changes = co_await source_.changes();
        if (!changes) {
            co_return fail(std::move(changes.error()));
        }
        if (knows(*changes)) {
            co_return Result<>();
        }
        auto reading = co_await source_.read();
        if (!reading) {
            co_return fail(std::move(reading.error()));
        }
        take(std::move(*reading));
        co_return Result<>();
    }

    // On the executor: refresh() every second.
    void start() {
        COMFYD_ON(executor_);
        COMFYD_ASSERT(!group_);
        group_.emplace(executor_);
        group_->spawn("a mirror of what nodes share", keep_up());
    }
    Task<> stop() {
        COMFYD_ON(executor_);
        if (group_) {
            group_->cancel();
            co_await group_->join();
            group_.reset();
        }
    }

private:
    static constexpr Millis kLookEvery{1'000};

    bool knows(std::uint64_t changes) const {
        const Lock lock(mutex_);
        return known_ && *known_ >= changes;
    }
    void take(Reading reading) {
        const Lock lock(mutex_);
        if (!known_ || *known_ <= reading.changes) {  // else another has read later
            known_ = reading.changes;
            now_ = std::move(reading.state);
            if (source_.taken) {
                source_.taken(*now_);
            }
        }
    }

    Task<> keep_up() {
        bool go_on = true;
        bool has_failed = false;
        while (go_on) {
            auto refreshed = co_await refresh();
            if (!refreshed && !has_failed) {
                log::warning("cannot read " + source_.what, {{"error", refreshed.error().message}});
            }
            has_failed = !refreshed;
            if (refreshed && source_.then) {
                co_await source_.then();
            }
            go_on = co_await sleep_for(kLookEvery);
        }
    }

    Executor executor_;
    const Source source_;
    std::optional<TaskGroup> group_;  // from start() to stop()
    mutable Mutex mutex_;             // over taking, so that the order is the same for all
    std::optional<std::uint64_t> known_ COMFYD_GUARDED_BY(mutex_);  // changes
    StatePtr now_ COMFYD_GUARDED_BY(mutex_);
};

}  // namespace comfyd
