// What one address may do before anybody knows who asks: a block list, requests that show no good
// credentials, and wrong keys, which cost ever longer waits. Whoever has shown a good credential
// from an address is not held up there by what others do from it. On loopback, where there are only
// you and your proxy, nothing is limited. Everything that it remembers is bounded. Any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/lru_map.hpp"
#include "base/mutex.hpp"
#include "base/time.hpp"
#include "limits/meter.hpp"
#include "net/address_ranges.hpp"

namespace comfyd::limits {

struct AddressRules {
    net::AddressRanges blocked{};
    // Requests a minute without good credentials, from one address or /64 of IPv6, and four times
    // as many from a /48; 0: no limit.
    double strangers_per_minute = 0;
};

class AddressGuard {
public:
    static constexpr std::size_t kRememberedMax = 65'536;  // in each of its tables
    static constexpr int kFreeFailures = 5;
    static constexpr std::int64_t kWaitMaxMs = 900'000;

    // `clock` outlives it.
    AddressGuard(AddressRules rules, Clock& clock)
        : rules_(std::move(rules)), clock_(clock), strangers_(kRememberedMax) {}

    bool blocks(const std::string& address) const;

    // `credential`: what was shown, empty for nothing.
    // Before it is looked at: Code::rate_limited for those who have to wait.
    Result<> check(const std::string& address, std::string_view credential) const;
    // It was good.
    void welcome(const std::string& address, std::string_view credential);
    // It was not, or there was none.
    void turn_away(const std::string& address, std::string_view credential);

    struct Counts {
        std::uint64_t blocked = 0;
        std::uint64_t held_up = 0;  // by their address's rate or for wrong keys
    };
    Counts counts() const { return {blocked_, held_up_}; }
    std::size_t remembered() const;

private:
    struct Failures {
        int count = 0;
        std::int64_t until_ms = 0;
    };

    const AddressRules rules_;
    Clock& clock_;
    Meter strangers_;
    mutable std::atomic<std::uint64_t> blocked_ = 0;
    mutable std::atomic<std::uint64_t> held_up_ = 0;
    mutable Mutex mutex_;
    LruMap<Failures> failures_ COMFYD_GUARDED_BY(mutex_){kRememberedMax};
    // Until when, by address and credential.
    LruMap<std::int64_t> guests_ COMFYD_GUARDED_BY(mutex_){kRememberedMax};
};

}  // namespace comfyd::limits
