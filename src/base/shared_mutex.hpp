// A mutex that many may hold to read and one to write, which the compiler knows of, as it knows
// base/mutex.hpp: what it guards is read with either lock and changed with the second only.
#pragma once

#include <shared_mutex>

#include "base/mutex.hpp"

namespace comfyd {

class COMFYD_THREAD_SAFETY(capability("shared_mutex")) SharedMutex {
public:
    void lock() COMFYD_THREAD_SAFETY(acquire_capability()) { mutex_.lock(); }
    void unlock() COMFYD_THREAD_SAFETY(release_capability()) { mutex_.unlock(); }
    void lock_shared() COMFYD_THREAD_SAFETY(acquire_shared_capability()) { mutex_.lock_shared(); }
    void unlock_shared() COMFYD_THREAD_SAFETY(release_shared_capability()) {
        mutex_.unlock_shared();
    }

private:
    std::shared_mutex mutex_;
};

// Both hold it until their scope ends.
class COMFYD_THREAD_SAFETY(scoped_lockable) ReadLock {
public:
    explicit ReadLock(SharedMutex& mutex) COMFYD_THREAD_SAFETY(acquire_shared_capability(mutex))
        : mutex_(mutex) {
        mutex_.lock_shared();
    }
    ~ReadLock() COMFYD_THREAD_SAFETY(release_generic_capability()) { mutex_.unlock_shared(); }
    ReadLock(const ReadLock&) = delete;
    ReadLock& operator=(const ReadLock&) = delete;

private:
    SharedMutex& mutex_;
};

class COMFYD_THREAD_SAFETY(scoped_lockable) WriteLock {
public:
    explicit WriteLock(SharedMutex& mutex) COMFYD_THREAD_SAFETY(acquire_capability(mutex))
        : mutex_(mutex) {
        mutex_.lock();
    }
    ~WriteLock() COMFYD_THREAD_SAFETY(release_capability()) { mutex_.unlock(); }
    WriteLock(const WriteLock&) = delete;
    WriteLock& operator=(const WriteLock&) = delete;

private:
    SharedMutex& mutex_;
};

}  // namespace comfyd
