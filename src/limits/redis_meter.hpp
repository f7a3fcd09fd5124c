// The meter that nodes have in common: a script in a Redis server, which looks at all limits of a
// request and writes all or none, by the server's own clock. It has a connection of its own, so
// that requests do not queue up behind what nodes tell each other.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "cluster/redis/client.hpp"
#include "limits/rate_limiter.hpp"

namespace comfyd::limits {

class RedisMeter final : public SharedMeter {
public:
    // An answer that takes longer is not waited for: the node decides alone.
    static constexpr Millis kPatience{250};

    // Nodes of the same `cluster` have one.
    RedisMeter(Executor executor, cluster::redis::Url url, const std::string& cluster);

    // On its executor.
    void start() { client_.start(); }
    Task<> stop() { return client_.stop(); }

    // Any executor.
    Task<std::optional<Weighed>> take(std::string tenant, std::vector<Bucket> buckets, double cost)
        override;
    bool is_up() const { return is_up_; }
    CircuitBreaker::State breaker() const { return client_.breaker(); }

private:
    using Words = std::vector<std::string>;

    Task<std::optional<Weighed>> ask(std::string tenant, std::vector<Bucket> buckets, double cost);
    Task<Result<cluster::redis::Reply>> run_script(Words words);
    Task<Result<>> load_script(Deadline deadline);

    const Executor executor_;
    const std::string prefix_;
    std::atomic<bool> is_up_ = false;
    std::string script_;  // its name at the server; of the executor
    cluster::redis::Client client_;
};

}  // namespace comfyd::limits
