#include "cluster/audience.hpp"

#include <algorithm>
#include <variant>

namespace comfyd::cluster {
namespace {

const jobs::Event* event_of(const events::Notice& notice) {
    if (const auto* changed = std::get_if<events::Changed>(&notice)) {
        return changed->event.get();
    }
    const auto* shown = std::get_if<events::Shown>(&notice);
    return shown != nullptr ? shown->event.get() : nullptr;
}

bool is_preview(const jobs::Event* event) {
    return event != nullptr && event->type == jobs::EventType::preview;
}

bool is_about(const FeedInterest& feed, const jobs::Job& job) {
    return !feed.tenant || *feed.tenant == job.tenant;
}

bool wants_messages(const FeedInterest& feed, const jobs::Job& job) {
    return !feed.messages_of.empty() && feed.messages_of == job.dialect;
}

// As events::Feed has it.
bool wants(const FeedInterest& feed, const jobs::Job& job, const events::Notice& notice) {
    if (!is_about(feed, job)) {
        return false;
    }
    if (std::holds_alternative<events::Said>(notice)) {
        return wants_messages(feed, job);
    }
    if (std::holds_alternative<events::Shown>(notice)) {
        return is_preview(event_of(notice)) ? feed.previews : feed.progress;
    }
    return true;
}

}  // namespace

bool is_stored(const events::Notice& notice) {
    return std::holds_alternative<events::Arrived>(notice) ||
           std::holds_alternative<events::Changed>(notice);
}

std::optional<Place> Audience::hear(const NodeId& id, Interest interest, Ticks now) {
    auto [found, is_new] = nodes_.try_emplace(id);
    Node& node = found->second;
    if (is_new) {
        node.place.stream = ++last_stream_;
    }
    node.expires = now + kInterestLife;
    if (interest.is_all) {
        node.watched.clear();
        node.previews = false;
    }
    node.watched.insert(interest.watched.begin(), interest.watched.end());
    node.previews = node.previews || interest.previews;

    const auto before = node.feeds;
    if (interest.is_all) {
        node.feeds = std::move(interest.feeds);
    } else {
        node.feeds.insert(node.feeds.end(), interest.feeds.begin(), interest.feeds.end());
    }
    const bool has_more = std::ranges::any_of(node.feeds, [&before](const FeedInterest& feed) {
        return std::ranges::find(before, feed) == before.end();
    });
    // What was told before was not all that the new one wants.
    if (has_more && !is_new) {
        node.place = {++last_stream_, 0};
    }
    return node.feeds.empty() ? std::nullopt : std::optional(node.place);
}

void Audience::forget_silent(Ticks now) {
    std::erase_if(nodes_, [now](const auto& entry) { return entry.second.expires < now; });
}

template <class Wants>
bool Audience::any_feed(const jobs::Job& job, Wants wants) const {
    return std::ranges::any_of(nodes_, [&](const auto& entry) {
        return std::ranges::any_of(entry.second.feeds, [&](const FeedInterest& feed) {
            return is_about(feed, job) && wants(feed);
        });
    });
}

bool Audience::wants_progress(const jobs::Job& job) const {
    return std::ranges::any_of(
               nodes_, [&job](const auto& entry) { return entry.second.watched.contains(job.id); }
           ) ||
           any_feed(job, [](const FeedInterest& feed) { return feed.progress; });
}

bool Audience::wants_worker_messages(const jobs::Job& job) const {
    return any_feed(job, [&job](const FeedInterest& feed) { return wants_messages(feed, job); });
}

Audience::Wanted Audience::wanted(const jobs::Job& job, const events::Notice& notice) {
    Wanted wanted;
    const jobs::Event* event = event_of(notice);
    for (auto& [id, node] : nodes_) {
        const bool by_feeds = std::ranges::any_of(node.feeds, [&](const FeedInterest& feed) {
            return wants(feed, job, notice);
        });
        const bool by_watchers = event != nullptr && (node.previews || !is_preview(event)) &&
                                 node.watched.contains(job.id);
        if (!by_feeds && !by_watchers) {
            continue;
        }
        node.place.number += is_stored(notice) ? 1 : 0;
        (by_feeds ? wanted.by_feeds : wanted.by_watchers).emplace_back(id, node.place);
    }
    return wanted;
}

}  // namespace comfyd::cluster
