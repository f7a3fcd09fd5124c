// Notices when an executor is held up, how long and by what. A thread of its own sends it a beat
// every 10 ms; one that arrives late was held up. Meanwhile the thread reads what the watched one
// says that it does.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "base/mutex.hpp"
#include "base/task.hpp"

namespace comfyd {

// What the calling thread does from here to the end of the block, for whoever watches it. Not
// around a co_await: what runs in between would be blamed.
class NowDoing {
public:
    explicit NowDoing(const char* what) noexcept;  // a literal
    ~NowDoing();
    NowDoing(const NowDoing&) = delete;
    NowDoing& operator=(const NowDoing&) = delete;

private:
    const char* before_;
};

struct Stall {
    Millis length;
    const char* doing;  // what took the time, as NowDoing names it; empty: nobody said
};

class StallWatch {
public:
    static constexpr Millis kShortest{20};  // that is told

    // `tell` is called on the watched executor, which one thread runs, after each stall.
    StallWatch(Executor watched, std::function<void(const Stall&)> tell);
    ~StallWatch();  // stop()
    StallWatch(const StallWatch&) = delete;
    StallWatch& operator=(const StallWatch&) = delete;

    void start();
    // Before the watched thread ends. Beats that are under way tell nothing any more.
    void stop();
    // Sends a beat, or sees what keeps the last one. Called by the thread of start(); without it by
    // a test.
    void look();

private:
    struct Beat;
    void run();

    Executor watched_;
    std::shared_ptr<Beat> beat_;  // shared with the post that is under way
    Mutex mutex_;
    Condition stop_wanted_;
    bool is_stopping_ COMFYD_GUARDED_BY(mutex_) = false;
    std::thread thread_;
};

}  // namespace comfyd
