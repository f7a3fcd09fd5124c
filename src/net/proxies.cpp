#include "net/proxies.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace comfyd::net {
namespace {

using boost::asio::ip::address;

std::string_view trim(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) {
        text.remove_prefix(1);
    }
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) {
        text.remove_suffix(1);
    }
    return text;
}

// "192.0.2.1", "192.0.2.1:80", "2001:db8::1", "[2001:db8::1]:80", with or without quotes.
std::optional<address> parse_node(std::string_view text) {
    text = trim(text);
    if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
        text = text.substr(1, text.size() - 2);
    }
    if (text.starts_with('[')) {
        text = text.substr(1, text.find(']') - 1);
    } else if (std::ranges::count(text, ':') == 1) {
        text = text.substr(0, text.find(':'));
    }
    boost::system::error_code error;
    const auto parsed = boost::asio::ip::make_address(std::string(text), error);
    return error ? std::nullopt : std::optional(parsed);
}

// The value of `name` in one element of Forwarded: for=192.0.2.1;proto=https.
std::string_view parameter(std::string_view element, std::string_view name) {
    while (!element.empty()) {
        const auto end = element.find(';');
        const auto pair = trim(element.substr(0, end));
        const auto equals = pair.find('=');
        if (equals != std::string_view::npos &&
            equal_ignoring_case(trim(pair.substr(0, equals)), name)) {
            return trim(pair.substr(equals + 1));
        }
        element = end == std::string_view::npos ? std::string_view() : element.substr(end + 1);
    }
    return {};
}

// All lines of the header are one list.
std::vector<std::string> elements(const Headers& headers, std::string_view name) {
    std::vector<std::string> found;
    for (const auto& [line_name, value] : headers.all()) {
        if (!equal_ignoring_case(line_name, name)) {
            continue;
        }
        for (std::string_view rest = value;;) {
            const auto comma = rest.find(',');
            found.emplace_back(trim(rest.substr(0, comma)));
            if (comma == std::string_view::npos) {
                break;
            }
            rest.remove_prefix(comma + 1);
        }
    }
    return found;
}

}  // namespace

Result<TrustedProxies> TrustedProxies::parse(
    const std::vector<std::string>& ranges, Header header
) {
    auto parsed = AddressRanges::parse(ranges);
    if (!parsed) {
        return fail(std::move(parsed.error()));
    }
    TrustedProxies proxies;
    proxies.header_ = header;
    proxies.ranges_ = std::move(*parsed);
    return proxies;
}

bool TrustedProxies::trusts(const address& one) const {
    return ranges_.contain(one);
}

TrustedProxies::Client TrustedProxies::client(
    const std::string& peer, bool is_https, const Headers& headers
) const {
    Client found{peer, is_https};
    const bool is_forwarded = header_ == Header::forwarded;
    const auto hops = elements(headers, is_forwarded ? "Forwarded" : "X-Forwarded-For");
    for (auto hop = hops.rbegin(); hop != hops.rend(); ++hop) {
        const auto one = parse_node(is_forwarded ? parameter(*hop, "for") : *hop);
        if (!one) {
            break;  // nobody can say what stands before it
        }
        found.address = without_mapping(*one).to_string();
        if (is_forwarded) {
            const auto scheme = parameter(*hop, "proto");
            found.is_https = scheme.empty() ? found.is_https : equal_ignoring_case(scheme, "https");
        }
        if (!trusts(*one)) {
            break;
        }
    }
    if (const auto schemes = elements(headers, "X-Forwarded-Proto");
        !is_forwarded && !schemes.empty()) {
        found.is_https = equal_ignoring_case(schemes.back(), "https");
    }
    return found;
}

}  // namespace comfyd::net
