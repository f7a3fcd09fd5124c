#include "app/fleet_news.hpp"

#include <algorithm>
#include <utility>

#include "app/fleet_announcements.hpp"
#include "base/foreign_text.hpp"
#include "base/json.hpp"
#include "base/log.hpp"
#include "base/on_executor.hpp"
#include "notify/backoff.hpp"

namespace comfyd::app {
namespace {

using notify::EndpointId;
using notify::Outcome;

constexpr int kPage = 500;

std::string note_of(const std::string& fleet) {
    return "fleet-news/" + fleet;
}

std::int64_t number_of(const json::object& from, std::string_view key) {
    return json::find_int(from, key).value_or(std::nullopt).value_or(0);
}

}  // namespace

FleetNews::FleetNews(Parts parts, bulk::TellingOptions options, Millis look_every)
    : p_(std::move(parts)), options_(options), look_every_(look_every) {}
FleetNews::~FleetNews() = default;

void FleetNews::start() {
    COMFYD_ON(p_.executor);
    main_ = std::make_unique<TaskGroup>(p_.executor);
    work_ = std::make_unique<TaskGroup>(p_.executor);
    main_->spawn("news of the fleet", run());
}

Task<> FleetNews::stop() {
    COMFYD_ON(p_.executor);
    if (!main_) {
        co_return;
    }
    main_->cancel();
    co_await main_->join();
    co_await hand_over();
    main_.reset();
    work_.reset();
}

Task<> FleetNews::run() {
    for (bool goes_on = true; goes_on;) {
        const bool is_ours = !p_.is_ours || p_.is_ours();
        if (is_ours) {
            co_await look();
        } else if (has_read_) {
            co_await hand_over();
        }
        goes_on = co_await sleep_for(look_every_);
    }
}

// Another node goes on, or nobody for now.
Task<> FleetNews::hand_over() {
    work_->cancel();
    co_await work_->join();
    work_ = std::make_unique<TaskGroup>(p_.executor);
    standings_.clear();
    has_read_ = false;
}

Task<> FleetNews::look() {
    const bool is_known = co_await recall();
    if (!is_known) {
        co_return;
    }
    std::map<EndpointId, notify::EndpointPtr> listeners;
    for (notify::EndpointPtr& one : p_.listeners()) {
        listeners[one->id] = std::move(one);
    }
    std::erase_if(standings_, [&listeners](const auto& entry) {
        return !listeners.contains(entry.first) && !entry.second.is_busy;
    });
    for (const auto& [id, endpoint] : listeners) {
        if (!standings_.contains(id)) {
            standings_[id].since = endpoint->updated_at;
        }
    }
    co_await save();
    const Time now = p_.clock.now();
    for (auto& [id, endpoint] : listeners) {
        Standing& standing = standings_[id];
        standing.due = std::min(standing.due, now + options_.retry_max);  // the clock was set back
        if (!standing.is_busy && standing.due <= now) {
            standing.is_busy = true;
            work_->spawn("telling of the fleet", tell(std::move(endpoint)));
        }
    }
}

Task<bool> FleetNews::recall() {
    if (has_read_) {
        co_return true;
    }
    auto note = co_await p_.notebook.read_note(note_of(p_.fleet));
    if (!note) {
        if (note.error().code != Code::cancelled) {
            log::warning(
                "who has heard of the fleet is not known", {{"error", note.error().message}}
            );
        }
        co_return false;
    }
    has_read_ = true;
    written_ = note->value_or("");
    const auto all = json::parse_object(written_);
    for (const auto& [name, value] : all ? *all : json::object()) {
        const auto id = EndpointId::parse(std::string_view(name));
        if (!id || !value.is_object()) {
            continue;
        }
        const json::object& from = value.get_object();
        Standing& standing = standings_[*id];
        standing.heard = {
            static_cast<std::uint64_t>(number_of(from, "turn")),
            static_cast<std::uint64_t>(number_of(from, "number"))
        };
        standing.since = from_unix_ms(number_of(from, "since"));
        standing.attempts = static_cast<int>(number_of(from, "attempts"));
        standing.failures = static_cast<int>(number_of(from, "failures"));
        standing.due = from_unix_ms(number_of(from, "due"));
    }
    co_return true;
}

Task<> FleetNews::tell(notify::EndpointPtr to) {
    bool goes_on = true;
    while (goes_on) {
        goes_on = co_await tell_page(to);
    }
    if (Standing* standing = find(to->id)) {
        standing->is_busy = false;
    }
}

// Whether there may be more to tell now.
Task<bool> FleetNews::tell_page(notify::EndpointPtr to) {
    auto events = co_await p_.store.fleet_events_after(p_.fleet, find(to->id)->heard, kPage);
    if (!events) {
        co_return false;
    }
    for (const fleet::FleetEvent& event : *events) {
        notify::Announcement news = announcement_of(event);
        const bool is_told = event.at >= find(to->id)->since && wants(to->webhook, news);
        Told told = Told::done;
        if (is_told) {
            told = co_await tell_one(to, std::move(news));
        }
        if (told != Told::later) {
            Standing& standing = *find(to->id);
            standing.heard = event.place();
            standing.attempts = 0;
        }
        if (is_told) {
            co_await save();
        }
        if (told != Told::done) {
            co_return false;  // whoever is next has its time, too
        }
    }
    co_await save();
    const bool stop = co_await is_cancelled();
    co_return std::ssize(*events) == kPage && !stop;
}

Task<FleetNews::Told> FleetNews::tell_one(notify::EndpointPtr to, notify::Announcement news) {
    const notify::Target target = notify::EndpointTarget{to->id};
    const Time happened = news.at;
    const std::string name = news.event;
    auto outcome = co_await p_.messengers.announce(target, std::move(news));
    const bool stop = co_await is_cancelled();
    if (outcome.kind == Outcome::Kind::delivered) {
        find(to->id)->failures = 0;
        co_return Told::done;
    }
    if (stop || outcome.kind == Outcome::Kind::cancelled) {
        co_return Told::later;
    }
    const Time now = p_.clock.now();
    const notify::RetryWish wish = p_.messengers.retry_wish(target);
    Standing& standing = *find(to->id);
    const Millis usual = notify::retry_wait(
        wish.first_retry.value_or(options_.first_retry), options_.retry_max, standing.failures, 1.0
    );
    standing.due = outcome.next_at.value_or(
        now + std::min(std::max(usual, outcome.retry_after.value_or(usual)), options_.retry_max)
    );
    ++standing.attempts;
    ++standing.failures;
    const bool is_last = wish.retries_max && standing.attempts > *wish.retries_max;
    const bool is_late = now - happened >= options_.give_up_after;
    if (outcome.kind != Outcome::Kind::give_up && !is_last && !is_late) {
        co_return Told::later;
    }
    log::warning(
        "an event of the fleet could not be told",
        {{"event", name}, {"endpoint", to->id}, {"error", log::foreign(outcome.error)}}
    );
    co_return Told::given_up;
}

// It stays as long as somebody is busy with it.
FleetNews::Standing* FleetNews::find(EndpointId id) {
    const auto found = standings_.find(id);
    return found == standings_.end() ? nullptr : &found->second;
}

std::string FleetNews::text() const {
    json::object all;
    for (const auto& [id, standing] : standings_) {
        all[id.to_string()] = json::object{
            {"turn", static_cast<std::int64_t>(standing.heard.turn)},
            {"number", static_cast<std::int64_t>(standing.heard.number)},
            {"since", to_unix_ms(standing.since)},
            {"attempts", standing.attempts},
            {"failures", standing.failures},
            {"due", to_unix_ms(standing.due)},
        };
    }
    return json::serialize(all);
}

// What was not saved is told again, should nobody save it later.
Task<> FleetNews::save() {
    std::string now = text();
    if (now == written_) {
        co_return;
    }
    written_ = now;
    auto saved = co_await p_.notebook.write_note(note_of(p_.fleet), std::move(now));
    if (!saved) {
        written_.clear();
        if (saved.error().code != Code::cancelled) {
            log::warning(
                "who has heard of the fleet is not noted", {{"error", saved.error().message}}
            );
        }
    }
}

}  // namespace comfyd::app
