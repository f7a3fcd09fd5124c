#include "cluster/redis/url.hpp"

#include <charconv>
#include <optional>
#include <utility>

#include "net/http.hpp"

namespace comfyd::cluster::redis {
namespace {

constexpr std::uint16_t kPort = 6'379;
constexpr std::uint16_t kSentinelPort = 26'379;
constexpr int kDbMax = 1'000'000;

tl::unexpected<Error> wrong(std::string what) {
    return fail(
        Code::invalid_argument,
        "the address of Redis " + what +
            "; it is redis://[user:password@]host:port[/db], rediss://… with [?ca=FILE], or "
            "redis+sentinel://host:port,host:port/service[/db]"
    );
}

std::optional<int> parse_number(std::string_view text, int max) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_number = error == std::errc() && end == text.data() + text.size();
    return is_number && value >= 0 && value <= max ? std::optional(value) : std::nullopt;
}

// Up to `mark`, which is taken away too; all when it is not there.
std::string_view take_until(std::string_view& text, char mark) {
    const auto at = text.find(mark);
    const auto taken = text.substr(0, at);
    text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
    return taken;
}

std::optional<Address> parse_address(std::string_view text, std::uint16_t default_port) {
    std::string_view host = text;
    std::string_view port;
    if (text.starts_with('[')) {
        const auto end = text.find(']');
        if (end == std::string_view::npos) {
            return std::nullopt;
        }
        host = text.substr(1, end - 1);
        port = text.substr(end + 1);
    } else if (const auto colon = text.find(':'); colon != std::string_view::npos) {
        host = text.substr(0, colon);
        port = text.substr(colon);
    }
    if (host.empty() || host.find_first_of(" \t\r\n@") != std::string_view::npos) {
        return std::nullopt;
    }
    if (port.empty()) {
        return Address{std::string(host), default_port};
    }
    const auto number = port.starts_with(':') ? parse_number(port.substr(1), 65'535) : std::nullopt;
    if (!number || *number == 0) {
        return std::nullopt;
    }
    return Address{std::string(host), static_cast<std::uint16_t>(*number)};
}

Result<> read_user(std::string_view text, Url& into) {
    const auto user = net::percent_decode(take_until(text, ':'));
    const auto password = net::percent_decode(text);
    if (!user || !password) {
        return wrong("has a user or a password with a broken escape");
    }
    into.user = *user;
    into.password = *password;
    return {};
}

}  // namespace

std::string Address::to_string() const {
    const bool is_v6 = host.find(':') != std::string::npos;
    return (is_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<Url> Url::parse(std::string_view text) {
    Url url;
    const auto scheme_end = text.find("://");
    const auto scheme = text.substr(0, scheme_end);
    const bool by_sentinels = scheme == "redis+sentinel" || scheme == "rediss+sentinel";
    if (scheme_end == std::string_view::npos ||
        (scheme != "redis" && scheme != "rediss" && !by_sentinels)) {
        return wrong("begins with no scheme that is known");
    }
    url.tls = scheme.starts_with("rediss");
    text.remove_prefix(scheme_end + 3);

    std::string_view rest = text;
    std::string_view before_query = take_until(rest, '?');
    for (auto& [key, value] : net::parse_query(rest)) {
        if (key != "ca" || !url.tls) {
            return wrong("has a setting that is not known: '" + key + "'");
        }
        url.ca_file = std::move(value);
    }
    std::string_view authority = take_until(before_query, '/');
    if (const auto at = authority.rfind('@'); at != std::string_view::npos) {
        const auto read = read_user(authority.substr(0, at), url);
        if (!read) {
            return fail(read.error());
        }
        authority.remove_prefix(at + 1);
    }
    do {
        auto address =
            parse_address(take_until(authority, ','), by_sentinels ? kSentinelPort : kPort);
        if (!address) {
            return wrong("has no usable host");
        }
        url.hosts.push_back(std::move(*address));
    } while (!authority.empty());
    if (by_sentinels) {
        url.service = std::string(take_until(before_query, '/'));
        if (url.service.empty()) {
            return wrong("names no service of the sentinels");
        }
    } else if (url.hosts.size() > 1) {
        return wrong("has several hosts and no sentinels");
    }
    if (!before_query.empty()) {
        const auto db = parse_number(before_query, kDbMax);
        if (!db) {
            return wrong("has a database that is no number");
        }
        url.db = *db;
    }
    return url;
}

std::string Url::to_string() const {
    std::string text = tls ? "rediss" : "redis";
    text += has_sentinels() ? "+sentinel://" : "://";
    for (const Address& host : hosts) {
        text += (&host == hosts.data() ? "" : ",") + host.to_string();
    }
    return text + (has_sentinels() ? "/" + service : "") +
           (db != 0 ? "/" + std::to_string(db) : "");
}

}  // namespace comfyd::cluster::redis
