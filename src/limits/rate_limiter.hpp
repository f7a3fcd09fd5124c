// How many requests a minute each tenant and each key may make. One step decides over both; among
// several nodes it is made where they share it, and where that cannot be reached each node allows
// its part. Who has no limit costs a look into the book and nothing else. Any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "auth/authenticator.hpp"
#include "base/error.hpp"
#include "base/task.hpp"
#include "base/time.hpp"
#include "limits/book.hpp"
#include "limits/meter.hpp"

namespace comfyd::limits {

// A meter that nodes have in common.
class SharedMeter {
public:
    virtual ~SharedMeter() = default;
    // nullopt: it cannot be asked now. By the clock that they share.
    virtual Task<std::optional<Weighed>> take(
        std::string tenant, std::vector<Bucket> buckets, double cost
    ) = 0;
};

// What a request asks of the limits of its caller.
struct Demand {
    struct Limit {
        std::string_view policy;  // "minute": the tenant's, "key": the key's
        std::string sender;
        double per_minute = 0;
    };
    std::string tenant;
    std::vector<Limit> limits;
    double weight = 1;
    double running_max = 0;  // to be told; 0: none
};

struct Verdict {
    bool allowed = true;
    double limit = 0;                // of the limit that is nearest
    std::int64_t remaining = 0;      // of it
    std::int64_t retry_after_s = 0;  // where it is not allowed
    // The fields RateLimit-Policy and RateLimit.
    std::string policies;
    std::string state;

    // REQUIRES: not allowed. Code::rate_limited with the verdict in its details.
    Error error() const;
};

class RateLimiter {
public:
    // All outlive it. `shared` nullptr: there is none.
    RateLimiter(Book& book, Clock& clock, SharedMeter* shared = nullptr)
        : book_(book), clock_(clock), shared_(shared) {}

    // That there are, this one too: a node that decides alone allows its part.
    void set_nodes(std::size_t nodes) { nodes_ = nodes; }

    // nullopt: nothing limits this request.
    std::optional<Demand> demand_of(const auth::Caller& caller, double weight) const;
    Task<Verdict> take(Demand demand);

    struct Counts {
        std::uint64_t refused = 0;
        std::uint64_t alone = 0;  // decided here because the shared meter was away
    };
    Counts counts() const { return {refused_, alone_}; }

private:
    Book& book_;
    Clock& clock_;
    SharedMeter* shared_;
    Meter meter_;
    std::atomic<std::size_t> nodes_ = 1;
    std::atomic<std::uint64_t> refused_ = 0;
    std::atomic<std::uint64_t> alone_ = 0;
};

}  // namespace comfyd::limits
