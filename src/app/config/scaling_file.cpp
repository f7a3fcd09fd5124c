#include "app/config/scaling_file.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <sstream>

#include "app/config/fleet_config.hpp"
#include "app/config/setting_kinds.hpp"

namespace comfyd::app {
namespace {

constexpr std::int64_t kDay = 86'400;
constexpr double kUsdMax = 1e9;
constexpr std::array<std::string_view, 7> kDays{"mon", "tue", "wed", "thu", "fri", "sat", "sun"};

std::optional<double> parse_usd(const std::string& text) {
    double usd = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), usd);
    const bool is_amount = error == std::errc() && end == text.data() + text.size() &&
                           std::isfinite(usd) && usd >= 0 && usd <= kUsdMax;
    return is_amount ? std::optional(usd) : std::nullopt;
}

Millis seconds(Members& members, const std::string& name, Millis otherwise) {
    const auto usual = std::chrono::duration_cast<std::chrono::seconds>(otherwise).count();
    return std::chrono::seconds(members.number(name, usual, 0, kDay));
}

bool yes_or_no(Members& members, const std::string& name, bool otherwise) {
    const std::string text = members.text(name, otherwise ? "true" : "false");
    if (text != "true" && text != "false") {
        members.complain("has '" + name + "', which is true or false, not '" + text + "'");
    }
    return text == "true";
}

// "08:30"; 24:00 is the end of the day.
std::optional<int> parse_minute(const std::string& text) {
    int hours = 0;
    int minutes = 0;
    const char* end = text.data() + text.size();
    const auto colon = text.find(':');
    if (colon == std::string::npos || text.size() - colon != 3) {
        return std::nullopt;
    }
    const auto hour = std::from_chars(text.data(), text.data() + colon, hours);
    const auto minute = std::from_chars(text.data() + colon + 1, end, minutes);
    const bool is_read = hour.ec == std::errc() && hour.ptr == text.data() + colon &&
                         minute.ec == std::errc() && minute.ptr == end;
    const int all = hours * 60 + minutes;
    return is_read && hours >= 0 && minutes >= 0 && minutes < 60 && all <= 24 * 60
               ? std::optional(all)
               : std::nullopt;
}

std::optional<std::size_t> parse_day(const std::string& text) {
    const auto found = std::ranges::find(kDays, text);
    return found == kDays.end() ? std::nullopt
                                : std::optional(static_cast<std::size_t>(found - kDays.begin()));
}

// "mon-fri", "sat,sun", "fri-mon".
std::optional<unsigned> parse_days(const std::string& text) {
    unsigned days = 0;
    std::istringstream list(text);
    for (std::string part; std::getline(list, part, ',');) {
        const auto dash = part.find('-');
        const auto first = parse_day(part.substr(0, dash));
        const auto last = dash == std::string::npos ? first : parse_day(part.substr(dash + 1));
        if (!first || !last) {
            return std::nullopt;
        }
        for (std::size_t day = *first;; day = (day + 1) % kDays.size()) {
            days |= 1U << day;
            if (day == *last) {
                break;
            }
        }
    }
    return days == 0 ? std::nullopt : std::optional(days);
}

autoscale::Minimum read_minimum(const YAML::Node& node, Members& of_pool, int most) {
    autoscale::Minimum minimum;
    if (!node.IsMap()) {
        of_pool.complain(
            "has 'schedule', a list of {days: mon-fri, from: \"08:00\", to: \"18:00\", min: 2}"
        );
        return minimum;
    }
    Members members(node, "an entry of 'schedule'");
    const std::string days = members.text("days", "mon-sun");
    const std::string from = members.text("from", "00:00");
    const std::string to = members.text("to", "24:00");
    const bool has_min = members.node("min").IsDefined();
    minimum.machines = static_cast<int>(members.number("min", 0, 0, most));
    if (const auto read = parse_days(days)) {
        minimum.weekdays = *read;
    } else {
        members.complain("has 'days', such as mon-fri or sat,sun, not '" + days + "'");
    }
    const auto begins = parse_minute(from);
    const auto ends = parse_minute(to);
    if (!begins || !ends) {
        members.complain(
            "has 'from' and 'to', quoted hours of UTC such as \"08:00\", not '" +
            (begins ? to : from) + "'"
        );
    }
    minimum.from_minute = begins.value_or(0);
    minimum.to_minute = ends.value_or(0);
    if (auto done = members.done(); !done) {
        of_pool.complain("is not right: " + done.error().message);
    } else if (!has_min) {
        of_pool.complain(
            "has an entry of 'schedule' without 'min', the machines that there are at least"
        );
    }
    return minimum;
}

