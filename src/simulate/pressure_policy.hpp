// SwarmUI's rule, as a reference: requests are looked at in the order in which they came. One whose
// model a free backend has is run there. For any other, the model with the highest pressure (10 x
// waiting requests + seconds since the first of them came) that is not being loaded already is
// loaded on the free backend that has been free longest. A pressure younger than 1.5 s waits,
// unless only one backend is free. Priorities and tenants do not count.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>

#include "simulate/policy.hpp"

namespace comfyd::simulate {

class PressurePolicy final : public Policy {
public:
    explicit PressurePolicy(const Scene& scene);

    void add(std::uint32_t job, const std::vector<std::uint32_t>& failed_on) override;
    std::optional<Action> next(std::int64_t now_ms) override;
    std::optional<std::int64_t> wake_at() const override { return wake_at_; }
    void finished(const Action& action, double gpu_seconds, std::int64_t now_ms) override;
    void set_up(std::uint32_t worker, bool up) override;
    std::size_t waiting() const override { return order_.size(); }

private:
    static constexpr std::uint32_t kNone = ~std::uint32_t{0};

    // A set of models that some profiles need. For SwarmUI that is the checkpoint.
    struct Kind {
        std::uint32_t profile = 0;  // one of those that need it
        std::set<std::uint32_t> jobs;
        std::int64_t first_at_ms = 0;
        bool loading = false;
        std::set<std::pair<std::int64_t, std::uint32_t>> free;  // backends that have it, by release
    };
    struct Backend {
        std::uint32_t kind = kNone;
        std::int64_t released_ms = 0;
        bool up = true;
    };

    std::optional<Action> load_highest(std::int64_t now_ms);
    std::uint32_t highest_pressure(std::int64_t now_ms) const;
    std::optional<std::uint32_t> next_warm(std::uint32_t from) const;
    Action run(std::uint32_t kind, std::uint32_t job);
    void take(std::uint32_t worker);
    void release(std::uint32_t worker);

    const Trace& trace_;
    std::vector<std::uint32_t> kind_of_profile_;
    std::vector<Kind> kinds_;
    std::vector<Backend> backends_;
    std::set<std::uint32_t> order_;                          // jobs that wait, as they came
    std::set<std::uint32_t> wanted_;                         // kinds with waiting jobs
    std::set<std::pair<std::int64_t, std::uint32_t>> free_;  // by release
    std::uint32_t looked_at_ = 0;  // in this round: requests before this one
    std::optional<std::int64_t> wake_at_;
};

}  // namespace comfyd::simulate
