#include "net/http_date.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <string>

namespace comfyd::net {

std::optional<Time> parse_http_date(std::string_view text) {
    constexpr std::size_t kBytesMax = 64;
    constexpr std::array<std::string_view, 12> kMonths = {
        "Jan",
        "Feb",
        "Mar",
        "Apr",
        "May",
        "Jun",
        "Jul",
        "Aug",
        "Sep",
        "Oct",
        "Nov",
        "Dec",
    };
    if (text.size() > kBytesMax) {
        return std::nullopt;
    }
    unsigned day = 0;
    int year = 0;
    unsigned hour = 0;
    unsigned minute = 0;
    unsigned second = 0;
    char month_name[4] = {};
    const int fields = std::sscanf(
        std::string(text).c_str(),
        "%*3s, %2u %3s %4d %2u:%2u:%2u GMT",
        &day,
        month_name,
        &year,
        &hour,
        &minute,
        &second
    );
    const auto month = std::find(kMonths.begin(), kMonths.end(), month_name);
    if (fields != 6 || month == kMonths.end() || hour > 23 || minute > 59 || second > 60) {
        return std::nullopt;
    }
    const std::chrono::year_month_day date(
        std::chrono::year(year),
        std::chrono::month(static_cast<unsigned>(month - kMonths.begin()) + 1),
        std::chrono::day(day)
    );
    if (!date.ok()) {
        return std::nullopt;
    }
    return Time(std::chrono::sys_days(date)) + std::chrono::hours(hour) +
           std::chrono::minutes(minute) + std::chrono::seconds(second);
}

std::optional<Millis> parse_retry_after(std::string_view header, Time now) {
    constexpr std::size_t kBytesMax = 64;
    constexpr std::int64_t kSecondsMax = 366LL * 24 * 3600;
    if (header.empty() || header.size() > kBytesMax) {
        return std::nullopt;
    }
    std::int64_t seconds = 0;
    const auto [end, error] =
        std::from_chars(header.data(), header.data() + header.size(), seconds);
    if (error == std::errc() && end == header.data() + header.size()) {
        return seconds < 0
                   ? std::nullopt
                   : std::optional<Millis>(std::chrono::seconds(std::min(seconds, kSecondsMax)));
    }
    const auto date = parse_http_date(header);
    return date ? std::optional<Millis>(std::max(Millis(0), *date - now)) : std::nullopt;
}

}  // namespace comfyd::net