void read_budget(const YAML::Node& node, Members& of_pool, autoscale::Budget& budget) {
    if (!node.IsMap()) {
        of_pool.complain("has 'budget', a map with usd_per_hour, usd_per_day or usd_per_month");
        return;
    }
    Members members(node, "'budget'");
    const auto read = [&members](const std::string& name, double& usd) {
        const std::string text = members.text(name);
        const auto amount = text.empty() ? std::optional(0.0) : parse_usd(text);
        if (!amount) {
            members.complain("has '" + name + "', a number of 0 or more, not '" + text + "'");
        }
        usd = amount.value_or(0);
    };
    read("usd_per_hour", budget.usd_per_hour);
    read("usd_per_day", budget.usd_per_day);
    read("usd_per_month", budget.usd_per_month);
    if (auto done = members.done(); !done) {
        of_pool.complain("is not right: " + done.error().message);
    }
}

Setting usd(std::string key, std::string help, double autoscale::Budget::* member) {
    return {
        key,
        std::move(help),
        [key, member](Config& config, const std::string& text) -> Result<> {
            const auto amount = parse_usd(text);
            if (!amount) {
                return invalid("'" + key + "' must be a number of 0 or more, not '" + text + "'");
            }
            config.fleet.budget.*member = *amount;
            return {};
        },
        [member](const Config& config) {
            std::ostringstream text;
            text << config.fleet.budget.*member;
            return text.str();
        }
    };
}

}  // namespace

void read_scaling(Members& members, fleet::PoolSettings& pool) {
    constexpr std::array kWords{
        "min",
        "max",
        "spare",
        "idle_timeout",
        "up_cooldown",
        "spot_wait",
        "schedule",
        "budget",
        "forecast"
    };
    const auto scales = std::ranges::find_if(kWords, [&members](const char* word) {
        return members.node(word).IsDefined();
    });
    const bool has_size = members.node("size").IsDefined();
    pool.size = static_cast<int>(members.number("size", 0, 0, kPoolSizeMax));
    pool.is_dry_run = yes_or_no(members, "dry_run", false);
    if (pool.is_dry_run && !has_size) {
        members.complain("has 'dry_run', which needs 'size': that many there are meanwhile");
    } else if (has_size && !pool.is_dry_run) {
        if (scales != kWords.end()) {
            members.complain(
                "has 'size' and '" + std::string(*scales) +
                "': it has a size, or it is scaled ('dry_run: true' tells what would be)"
            );
        }
        return;
    }
    autoscale::Settings scaling;
    scaling.max = static_cast<int>(members.number("max", scaling.max, 1, kPoolSizeMax));
    scaling.min = static_cast<int>(members.number("min", scaling.min, 0, kPoolSizeMax));
    scaling.spare = static_cast<int>(members.number("spare", scaling.spare, 0, kPoolSizeMax));
    scaling.idle_timeout = seconds(members, "idle_timeout", scaling.idle_timeout);
    scaling.up_cooldown = seconds(members, "up_cooldown", scaling.up_cooldown);
    scaling.spot_wait = seconds(members, "spot_wait", scaling.spot_wait);
    scaling.uses_forecast = yes_or_no(members, "forecast", true);
    if (scaling.min > scaling.max) {
        members.complain("has a 'min' that is more than its 'max'");
    }
    if (const YAML::Node schedule = members.node("schedule"); schedule && schedule.IsSequence()) {
        for (const YAML::Node& entry : schedule) {
            scaling.schedule.push_back(read_minimum(entry, members, scaling.max));
        }
    } else if (schedule) {
        members.complain("has 'schedule', which is a list");
    }
    if (const YAML::Node budget = members.node("budget")) {
        read_budget(budget, members, scaling.budget);
    }
    pool.scaling = scaling;
}

std::vector<Setting> budget_settings() {
    return {
        usd("fleet.usd_per_hour",
            "What all machines that comfyd starts may cost together in an hour; 0: no limit.",
            &autoscale::Budget::usd_per_hour),
        usd("fleet.usd_per_day", "Likewise in a day of UTC.", &autoscale::Budget::usd_per_day),
        usd("fleet.usd_per_month", "Likewise in a month of UTC.", &autoscale::Budget::usd_per_month
        ),
    };
}

}  // namespace comfyd::app
