#include "base/stall_watch.hpp"

#include <pthread.h>

#include <utility>

#include <boost/asio/post.hpp>

#include "base/assert.hpp"
#include "base/virtual_time.hpp"

namespace comfyd {
namespace {

constexpr Millis kEvery{10};

thread_local std::atomic<const char*> what_is_done{""};

}  // namespace

NowDoing::NowDoing(const char* what) noexcept
    : before_(what_is_done.load(std::memory_order_relaxed)) {
    what_is_done.store(what, std::memory_order_relaxed);
}

NowDoing::~NowDoing() {
    what_is_done.store(before_, std::memory_order_relaxed);
}

struct StallWatch::Beat {
    explicit Beat(std::function<void(const Stall&)> to_tell) : tell(std::move(to_tell)) {}

    void arrive(std::chrono::steady_clock::time_point now) {
        watched_says.store(&what_is_done);
        const auto late = std::chrono::floor<Millis>(now - sent_at);
        if (late >= kShortest && !is_stopped.load()) {
            tell({late, doing.load()});
        }
        is_under_way.store(false);
    }

    const std::function<void(const Stall&)> tell;
    std::chrono::steady_clock::time_point sent_at;  // written while none is under way
    std::atomic<bool> is_under_way{false};
    std::atomic<bool> is_stopped{false};
    // Of the watched thread; null until its first beat.
    std::atomic<const std::atomic<const char*>*> watched_says{nullptr};
    std::atomic<const char*> doing{""};  // at the latest look that found something
};

StallWatch::StallWatch(Executor watched, std::function<void(const Stall&)> tell)
    : watched_(watched), beat_(std::make_shared<Beat>(std::move(tell))) {}

StallWatch::~StallWatch() {
    stop();
}

void StallWatch::start() {
    COMFYD_ASSERT(!thread_.joinable());
    thread_ = std::thread([this] { run(); });
    pthread_setname_np(thread_.native_handle(), "stall-watch");
}

void StallWatch::stop() {
    beat_->is_stopped.store(true);
    {
        const Lock lock(mutex_);
        is_stopping_ = true;
    }
    stop_wanted_.notify_all();
    if (thread_.joinable()) {
        thread_.join();
    }
}

void StallWatch::run() {
    Lock lock(mutex_);
    while (!is_stopping_) {
        look();
        stop_wanted_.wait_for(lock, kEvery, [this]() COMFYD_REQUIRES(mutex_) {
            return is_stopping_;
        });
    }
}

void StallWatch::look() {
    if (beat_->is_under_way.load()) {
        const auto* says = beat_->watched_says.load();
        const char* doing = says == nullptr ? "" : says->load(std::memory_order_relaxed);
        if (*doing != '\0') {
            beat_->doing.store(doing);
        }
        return;
    }
    auto& context = watched_.context();
    beat_->sent_at = steady_time_of(context);
    beat_->doing.store("");
    beat_->is_under_way.store(true);
    boost::asio::post(watched_, [beat = beat_, &context] {
        beat->arrive(steady_time_of(context));
    });
}

}  // namespace comfyd
