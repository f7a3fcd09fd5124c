#include "base/time.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace comfyd {
namespace {

std::optional<int> digits(std::string_view text, std::size_t at, std::size_t count) {
    if (at + count > text.size()) {
        return std::nullopt;
    }
    int value = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + at + count, value);
    if (error != std::errc() || end != text.data() + at + count || text[at] == '-') {
        return std::nullopt;
    }
    return value;
}

}  // namespace

std::string to_rfc3339(Time time) {
    const auto day = std::chrono::floor<std::chrono::days>(time);
    const std::chrono::year_month_day date(day);
    const std::chrono::hh_mm_ss clock(time - day);
    std::string text = "0000-00-00T00:00:00.000Z";
    // Every answer holds several of these.
    const auto put = [&text](std::size_t end, auto number) {
        for (auto rest = static_cast<std::uint64_t>(number); rest > 0; rest /= 10) {
            text[--end] = static_cast<char>('0' + rest % 10);
        }
    };
    put(4, std::clamp(static_cast<int>(date.year()), 0, 9999));
    put(7, static_cast<unsigned>(date.month()));
    put(10, static_cast<unsigned>(date.day()));
    put(13, clock.hours().count());
    put(16, clock.minutes().count());
    put(19, clock.seconds().count());
    put(23, clock.subseconds().count());
    return text;
}

std::optional<Time> parse_rfc3339(std::string_view text) {
    using namespace std::chrono;
    const auto year_part = digits(text, 0, 4);
    const auto month_part = digits(text, 5, 2);
    const auto day_part = digits(text, 8, 2);
    const auto hour = digits(text, 11, 2);
    const auto minute = digits(text, 14, 2);
    const auto second = digits(text, 17, 2);
    if (!year_part || !month_part || !day_part || !hour || !minute || !second || text[4] != '-' ||
        text[7] != '-' || (text[10] != 'T' && text[10] != 't' && text[10] != ' ') ||
        text[13] != ':' || text[16] != ':' || *hour > 23 || *minute > 59 || *second > 60) {
        return std::nullopt;
    }
    const year_month_day date(
        year(*year_part),
        month(static_cast<unsigned>(*month_part)),
        std::chrono::day(static_cast<unsigned>(*day_part))
    );
    if (!date.ok()) {
        return std::nullopt;
    }
    std::size_t at = 19;
    int fraction_ms = 0;
    if (at < text.size() && text[at] == '.') {
        int scale = 100;
        for (++at; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, scale /= 10) {
            fraction_ms += (text[at] - '0') * scale;
        }
    }
    minutes offset(0);
    if (at < text.size() && (text[at] == 'Z' || text[at] == 'z')) {
        ++at;
    } else if (at < text.size() && (text[at] == '+' || text[at] == '-')) {
        const auto offset_hours = digits(text, at + 1, 2);
        const auto offset_minutes = digits(text, at + 4, 2);
        if (!offset_hours || !offset_minutes) {
            return std::nullopt;
        }
        offset = hours(*offset_hours) + minutes(*offset_minutes);
        if (text[at] == '-') {
            offset = -offset;
        }
        at += 6;
    }
    if (at != text.size()) {
        return std::nullopt;
    }
    return Time(sys_days(date)) + hours(*hour) + minutes(*minute) + seconds(*second) +
           Millis(fraction_ms) - offset;
}

}  // namespace comfyd
