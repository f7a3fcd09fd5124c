#include "limits/budgets.hpp"

#include <algorithm>
#include <utility>

#include "base/json.hpp"
#include "base/log.hpp"

namespace comfyd::limits {
namespace {

using autoscale::Span;
using autoscale::Tightest;

constexpr const char* kNote = "tenant-budgets";

// Of those of which nothing is left, the one that begins anew last.
const Tightest* last_of_spent(const std::vector<Tightest>& limits) {
    const Tightest* last = nullptr;
    for (const Tightest& limit : limits) {
        const bool is_later = last == nullptr || limit.until > last->until;
        last = limit.part() >= 1 && is_later ? &limit : last;
    }
    return last;
}

// nullopt: there are more tenants than were listed.
std::optional<double> usd_of(const std::string& tenant, const jobs::Stats& of_hour) {
    const auto found = std::ranges::find(of_hour.groups, tenant, &jobs::Stats::Group::key);
    return found != of_hour.groups.end() ? std::optional(found->totals.cost_usd)
           : of_hour.is_cut              ? std::nullopt
                                         : std::optional(0.0);
}

}  // namespace

Budgets::Budgets(
    const auth::DirectoryBoard& directory,
    const Book& book,
    const Clock& clock,
    jobs::Notebook& notebook,
    Sources sources
)
    : directory_(directory),
      book_(book),
      clock_(clock),
      notebook_(notebook),
      sources_(std::move(sources)) {}

Task<bool> Budgets::look(bool tells) {
    const AllLimits limited = all_limits();
    const Time now = clock_.now();
    std::erase_if(purses_, [&limited](const auto& purse) {
        return !limited.contains(purse.first);
    });
    if (!limited.empty()) {
        auto of_hour = co_await sources_.stats(
            {std::nullopt, jobs::hour_of(now), now, jobs::StatsGroup::tenant}
        );
        if (!of_hour) {
            co_return false;  // what was known holds
        }
        for (const auto& [name, limits] : limited) {
            co_await count(name, usd_of(name, *of_hour), now);
        }
    }
    if (!tells) {
        told_.reset();
    } else if (!told_ && !limited.empty()) {
        co_await recall();
    }
    if (told_) {
        co_await tell(limited, now);
    }
    co_return hold(limited, now);
}

std::string Budgets::hold_of(const std::string& tenant) const {
    const Lock lock(mutex_);
    const auto found = holds_.find(tenant);
    return found == holds_.end() ? std::string() : found->second;
}

std::map<std::string, double> Budgets::left_usd() const {
    const Lock lock(mutex_);
    return left_usd_;
}

Budgets::AllLimits Budgets::all_limits() const {
    AllLimits limited;
    const auto directory = directory_.now();
    for (const auto& [name, tenant] : directory->tenants()) {
        const Allowance allowance = book_.of(name, {});
        const Limits limits{tenant.budget, {0, allowance.usd_per_day, allowance.usd_per_month}};
        if (limits.budget.is_set() || limits.quota.is_set()) {
            limited[name] = limits;
        }
    }
    return limited;
}

// Of a tenant for which nothing ended in an hour, what is known of the hours before stays right.
Task<> Budgets::count(std::string tenant, std::optional<double> usd_this_hour, Time now) {
    const Time hour = jobs::hour_of(now);
    if (!usd_this_hour) {
        auto sums = co_await sources_.stats({tenant, hour, now});
        if (!sums) {
            co_return;
        }
        usd_this_hour = sums->totals.cost_usd;
    }
    Purse& purse = purses_[tenant];
    const bool is_new = purse.hour == Time();
    const bool is_past_changed = purse.hour != hour && (purse.in_hour > 0 || *usd_this_hour > 0);
    if (is_new || is_past_changed) {
        const bool is_read = co_await read_past(tenant, now, purse);
        if (!is_read) {
            co_return;
        }
    }
    if (purse.hour == hour) {
        purse.in_hour = *usd_this_hour;
        purse.spent.set(Span::hour, now, purse.in_hour);
        purse.spent.set(Span::day, now, purse.in_day_before + purse.in_hour);
        purse.spent.set(Span::month, now, purse.in_month_before + purse.in_hour);
    }
}

Task<bool> Budgets::read_past(std::string tenant, Time now, Purse& purse) {
    const Time hour = jobs::hour_of(now);
    const Time day = autoscale::beginning(Span::day, now);
    const Time month = autoscale::beginning(Span::month, now);
    auto sums = co_await sources_.stats({std::move(tenant), month, now, jobs::StatsGroup::hour});
    if (!sums) {
        co_return false;
    }
    purse.hour = hour;
    purse.in_day_before = purse.in_month_before = 0;
    for (const jobs::Stats::Group& group : sums->groups) {
        const Time at = parse_rfc3339(group.key).value_or(hour);
        if (at < hour) {
            purse.in_month_before += group.totals.cost_usd;
            purse.in_day_before += at < day ? 0 : group.totals.cost_usd;
        }
    }
    co_return true;
}

// True: others than before are held back.
bool Budgets::hold(const AllLimits& limited, Time now) {
    std::map<std::string, std::string> holds;
    std::map<std::string, double> left;
    for (const auto& [name, limits] : limited) {
        const auto budget = autoscale::limits(limits.budget, {&purses_[name].spent}, now);
        if (const Tightest* spent = last_of_spent(budget)) {
            holds[name] = "what its tenant may spend in " + std::string(in_words(spent->span)) +
                          " is spent; it goes on at " + to_rfc3339(spent->until);
        }
        const auto least = std::ranges::max_element(budget, {}, &Tightest::part);
        if (least != budget.end()) {
            left[name] = least->left_usd();
        }
    }
    const Lock lock(mutex_);
    left_usd_ = std::move(left);
    const bool is_changed = holds_ != holds;
    holds_ = std::move(holds);
    return is_changed;
}

Task<> Budgets::tell(const AllLimits& limited, Time now) {
    for (const auto& [name, limits] : limited) {
        const std::vector<const autoscale::Spending*> spent{&purses_[name].spent};
        const std::string whose = "the tenant '" + name + "'";
        auto news = told_->take_news(whose, autoscale::limits(limits.budget, spent, now), now);
        std::ranges::move(
            told_->take_news(
                whose, autoscale::limits(limits.quota, spent, now), now, ", by its quota"
            ),
            std::back_inserter(news)
        );
        for (autoscale::LimitNews& one : news) {
            co_await sources_.tell(name, std::move(one));
        }
    }
    co_await save();
}

// Told again is better than never.
Task<> Budgets::recall() {
    auto note = co_await notebook_.read_note(kNote);
    if (note) {
        written_ = note->value_or("");
        const auto about = json::parse_object(written_);
        told_ = about ? autoscale::ToldLimits::from_json(*about) : autoscale::ToldLimits();
    }
}

Task<> Budgets::save() {
    std::string text = json::serialize(told_->to_json());
    if (text == written_) {
        co_return;
    }
    auto saved = co_await notebook_.write_note(kNote, text);
    if (saved) {
        written_ = std::move(text);
    } else if (saved.error().code != Code::cancelled) {
        log::warning(
            "which limits of tenants were told is not noted", {{"error", saved.error().message}}
        );
    }
}

}  // namespace comfyd::limits
