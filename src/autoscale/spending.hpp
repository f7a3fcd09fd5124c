// What was paid in the present hour, day and month of UTC, and what budgets leave of it. Plain
// values; pure.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autoscale/settings.hpp"
#include "base/json.hpp"

namespace comfyd::autoscale {

enum class Span { hour, day, month };
inline constexpr std::array kSpans{Span::hour, Span::day, Span::month};
std::string_view to_string(Span span);
std::string_view in_words(Span span);  // "an hour"
// When the one that holds `now` began, and when the next does.
Time beginning(Span span, Time now);
Time ending(Span span, Time now);
double limit(const Budget& budget, Span span);

class Spending {
public:
    // A price for all the time between two moments; what lies before the present spans is
    // forgotten.
    void add(Time from, Time to, double usd_per_hour);
    // As somebody else has counted it.
    void set(Span span, Time now, double usd);
    double spent(Span span, Time now) const;

    json::object to_json() const;
    static Spending from_json(const json::object& about);

private:
    struct Sum {
        Time began{};
        double usd = 0;
    };
    std::array<Sum, kSpans.size()> sums_{};
};

// The limit of a budget that is nearest to its end.
struct Tightest {
    Span span = Span::hour;
    double limit_usd = 0;
    double spent_usd = 0;
    Time until{};  // then it begins anew

    double part() const { return limit_usd > 0 ? spent_usd / limit_usd : 0; }
    double left_usd() const { return limit_usd > spent_usd ? limit_usd - spent_usd : 0; }
};
// Each limit of a budget, and what was spent of it by all these together.
std::vector<Tightest> limits(
    const Budget& budget, const std::vector<const Spending*>& spent, Time now
);
// Of those. nullopt: there is none.
std::optional<Tightest> tightest(
    const Budget& budget, const std::vector<const Spending*>& spent, Time now
);

}  // namespace comfyd::autoscale
