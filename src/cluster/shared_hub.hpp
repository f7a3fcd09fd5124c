// The hub of a node among others: those who listen here hear what other nodes publish, and other
// nodes hear what is published here, as far as somebody there listens.
//
// The bus brings it soon; the ledger has it surely. A listener of one job misses no stored event
// and hears each once and in order, whatever the bus loses: where something may be missing, and
// every kPollEvery (kPollAloneEvery without a bus), the ledger is asked. A feed is told of a gap
// where stored changes may have been lost to it; without a bus that is with every poll. Progress,
// previews, outputs and workers' messages come over the bus only. A feed whose listener has nobody
// to tell (events::Feed::is_awake) costs others nothing: it is told of a gap when it is looked at.
//
// Lives on the core executor.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/task.hpp"
#include "cluster/audience.hpp"
#include "cluster/mail.hpp"
#include "cluster/watched_jobs.hpp"
#include "events/hub.hpp"
#include "events/local_hub.hpp"
#include "jobs/ledger.hpp"
#include "jobs/shared_ledger.hpp"

namespace comfyd::cluster {

class SharedHub final : public events::Hub {
public:
    static constexpr Millis kPollEvery{2'000};
    static constexpr Millis kPollAloneEvery{1'000};
    // One who tells is heard with every poll; a silent one is cut off or gone.
    static constexpr Millis kSilenceMax{5'000};
    static constexpr Millis kTellerLife{15'000};

    // All outlive it. It takes the letters Greeting, Interest, Told and SoFar of `mail`, and its
    // on_turned().
    SharedHub(Executor core, Mail& mail, jobs::Ledger& ledger, jobs::SharedLedger& shared_ledger);

    // Before mail.start().
    void start();
    Task<> stop();

    // This node leads every domain from now on, or does not any more: whatever becomes of jobs is
    // published here. Told when the last lead was taken, before anything is published under it, and
    // when one is lost.
    void lead_all(bool does);

    void watch(const JobId& job, std::shared_ptr<events::Subscription> subscription) override;
    void subscribe(std::shared_ptr<events::Feed> feed) override;
    void publish(const jobs::Job& job, events::Notice notice) override;
    bool wants_progress(const jobs::Job& job) const override;
    bool wants_worker_messages(const jobs::Job& job) const override;
    void end_all(Code reason) override;
    std::size_t subscription_count() const override { return local_.subscription_count(); }

    // Nodes that are interested in something.
    std::size_t audience_size() const { return audience_.size(); }

private:
    using Ticks = Audience::Ticks;

    // One who tells this node of changes, and how far.
    struct Teller {
        Place place;
        Ticks heard_at;
    };

    void hear(const NodeId& from, Told told);
    void hear(const NodeId& from, Interest interest);
    void hear_place(const NodeId& from, const Place& place, std::uint64_t news);
    void turn(bool is_up);
    void tell_watchers(const Told::Head& head, const events::EventPtr& event);
    void read_later(const JobId& job);
    Task<> catch_up(JobId job, std::uint64_t after);
    Task<> keep_in_touch();
    Task<> follow_ledger();
    Task<> poll();
    void tell_gap_where_out_of_touch();
    void tell_gap_to_sleepers();
    Interest interest();
    bool leads_all_since(std::uint64_t term) const;
    Ticks now() const;
    Millis pause() const;

    const Executor core_;
    Mail& mail_;
    jobs::Ledger& ledger_;
    jobs::SharedLedger& shared_ledger_;
    events::LocalHub local_;
    WatchedJobs watched_;
    std::vector<std::weak_ptr<events::Feed>> feeds_;
    Audience audience_;
    std::unordered_map<NodeId, Teller> tellers_;
    bool leads_all_ = false;
    std::uint64_t term_ = 0;  // counts the changes of it
    bool has_published_ = false;
    std::shared_ptr<SharedHub*> self_;  // shared with feeds, which may outlive it
    TaskGroup tasks_;
};

}  // namespace comfyd::cluster
