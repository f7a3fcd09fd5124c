// Looks after all bulks that are open: finds them in the store, has a Tender for each, tells these
// what becomes of jobs, and removes bulks that have been kept long enough. Of nodes that share a
// store one does it. Lives on one executor.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "base/task.hpp"
#include "bulk/tender.hpp"
#include "events/feed.hpp"

namespace comfyd::bulk {

struct KeeperOptions {
    TenderOptions tender{};
    int bulks_max = 256;  // looked after at a time; the others wait until one has ended
    Millis look_every{1'000};
    Millis kept_for = std::chrono::hours(24 * 30);  // from its end on
    std::function<bool()> is_ours{};                // whether this node does it; empty: always
};

class Keeper {
public:
    Keeper(TenderTools tools, KeeperOptions options);
    ~Keeper();

    void start();
    // What is under way stays with the jobs, for whoever looks after them next.
    Task<> stop();
    // Any thread: a bulk was made or changed.
    void wake(jobs::BulkId id);

private:
    Task<> keep();
    Task<> hand_over();
    Task<Result<>> look();
    Task<Result<>> sweep();
    Task<> tend(std::shared_ptr<Tender> tender);
    Task<> listen(std::shared_ptr<events::Feed> feed);

    TenderTools tools_;
    const KeeperOptions options_;
    std::shared_ptr<Signal> woken_;  // shared with what is posted
    std::map<jobs::BulkId, std::shared_ptr<Tender>> tenders_;
    bool is_woken_ = false;  // since it looked last
    bool is_listening_ = false;
    Time swept_at_{};
    std::unique_ptr<TaskGroup> main_;
    std::unique_ptr<TaskGroup> work_;  // while it is ours
};

}  // namespace comfyd::bulk
