#include "autoscale/spending.hpp"

#include <algorithm>

namespace comfyd::autoscale {
namespace {

constexpr double kMillisPerHour = 3'600'000;

std::size_t place(Span span) {
    return static_cast<std::size_t>(span);
}

}  // namespace

std::string_view to_string(Span span) {
    switch (span) {
        case Span::hour:
            return "hour";
        case Span::day:
            return "day";
        case Span::month:
            break;
    }
    return "month";
}

std::string_view in_words(Span span) {
    switch (span) {
        case Span::hour:
            return "an hour";
        case Span::day:
            return "a day";
        case Span::month:
            break;
    }
    return "a month";
}

Time beginning(Span span, Time now) {
    switch (span) {
        case Span::hour:
            return std::chrono::floor<std::chrono::hours>(now);
        case Span::day:
            return std::chrono::floor<std::chrono::days>(now);
        case Span::month:
            break;
    }
    const std::chrono::year_month_day day(std::chrono::floor<std::chrono::days>(now));
    return std::chrono::sys_days(day.year() / day.month() / std::chrono::day(1));
}

Time ending(Span span, Time now) {
    switch (span) {
        case Span::hour:
            return beginning(span, now) + std::chrono::hours(1);
        case Span::day:
            return beginning(span, now) + std::chrono::days(1);
        case Span::month:
            break;
    }
    const std::chrono::year_month_day day(std::chrono::floor<std::chrono::days>(now));
    const auto next = day.year() / day.month() + std::chrono::months(1);
    return std::chrono::sys_days(next / std::chrono::day(1));
}

double limit(const Budget& budget, Span span) {
    switch (span) {
        case Span::hour:
            return budget.usd_per_hour;
        case Span::day:
            return budget.usd_per_day;
        case Span::month:
            break;
    }
    return budget.usd_per_month;
}

void Spending::add(Time from, Time to, double usd_per_hour) {
    for (const Span span : kSpans) {
        Sum& sum = sums_[place(span)];
        const Time began = beginning(span, to);
        if (sum.began < began) {
            sum = {began, 0};
        }
        const Time since = std::max(from, sum.began);
        if (since < to) {
            sum.usd += static_cast<double>((to - since).count()) / kMillisPerHour * usd_per_hour;
        }
    }
}

void Spending::set(Span span, Time now, double usd) {
    sums_[place(span)] = {beginning(span, now), usd};
}

double Spending::spent(Span span, Time now) const {
    const Sum& sum = sums_[place(span)];
    return sum.began == beginning(span, now) ? sum.usd : 0;
}

json::object Spending::to_json() const {
    json::object about;
    for (const Span span : kSpans) {
        const Sum& sum = sums_[place(span)];
        about[to_string(span)] = json::object{{"began", to_unix_ms(sum.began)}, {"usd", sum.usd}};
    }
    return about;
}

Spending Spending::from_json(const json::object& about) {
    Spending spending;
    for (const Span span : kSpans) {
        const auto stored = json::find_object(about, to_string(span));
        if (!stored || *stored == nullptr) {
            continue;
        }
        const auto began = json::find_int(**stored, "began");
        const auto usd = json::find_number(**stored, "usd");
        if (began && *began && usd && *usd) {
            spending.sums_[place(span)] = {from_unix_ms(**began), std::max(**usd, 0.0)};
        }
    }
    return spending;
}

std::vector<Tightest> limits(
    const Budget& budget, const std::vector<const Spending*>& spent, Time now
) {
    std::vector<Tightest> found;
    for (const Span span : kSpans) {
        Tightest one{span, limit(budget, span), 0, ending(span, now)};
        for (const Spending* spending : spent) {
            one.spent_usd += spending->spent(span, now);
        }
        if (one.limit_usd > 0) {
            found.push_back(one);
        }
    }
    return found;
}

std::optional<Tightest> tightest(
    const Budget& budget, const std::vector<const Spending*>& spent, Time now
) {
    const std::vector<Tightest> all = limits(budget, spent, now);
    const auto most = std::ranges::max_element(all, {}, &Tightest::part);
    return most == all.end() ? std::nullopt : std::optional(*most);
}

}  // namespace comfyd::autoscale
