// How long nodes of a class take, learned from finished ones: what progress is weighed by. Kept by
// type of GPU, class and size of the work (by powers of two of workflow::node_work); of the latest
// few the median counts. What is not known is taken from another size of the same class, then from
// the work alone. Owned by the fleet, shared by the attempts on all workers: any thread. Bounded:
// what was learned longest ago is forgotten.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/lru_map.hpp"
#include "base/mutex.hpp"
#include "base/recent_median.hpp"

namespace comfyd::fleet {

class NodeCosts {
public:
    NodeCosts() : NodeCosts(kClassesMax) {}
    explicit NodeCosts(std::size_t classes_max) : classes_(classes_max), gpu_types_(kGpuTypesMax) {}

    double seconds(std::string_view class_type, double work, std::string_view gpu_type) const;
    // Times that cannot be are ignored.
    void learn(std::string_view class_type, double work, std::string_view gpu_type, double seconds);

    // Rises with every time that was learned.
    std::uint64_t learned() const;

    json::object to_json() const;
    // Entries that are not as they should be are left out; Code::invalid_argument for a document of
    // another version.
    Result<> restore(const json::object& from);

private:
    static constexpr std::size_t kClassesMax = 8'192;
    static constexpr std::size_t kGpuTypesMax = 64;
    static constexpr std::size_t kRecent = 9;
    static constexpr std::size_t kRecentMany = 63;
    using Recent = RecentMedian<kRecent>;  // of log seconds per unit of work
    using Sizes = std::map<int, Recent>;   // by the power of two of the work

    static Sizes read_sizes(const json::value& from);

    mutable Mutex mutex_;
    LruMap<Sizes> classes_ COMFYD_GUARDED_BY(mutex_);  // by "gpu type\tclass"
    LruMap<RecentMedian<kRecentMany>> gpu_types_ COMFYD_GUARDED_BY(mutex_);
    std::uint64_t learned_ COMFYD_GUARDED_BY(mutex_) = 0;
};

// What is expected of each node of a prompt, for a ProgressTracker, and the place where the times
// that it really took are collected. Owned by one attempt.
class NodeTimes {
public:
    // Shares learned costs with other attempts; `costs` outlives it.
    NodeTimes(NodeCosts& costs, const json::object& prompt, std::string gpu_type);

    std::map<std::string, double, std::less<>> expected() const;
    // The worker is at this node now; empty: at none. `seconds`: of any steady clock.
    void at(const std::string& node, double seconds);

private:
    struct Node {
        std::string class_type;
        double work;
    };
    NodeCosts& costs_;
    std::string gpu_type_;
    std::map<std::string, Node, std::less<>> nodes_;
    std::string current_;
    double since_ = 0;
};

}  // namespace comfyd::fleet
