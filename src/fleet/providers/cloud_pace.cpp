#include "fleet/providers/cloud_pace.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "base/text.hpp"
#include "net/http_date.hpp"

namespace comfyd::fleet {
namespace {

constexpr int kTooManyRequests = 429;

// Takes what stands before `mark`, and it.
std::string_view take_until(std::string_view& rest, char mark) {
    const std::size_t end = std::min(rest.find(mark), rest.size());
    const std::string_view taken = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    return trim(taken);
}

std::optional<std::int64_t> parameter(std::string_view part, std::string_view name) {
    if (!part.starts_with(name)) {
        return std::nullopt;
    }
    part.remove_prefix(name.size());
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    const bool is_whole = error == std::errc() && end == part.data() + part.size();
    return is_whole && number >= 0 ? std::optional(number) : std::nullopt;
}

}  // namespace

std::optional<Millis> parse_rate_limit(std::string_view header) {
    std::optional<Millis> longest;
    while (!header.empty()) {
        std::string_view window = take_until(header, ',');
        std::optional<std::int64_t> left;
        std::optional<std::int64_t> seconds;
        while (!window.empty()) {
            const std::string_view part = take_until(window, ';');
            left = left ? left : parameter(part, "r=");
            seconds = seconds ? seconds : parameter(part, "t=");
        }
        if (left == 0 && seconds) {
            const auto limited = std::min<std::int64_t>(
                *seconds, std::chrono::seconds(CloudPace::kPauseMax).count()
            );
            longest = std::max(longest.value_or(Millis(0)), Millis(std::chrono::seconds(limited)));
        }
    }
    return longest;
}

void CloudPace::heard(int status, const net::Headers& headers, Moment now, Time wall) {
    std::optional<Millis> pause = parse_rate_limit(headers.get("RateLimit"));
    if (status == kTooManyRequests || headers.contains("Retry-After")) {
        const auto asked = net::parse_retry_after(headers.get("Retry-After"), wall);
        pause = std::max(pause.value_or(Millis(0)), asked.value_or(Millis(kPause)));
    }
    if (pause) {
        open_at_ = std::max(open_at_, now + std::min<Millis>(*pause, kPauseMax));
    }
}

Millis CloudPace::wait(Moment now) const {
    return std::max(std::chrono::ceil<Millis>(open_at_ - now), Millis(0));
}

}  // namespace comfyd::fleet
