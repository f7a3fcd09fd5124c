#include "models/answer_head.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/json.hpp"

namespace comfyd::models {

std::optional<std::uint64_t> number_in(std::string_view text) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool is_whole = error == std::errc() && end == text.data() + text.size();
    return is_whole ? std::optional(number) : std::nullopt;
}

std::optional<SentRange> parse_content_range(std::string_view text) {
    constexpr std::string_view kUnit = "bytes ";
    const auto dash = text.find('-');
    const auto slash = text.find('/');
    if (!text.starts_with(kUnit) || dash == std::string_view::npos ||
        slash == std::string_view::npos || slash < dash || dash < kUnit.size()) {
        return std::nullopt;
    }
    const auto first = number_in(text.substr(kUnit.size(), dash - kUnit.size()));
    const auto last = number_in(text.substr(dash + 1, slash - dash - 1));
    const auto total = number_in(text.substr(slash + 1));
    if (!first || !last || !total || *total == 0 || *last != *total - 1 || *first > *last) {
        return std::nullopt;
    }
    return SentRange{*first, *total};
}

std::string strong_etag(const net::Headers& headers) {
    const std::string_view etag = headers.get("ETag");
    constexpr std::size_t kBytesMax = 1'024;
    const bool is_strong = etag.size() >= 2 && etag.size() <= kBytesMax && etag.front() == '"';
    return is_strong ? std::string(etag) : std::string();
}

Error refusal(const std::string& host, int status, const net::Headers& headers) {
    Code code = Code::upstream_error;
    std::string why = host + " answers " + std::to_string(status);
    const std::string_view told = headers.get("X-Error-Code");
    constexpr std::size_t kWordMax = 64;
    const bool is_word =
        !told.empty() && told.size() <= kWordMax && std::ranges::all_of(told, [](char c) {
            return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        });
    if (is_word) {
        why += " (" + std::string(told) + ")";
    }
    json::object details{{"status_code", status}};
    switch (status) {
        case 401:
            code = Code::unauthorized;
            why += ": it wants a token, or another one";
            break;
        case 403:
            code = Code::forbidden;
            why += ": its token may not have this file, or the link has run out";
            break;
        case 404:
        case 410:
            code = Code::not_found;
            why += ": there is no such file";
            break;
        case 429:
            code = Code::rate_limited;
            break;
        default:
            break;
    }
    if (const auto seconds = number_in(headers.get("Retry-After"))) {
        details["retry_after"] = *seconds;
    }
    return Error(code, std::move(why), std::move(details));
}

bool is_outage(const Error& error) {
    const json::value* status = json::find(error.details, "status_code");
    const bool is_ours = status != nullptr && status->is_int64() && status->get_int64() < 500;
    switch (error.code) {
        case Code::connection_failed:
        case Code::request_timeout:
        case Code::protocol_error:
            return true;
        case Code::upstream_error:
            return !is_ours;
        default:
            return false;
    }
}

}  // namespace comfyd::models
