#include "notify/backoff.hpp"

#include <algorithm>
#include <charconv>

#include "net/http_date.hpp"

namespace comfyd::notify {
namespace {

constexpr std::size_t kHeaderBytesMax = 64;
constexpr std::int64_t kSecondsMax = 366LL * 24 * 3600;

}  // namespace

Millis retry_wait(Millis first, Millis longest, int attempts_before, double jitter) {
    Millis wait = std::min(std::max(first, Millis(1)), longest);
    for (int i = 0; i < attempts_before && wait < longest; ++i) {
        wait = std::min(wait * 2, longest);
    }
    const double share = 0.5 + 0.5 * std::clamp(jitter, 0.0, 1.0);
    return Millis(static_cast<std::int64_t>(static_cast<double>(wait.count()) * share));
}

std::optional<Millis> parse_retry_after(std::string_view header, Time now) {
    if (header.empty() || header.size() > kHeaderBytesMax) {
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
    const auto date = net::parse_http_date(header);
    return date ? std::optional<Millis>(std::max(Millis(0), *date - now)) : std::nullopt;
}

}  // namespace comfyd::notify
