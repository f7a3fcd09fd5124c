// What other nodes want to hear of, by what they said of it. It is forgotten unless they say it
// again, so that a node that is gone costs nothing. Lives on the core executor.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/id.hpp"
#include "cluster/letter.hpp"
#include "events/notice.hpp"

namespace comfyd::cluster {

class Audience {
public:
    using Ticks = std::chrono::steady_clock::time_point;

    static constexpr Millis kInterestLife{7'000};

    // How far the node has been told, where feeds of it are to be filled.
    std::optional<Place> hear(const NodeId& node, Interest interest, Ticks now);
    void forget_silent(Ticks now);

    bool wants_progress(const jobs::Job& job) const;
    bool wants_worker_messages(const jobs::Job& job) const;

    // Who wants the notice, each with the place that it has among all that was told to them.
    struct Wanted {
        std::vector<std::pair<NodeId, Place>> by_feeds;
        std::vector<std::pair<NodeId, Place>> by_watchers;  // alone
    };
    Wanted wanted(const jobs::Job& job, const events::Notice& notice);

    std::size_t size() const { return nodes_.size(); }

private:
    struct Node {
        std::vector<FeedInterest> feeds{};
        std::unordered_set<JobId> watched{};
        bool previews = false;
        Ticks expires{};
        Place place{};
    };

    template <class Wants>
    bool any_feed(const jobs::Job& job, Wants wants) const;

    std::map<NodeId, Node> nodes_;
    std::uint64_t last_stream_ = 0;
};

// Whether the ledger has what the notice tells.
bool is_stored(const events::Notice& notice);

}  // namespace comfyd::cluster
