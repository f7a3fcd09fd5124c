#include "cluster/shared_hub.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>
#include <variant>

#include <boost/asio/post.hpp>

#include "base/log.hpp"
#include "base/on_executor.hpp"
#include "base/virtual_time.hpp"

namespace comfyd::cluster {
namespace {

events::EventPtr event_of(const events::Notice& notice) {
    if (const auto* changed = std::get_if<events::Changed>(&notice)) {
        return changed->event;
    }
    const auto* shown = std::get_if<events::Shown>(&notice);
    return shown != nullptr ? shown->event : nullptr;
}

Told::Head head_of(const jobs::Job& job) {
    return {job.id, job.tenant, job.dialect, job.sequence, job.revision};
}

// What feeds choose by.
jobs::Job outline_of(const Told::Head& head) {
    jobs::Job job;
    job.id = head.id;
    job.tenant = head.tenant;
    job.dialect = head.dialect;
    return job;
}

bool is_for_watchers_only(const events::Notice& notice) {
    const auto* changed = std::get_if<events::Changed>(&notice);
    return changed != nullptr && !changed->job;
}

events::Notice without_job(events::Notice notice) {
    if (auto* changed = std::get_if<events::Changed>(&notice)) {
        changed->job = nullptr;
    }
    return notice;
}

FeedInterest interest_of(const events::FeedOptions& options) {
    return {options.tenant, options.progress, options.previews, options.messages_of};
}

}  // namespace

SharedHub::SharedHub(
    Executor core, Mail& mail, jobs::Ledger& ledger, jobs::SharedLedger& shared_ledger
)
    : core_(core),
      mail_(mail),
      ledger_(ledger),
      shared_ledger_(shared_ledger),
      local_(core),
      self_(std::make_shared<SharedHub*>(this)),
      tasks_(core) {}

void SharedHub::start() {
    COMFYD_ON(core_);
    mail_.on<Told>([this](NodeId from, Told told) { hear(from, std::move(told)); });
    mail_.on<Interest>([this](NodeId from, Interest said) { hear(from, std::move(said)); });
    mail_.on<SoFar>([this](NodeId from, SoFar so_far) { hear_place(from, so_far.place, 0); });
    mail_.on<Greeting>([this](NodeId from, Greeting) { mail_.send(from, interest()); });
    mail_.on_turned([this](bool is_up) { turn(is_up); });
    tasks_.spawn("shared hub", keep_in_touch());
    tasks_.spawn("shared hub", follow_ledger());
}

Task<> SharedHub::stop() {
    tasks_.cancel();
    co_await tasks_.join();
}

Millis SharedHub::pause() const {
    return mail_.is_up() ? kPollEvery : kPollAloneEvery;
}

SharedHub::Ticks SharedHub::now() const {
    return steady_time_of(core_.context());
}

void SharedHub::lead_all(bool does) {
    COMFYD_ON(core_);
    if (leads_all_ == does) {
        return;
    }
    leads_all_ = does;
    ++term_;
    if (!does) {
        watched_.doubt_all();
        mail_.tell_all(interest());
    }
}

// The lead may have been lost and taken again while the ledger was read.
bool SharedHub::leads_all_since(std::uint64_t term) const {
    return leads_all_ && term_ == term;
}

void SharedHub::watch(const JobId& job, std::shared_ptr<events::Subscription> subscription) {
    COMFYD_ON(core_);
    const bool wants_previews = subscription->options().previews;
    const bool is_new = watched_.add(job, subscription, leads_all_);
    local_.watch(job, std::move(subscription));
    // While this node leads, nobody else has anything to tell.
    if ((is_new || wants_previews) && !leads_all_ && mail_.is_up()) {
        Interest more;
        more.is_all = false;
        more.previews = wants_previews;
        more.watched = {job};
        mail_.tell_all(std::move(more));
    }
}

void SharedHub::subscribe(std::shared_ptr<events::Feed> feed) {
    COMFYD_ON(core_);
    std::erase_if(feeds_, [](const auto& one) { return one.expired(); });
    feeds_.push_back(feed);
    const auto tell = [weak = std::weak_ptr(self_), one = interest_of(feed->options())] {
        const auto self = weak.lock();
        if (self && (*self)->mail_.is_up()) {
            (*self)->mail_.tell_all(Interest{.is_all = false, .feeds = {one}});
        }
    };
    feed->on_awake([core = core_, tell] { boost::asio::post(core, tell); });
    if (feed->is_awake()) {
        tell();
    }
    if (!leads_all_) {
        feed->tell_gap();
    }
    local_.subscribe(std::move(feed));
}

void SharedHub::publish(const jobs::Job& job, events::Notice notice) {
    COMFYD_ON(core_);
    has_published_ = true;
    const Told::Head head = head_of(job);
    if (const auto event = event_of(notice)) {
        tell_watchers(head, event);
    }
    auto wanted = audience_.wanted(job, notice);
    if (!wanted.by_watchers.empty()) {
        mail_.tell(std::move(wanted.by_watchers), {head, without_job(notice)});
    }
    if (!wanted.by_feeds.empty()) {
        mail_.tell(std::move(wanted.by_feeds), {head, notice});
    }
    local_.tell_feeds(job, std::move(notice));
}

bool SharedHub::wants_progress(const jobs::Job& job) const {
    return local_.wants_progress(job) || audience_.wants_progress(job);
}

bool SharedHub::wants_worker_messages(const jobs::Job& job) const {
    return local_.wants_worker_messages(job) || audience_.wants_worker_messages(job);
}

void SharedHub::end_all(Code reason) {
    COMFYD_ON(core_);
    local_.end_all(reason);
    watched_.clear();
    feeds_.clear();
    mail_.tell_all(interest());
}

Interest SharedHub::interest() {
    Interest made;
    made.previews = watched_.want_previews();
    made.watched = watched_.ids();
    for (const auto& weak : feeds_) {
        if (const auto feed = weak.lock(); feed && feed->is_awake()) {
            auto one = interest_of(feed->options());
            if (std::ranges::find(made.feeds, one) == made.feeds.end()) {
                made.feeds.push_back(std::move(one));
            }
        }
    }
    return made;
}

void SharedHub::turn(bool is_up) {
    if (!is_up) {
        return;
    }
    tellers_.clear();
    mail_.tell_all(Greeting{});
    mail_.tell_all(interest());
}

void SharedHub::hear(const NodeId& from, Interest said) {
    const bool is_about_feeds = said.is_all || !said.feeds.empty();
    const auto place = audience_.hear(from, std::move(said), now());
    if (place && is_about_feeds && (leads_all_ || has_published_)) {
        mail_.send(from, SoFar{*place});
    }
}

void SharedHub::hear(const NodeId& from, Told told) {
    hear_place(from, told.place, is_stored(told.notice) ? 1 : 0);
    if (const auto event = event_of(told.notice)) {
        tell_watchers(told.head, event);
    }
    if (!is_for_watchers_only(told.notice)) {
        local_.tell_feeds(outline_of(told.head), std::move(told.notice));
    }
}

// `news`: how many stored changes come with it.
void SharedHub::hear_place(const NodeId& from, const Place& place, std::uint64_t news) {
    const auto [found, is_new] = tellers_.try_emplace(from);
    const Place expected{found->second.place.stream, found->second.place.number + news};
    found->second = {place, now()};
    if (is_new || place != expected) {
        local_.tell_gap();
    }
}

void SharedHub::tell_watchers(const Told::Head& head, const events::EventPtr& event) {
    switch (watched_.judge(head, *event)) {
        case WatchedJobs::Verdict::tell:
            local_.tell_watchers(event);
            break;
        case WatchedJobs::Verdict::read:
            read_later(head.id);
            break;
        case WatchedJobs::Verdict::skip:
            break;
    }
}

void SharedHub::read_later(const JobId& job) {
    if (const auto after = watched_.begin_reading(job)) {
        tasks_.spawn("catch up", catch_up(job, *after));
    }
}

Task<> SharedHub::catch_up(JobId job, std::uint64_t after) {
    const std::uint64_t term = term_;
    auto stored = co_await ledger_.events(job, after);
    if (!stored) {
        log::debug(
            "what became of a job cannot be read", {{"job", job}, {"error", stored.error().message}}
        );
        watched_.fail_reading(job);
        co_return;
    }
    const auto read = watched_.end_reading(job, std::move(*stored), leads_all_since(term));
    for (const events::EventPtr& event : read.news) {
        local_.tell_watchers(event);
    }
    if (read.again) {
        read_later(job);
    }
}

Task<> SharedHub::keep_in_touch() {
    for (;;) {
        const bool goes_on = co_await sleep_for(pause());
        if (!goes_on) {
            co_return;
        }
        watched_.forget_the_gone();
        audience_.forget_silent(now());
        if (mail_.is_up()) {
            mail_.tell_all(interest());
        }
        tell_gap_where_out_of_touch();
        tell_gap_to_sleepers();
    }
}

// Apart: a ledger that does not answer must not make others forget who listens here.
Task<> SharedHub::follow_ledger() {
    for (;;) {
        const bool goes_on = co_await sleep_for(pause());
        if (!goes_on) {
            co_return;
        }
        co_await poll();
    }
}

void SharedHub::tell_gap_where_out_of_touch() {
    std::erase_if(tellers_, [this](const auto& entry) {
        return entry.second.heard_at + kTellerLife < now();
    });
    const bool is_in_touch = mail_.is_up() && !tellers_.empty() &&
                             std::ranges::all_of(tellers_, [this](const auto& one) {
                                 return one.second.heard_at + kSilenceMax >= now();
                             });
    if (!leads_all_ && !is_in_touch) {
        local_.tell_gap();
    }
}

void SharedHub::tell_gap_to_sleepers() {
    for (const auto& weak : feeds_) {
        if (const auto feed = weak.lock(); feed && !feed->is_awake() && !leads_all_) {
            feed->tell_gap();
        }
    }
}

// One query for all that is listened to.
Task<> SharedHub::poll() {
    const std::uint64_t term = term_;
    auto heard = watched_.doubtful();
    if (heard.empty()) {
        co_return;
    }
    const auto advanced = co_await shared_ledger_.advanced(heard);
    if (!advanced) {
        log::debug("what became of jobs cannot be read", {{"error", advanced.error().message}});
        co_return;
    }
    for (const JobId& job : *advanced) {
        read_later(job);
    }
    if (leads_all_since(term)) {
        const std::unordered_set<JobId> more(advanced->begin(), advanced->end());
        for (const jobs::Heard& one : heard) {
            if (!more.contains(one.job)) {
                watched_.trust(one);
            }
        }
    }
}

}  // namespace comfyd::cluster
