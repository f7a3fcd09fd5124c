// Something elsewhere that this process needs and that is left alone while it is away: a circuit
// breaker (base/circuit_breaker.hpp) with a name, which any thread may ask. While it is half-open
// one call is let through at a time. Its name shows in /metrics.
//
// Whoever cannot refuse (somebody who looks for it in the background, a write that was promised
// some patience) asks no pass and only says what came of it.
#pragma once

#include <optional>
#include <string>

#include "base/circuit_breaker.hpp"
#include "base/mutex.hpp"
#include "base/steady_clock.hpp"

namespace comfyd {

class Dependency {
public:
    // `clock` outlives it.
    Dependency(
        std::string name,
        CircuitBreaker::Limits limits,
        const Clock& clock = SteadyClock::of_process()
    );

    const std::string& name() const { return name_; }
    CircuitBreaker::State state() const COMFYD_EXCLUDES(mutex_);
    // Until it may be asked; nothing where it may, or somebody does so just now.
    Millis wait() const COMFYD_EXCLUDES(mutex_);

    // True: it is closed, or open, by this and was not before.
    bool succeeded() COMFYD_EXCLUDES(mutex_);
    bool failed() COMFYD_EXCLUDES(mutex_);

    // Whoever holds it may ask. One that tries it lets nobody else do so until it is destroyed.
    class Pass {
    public:
        Pass(Pass&& other) noexcept;
        Pass& operator=(Pass&&) = delete;
        ~Pass();

    private:
        friend class Dependency;
        Pass(Dependency& of, bool is_try) : of_(&of), is_try_(is_try) {}
        Dependency* of_;
        bool is_try_;
    };
    // Nullopt: it rests, or somebody finds out now whether it is back.
    std::optional<Pass> admit() COMFYD_EXCLUDES(mutex_);

private:
    void end_try() COMFYD_EXCLUDES(mutex_);

    const std::string name_;
    const Clock& clock_;
    mutable Mutex mutex_;
    CircuitBreaker breaker_ COMFYD_GUARDED_BY(mutex_);
    bool is_tried_ COMFYD_GUARDED_BY(mutex_) = false;
};

}  // namespace comfyd
