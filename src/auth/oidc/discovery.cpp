#include "auth/oidc/discovery.hpp"

#include <utility>

#include "base/json_unique.hpp"

namespace comfyd::auth::oidc {
namespace {

constexpr std::uint64_t kAnswerBytesMax = 256 * 1024;
constexpr Millis kAnswerTimeout{5'000};

}  // namespace

bool is_safe_address(std::string_view url) {
    const auto parsed = net::Url::parse(url);
    if (!parsed || parsed->scheme == "https") {
        return parsed.has_value();
    }
    const std::string& host = parsed->host;
    const bool is_number = host.find_first_not_of("0123456789.") == std::string::npos;
    return parsed->scheme == "http" &&
           (host == "localhost" || host == "::1" || (is_number && host.starts_with("127.")));
}

Task<Result<net::ClientResponse>> ask(net::Client& client, net::ClientRequest request) {
    request.timeout = kAnswerTimeout;
    request.response_bytes_max = kAnswerBytesMax;
    request.headers.set("Accept", "application/json");
    auto answer = co_await client.send(std::move(request));
    if (answer && answer->status != 200) {
        co_return fail(
            answer->status >= 500 ? Code::upstream_error : Code::protocol_error,
            "it answered with status " + std::to_string(answer->status)
        );
    }
    co_return answer;
}

Task<Result<net::ClientResponse>> get(net::Client& client, std::string url) {
    net::ClientRequest request;
    request.url = std::move(url);
    return ask(client, std::move(request));
}

Task<Result<json::object>> discover(net::Client& client, std::string issuer) {
    std::string url = issuer;
    while (url.ends_with('/')) {
        url.pop_back();
    }
    auto answer = co_await get(client, url + "/.well-known/openid-configuration");
    if (!answer) {
        co_return fail(std::move(answer.error()));
    }
    auto about = json::parse_unique_object(answer->body);
    const auto name = about ? json::find_string(*about, "issuer") : fail(about.error());
    if (!name || !*name) {
        co_return fail(Code::protocol_error, "its openid-configuration has no issuer");
    }
    if (**name != issuer) {
        co_return fail(Code::protocol_error, "it calls itself by another name: " + **name);
    }
    co_return about;
}

Result<std::string> address_in(const json::object& about, const char* member) {
    const auto address = json::find_string(about, member);
    if (!address || !*address) {
        return fail(
            Code::protocol_error, std::string("its openid-configuration has no issuer or ") + member
        );
    }
    return **address;
}

}  // namespace comfyd::auth::oidc
