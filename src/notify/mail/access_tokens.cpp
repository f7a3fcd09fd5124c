#include "notify/mail/access_tokens.hpp"

#include <algorithm>
#include <utility>

#include "base/json.hpp"
#include "net/http.hpp"

namespace comfyd::notify::mail {
namespace {

constexpr Millis kTimeout{15'000};
constexpr std::uint64_t kAnswerBytesMax = 64 * 1024;
constexpr Millis kMargin = std::chrono::minutes(1);
constexpr std::int64_t kLifetimeDefault_s = 300;
constexpr std::int64_t kLifetimeMax_s = 86'400;

net::ClientOptions client_options(const TokenOptions& options) {
    net::ClientOptions client;
    client.ca_file = options.ca_file;
    return client;
}

std::string form_of(const TokenOptions& options) {
    std::string form =
        "grant_type=refresh_token&refresh_token=" + net::percent_encode(options.refresh_token) +
        "&client_id=" + net::percent_encode(options.client_id);
    if (!options.client_secret.empty()) {
        form += "&client_secret=" + net::percent_encode(options.client_secret);
    }
    if (!options.scope.empty()) {
        form += "&scope=" + net::percent_encode(options.scope);
    }
    return form;
}

std::string text_member(const json::object& from, std::string_view key) {
    const json::value* found = json::find(from, key);
    return found != nullptr && found->is_string() ? std::string(found->get_string()) : "";
}

// The word only, such as "invalid_grant": descriptions may hold what is not for logs.
std::string reason_of(const net::ClientResponse& answer) {
    const auto body = json::parse_object(answer.body);
    const std::string word = body ? text_member(*body, "error") : "";
    const bool is_word =
        !word.empty() && word.size() <= 64 &&
        std::ranges::all_of(word, [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
    return "the token endpoint answered HTTP " + std::to_string(answer.status) +
           (is_word ? " (" + word + ")" : "");
}

}  // namespace

AccessTokens::AccessTokens(Executor executor, Clock& clock, TokenOptions options)
    : clock_(clock), options_(std::move(options)), client_(executor, client_options(options_)) {}

bool AccessTokens::has_one() const {
    return !token_.empty() && clock_.now() < usable_until_;
}

void AccessTokens::forget() {
    token_.clear();
}

Task<Result<std::string>> AccessTokens::get() {
    if (has_one()) {
        co_return token_;
    }
    net::ClientRequest request;
    request.method = "POST";
    request.url = options_.url;
    request.headers.set("Content-Type", "application/x-www-form-urlencoded");
    request.headers.set("Accept", "application/json");
    request.body = form_of(options_);
    request.timeout = kTimeout;
    request.response_bytes_max = kAnswerBytesMax;
    auto answer = co_await client_.send(std::move(request));
    if (!answer) {
        co_return fail(std::move(answer.error()));
    }
    co_return keep(*answer);
}

Result<std::string> AccessTokens::keep(const net::ClientResponse& answer) {
    if (answer.status == 400 || answer.status == 401 || answer.status == 403) {
        return fail(Code::unauthorized, reason_of(answer));
    }
    const auto body = answer.status == 200 ? json::parse_object(answer.body)
                                           : Result<json::object>(json::object());
    const std::string token = body ? text_member(*body, "access_token") : "";
    // It goes into one line of the mail server's protocol, between bytes of value 1.
    const bool is_token =
        !token.empty() && std::ranges::all_of(token, [](char c) { return c > ' ' && c <= '~'; });
    if (!is_token) {
        return fail(Code::upstream_error, reason_of(answer) + " and no access token");
    }
    const json::value* lifetime = json::find(*body, "expires_in");
    const std::int64_t seconds =
        lifetime != nullptr && lifetime->is_int64()
            ? std::clamp<std::int64_t>(lifetime->get_int64(), 0, kLifetimeMax_s)
            : kLifetimeDefault_s;
    token_ = token;
    usable_until_ = clock_.now() + std::chrono::seconds(seconds) - kMargin;
    return token;
}

}  // namespace comfyd::notify::mail
