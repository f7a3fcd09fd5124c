// Lets at most so many in at a time for each key (a tenant, say); the others wait in the order in
// which they came. So nobody takes all of what everybody shares.
//
// Any thread; each waits on its own executor. Outlives the passes that it gives.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/mutex.hpp"
#include "base/task.hpp"

namespace comfyd {

class Turnstile {
public:
    struct Limits {
        std::size_t inside_max = 1;    // for one key
        std::size_t waiting_max = 64;  // likewise
    };
    explicit Turnstile(Limits limits) : limits_(limits) {}
    Turnstile(const Turnstile&) = delete;
    Turnstile& operator=(const Turnstile&) = delete;

    // Whoever holds it is inside.
    class Pass {
    public:
        Pass(Turnstile& turnstile, std::string key)
            : turnstile_(&turnstile), key_(std::move(key)) {}
        Pass(Pass&& other) noexcept
            : turnstile_(std::exchange(other.turnstile_, nullptr)), key_(std::move(other.key_)) {}
        Pass& operator=(Pass&&) = delete;
        ~Pass() {
            if (turnstile_ != nullptr) {
                turnstile_->leave(key_);
            }
        }

    private:
        Turnstile* turnstile_;
        std::string key_;
    };

    // Code::queue_full when too many wait already, Code::cancelled when the calling task was.
    Task<Result<Pass>> enter(std::string key);

private:
    struct Waiter {
        explicit Waiter(Executor on) : executor(on), woken(on) {}
        Executor executor;
        Signal woken;
        bool let_in = false;  // guarded by the turnstile's mutex
    };
    struct Lane {
        std::size_t inside = 0;
        std::deque<std::shared_ptr<Waiter>> waiting;
    };

    // nullptr: inside.
    Result<std::shared_ptr<Waiter>> line_up(const std::string& key, Executor executor);
    bool is_let_in(const Waiter& waiter);
    // True when it was let in meanwhile.
    bool give_up(const std::string& key, const std::shared_ptr<Waiter>& waiter);
    void leave(const std::string& key);

    Limits limits_;
    Mutex mutex_;
    std::unordered_map<std::string, Lane> lanes_ COMFYD_GUARDED_BY(mutex_
    );  // only keys with somebody in
};

}  // namespace comfyd
