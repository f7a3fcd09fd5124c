// A mutex that the compiler knows of: with COMFYD_GUARDED_BY at what it guards, clang refuses code
// that touches that without holding it (-Wthread-safety, an error where tests are built).
//
// Few things need one: state is owned by one executor where it can be (docs/architecture.md,
// "Threads").
#pragma once

#include <condition_variable>
#include <mutex>
#include <utility>

#if defined(__clang__)
#define COMFYD_THREAD_SAFETY(x) __attribute__((x))
#else
#define COMFYD_THREAD_SAFETY(x)
#endif
#define COMFYD_GUARDED_BY(mutex) COMFYD_THREAD_SAFETY(guarded_by(mutex))
// Of a function: its caller holds the mutex, or must not.
#define COMFYD_REQUIRES(...) COMFYD_THREAD_SAFETY(requires_capability(__VA_ARGS__))
#define COMFYD_EXCLUDES(...) COMFYD_THREAD_SAFETY(locks_excluded(__VA_ARGS__))

namespace comfyd {

class COMFYD_THREAD_SAFETY(capability("mutex")) Mutex {
public:
    void lock() COMFYD_THREAD_SAFETY(acquire_capability()) { mutex_.lock(); }
    void unlock() COMFYD_THREAD_SAFETY(release_capability()) { mutex_.unlock(); }

private:
    friend class Lock;
    std::mutex mutex_;
};

// Holds it until its scope ends, or until unlock().
class COMFYD_THREAD_SAFETY(scoped_lockable) Lock {
public:
    explicit Lock(Mutex& mutex) COMFYD_THREAD_SAFETY(acquire_capability(mutex))
        : lock_(mutex.mutex_) {}
    ~Lock() COMFYD_THREAD_SAFETY(release_capability()) = default;
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

    void unlock() COMFYD_THREAD_SAFETY(release_capability()) { lock_.unlock(); }
    void lock() COMFYD_THREAD_SAFETY(acquire_capability()) { lock_.lock(); }

private:
    friend class Condition;
    std::unique_lock<std::mutex> lock_;
};

// The lock is held again when a wait ends. A predicate that looks at guarded things says so:
// [this]() COMFYD_REQUIRES(mutex_) { … }.
class Condition {
public:
    void notify_one() { condition_.notify_one(); }
    void notify_all() { condition_.notify_all(); }
    template <class Predicate>
    void wait(Lock& lock, Predicate is_so) {
        condition_.wait(lock.lock_, std::move(is_so));
    }
    template <class Duration, class Predicate>
    bool wait_for(Lock& lock, Duration longest, Predicate is_so) {
        return condition_.wait_for(lock.lock_, longest, std::move(is_so));
    }

private:
    std::condition_variable condition_;
};

}  // namespace comfyd
