#include "base/time.hpp"

#include <charconv>
#include <cstdio>

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
    char buffer[40];
    const int length = std::snprintf(
        buffer,
        sizeof buffer,
        "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ",
        static_cast<int>(date.year()),
        static_cast<unsigned>(date.month()),
        static_cast<unsigned>(date.day()),
        static_cast<int>(clock.hours().count()),
        static_cast<int>(clock.minutes().count()),
        static_cast<int>(clock.seconds().count()),
        static_cast<int>(clock.subseconds().count())
    );
    return std::string(buffer, static_cast<std::size_t>(length));
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
