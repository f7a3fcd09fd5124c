#include "base/supervisor.hpp"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.hpp"

namespace comfyd {

Supervisor::Supervisor(
    Executor executor, ChildCommand command, SupervisorOptions options, std::function<void()> ended
)
    : executor_(executor),
      command_(std::move(command)),
      options_(options),
      ended_(std::move(ended)),
      changed_(executor) {}

Supervisor::~Supervisor() = default;

void Supervisor::start(TaskGroup& group) {
    running_ = true;
    group.spawn("child process", run());
}

void Supervisor::end_child() {
    if (child_) {
        ended_by_us_ = true;
        child_->signal(SIGKILL);
    }
}

Task<> Supervisor::stop() {
    stopping_ = true;
    changed_.notify();
    if (child_) {
        child_->signal(SIGTERM);
    }
    while (running_) {
        const bool changed = co_await changed_.wait_for(options_.grace);
        if (!changed && child_) {
            child_->signal(SIGKILL);
        }
        const bool cancelled = co_await is_cancelled();
        if (cancelled) {
            co_return;
        }
    }
}

Task<> Supervisor::run() {
    bool go_on = true;
    while (go_on) {
        co_await run_once();
        if (!stopping_) {
            co_await pause();
        }
        const bool cancelled = co_await is_cancelled();
        go_on = !cancelled && !stopping_;
    }
    running_ = false;
    changed_.notify();
}

Task<> Supervisor::run_once() {
    auto started = ChildProcess::start(executor_, command_);
    if (!started) {
        ++short_lives_;
        log::error("a child process does not start", {{"error", started.error().message}});
        co_return;
    }
    child_ = std::move(*started);
    ended_by_us_ = false;
    const auto since = std::chrono::steady_clock::now();
    const std::string end = co_await child_->wait();
    const pid_t pid = child_->pid();
    child_.reset();
    if (end.empty() || stopping_) {
        co_return;
    }
    ++ends_;
    const bool steady = std::chrono::steady_clock::now() - since >= options_.steady_after;
    short_lives_ = steady || ended_by_us_ ? 0 : short_lives_ + 1;
    log::warning(
        "a child process has ended",
        {{"process", command_.name}, {"pid", pid}, {"end", end}, {"by_us", ended_by_us_}}
    );
    ended_();
}

Task<> Supervisor::pause() {
    if (short_lives_ == 0) {
        co_return;
    }
    constexpr int kDoublingsMax = 16;
    const auto pause = options_.pause_min * (1 << std::min(short_lives_ - 1, kDoublingsMax));
    co_await changed_.wait_for(std::min<Millis>(pause, options_.pause_max));
}

}  // namespace comfyd
