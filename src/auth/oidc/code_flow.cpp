#include "auth/oidc/code_flow.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "auth/browser_token.hpp"
#include "auth/digest.hpp"
#include "auth/jwt/base64url.hpp"
#include "auth/oidc/discovery.hpp"
#include "auth/tenant.hpp"
#include "base/hop.hpp"
#include "base/json_unique.hpp"
#include "base/text.hpp"

namespace comfyd::auth::oidc {
namespace {

constexpr int kBegunMax = 10'000;
constexpr std::chrono::minutes kProviderKept{10};

// Different for each purpose and each login; whoever has not the browser's secret cannot make it.
std::string derive(const std::string& secret, const char* purpose, const std::string& state) {
    return jwt::to_base64url(bytes_of(hmac_sha256(secret, purpose + ("." + state))));
}

std::string form(const std::vector<std::pair<std::string, std::string>>& fields) {
    std::string text;
    for (const auto& [name, value] : fields) {
        text += (text.empty() ? "" : "&") + name + "=" + net::percent_encode(value);
    }
    return text;
}

std::string with_query(
    const std::string& address, const std::vector<std::pair<std::string, std::string>>& fields
) {
    return address + (address.find('?') == std::string::npos ? "?" : "&") + form(fields);
}

bool has_word(const json::object& about, const char* list, std::string_view word) {
    const auto words = json::find_array(about, list);
    return words && *words != nullptr &&
           std::ranges::any_of(**words, [word](const json::value& one) {
               return one.is_string() && view(one.get_string()) == word;
           });
}

std::string text_of(const json::object& claims, const char* name) {
    return json::find_string(claims, name).value_or(std::nullopt).value_or("");
}

bool is_of(const json::object& about, const char* member, std::string_view shown) {
    const auto digest = parse_digest(text_of(about, member));
    return digest && equal_constant_time(bytes_of(*digest), bytes_of(sha256(shown)));
}

tl::unexpected<Error> not_begun_here() {
    return fail(
        Code::unauthorized,
        "this login was not begun in this browser, took too long, or was used before; begin again"
    );
}

Error rests() {
    return Error(
        Code::upstream_error,
        "it did not answer several times in a row and is left alone for a while; try again later"
    );
}

tl::unexpected<Error> unusable(const Error& error) {
    return fail(Code::upstream_error, "the login provider cannot be used now: " + error.message);
}

// Code words of RFC 6749, which are shown; nothing else that comes by an address is.
bool is_code_word(std::string_view text) {
    return text.size() <= 64 &&
           std::ranges::all_of(text, [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
}

}  // namespace

CodeFlow::CodeFlow(
    Executor executor, Options options, jwt::IssuerKeys& keys, SessionStore& store, Clock& clock
)
    : executor_(executor),
      options_(std::move(options)),
      keys_(keys),
      store_(store),
      clock_(clock),
      client_(executor, {.idle_per_origin_max = 0, .ca_file = options_.ca_file}) {}

Task<Result<CodeFlow::Begun>> CodeFlow::begin(std::string next) {
    return await_on(executor_, begin_there(std::move(next)));
}

Task<Result<CodeFlow::Person>> CodeFlow::finish(Answer answer, std::string secret) {
    return await_on(executor_, finish_there(std::move(answer), std::move(secret)));
}

Task<Result<json::object>> CodeFlow::provider() {
    if (provider_ && clock_.now() < asked_at_ + kProviderKept) {
        co_return *provider_;
    }
    const auto pass = keys_.itself().admit();
    if (!pass) {
        co_return unusable(rests());
    }
    auto about = co_await discover(client_, issuer());
    note(about ? std::nullopt : std::optional(about.error().code));
    if (!about) {
        co_return unusable(about.error());
    }
    for (const char* member : {"authorization_endpoint", "token_endpoint"}) {
        const auto address = address_in(*about, member);
        if (!address || !is_safe_address(*address)) {
            co_return unusable(Error(Code::protocol_error, std::string("it has no good ") + member)
            );
        }
    }
    provider_ = *about;
    asked_at_ = clock_.now();
    co_return std::move(*about);
}

// That it refuses somebody's code says nothing against it.
void CodeFlow::note(std::optional<Code> failure) {
    if (failure == Code::cancelled) {
        return;
    }
    if (failure && failure != Code::protocol_error) {
        keys_.itself().failed();
    } else {
        keys_.itself().succeeded();
    }
}

Task<Result<CodeFlow::Begun>> CodeFlow::begin_there(std::string next) {
    auto about = co_await provider();
    if (!about) {
        co_return fail(std::move(about.error()));
    }
    const std::string state = make_browser_token();
    std::string secret = make_secret_text();
    const Time now = clock_.now();
    SessionRecord begun{
        SessionKind::begun_login, *id_of_browser_token(state), "", "", now, now + kPatience, {}
    };
    begun.about = {
        {"state", to_hex(sha256(state))},
        {"browser", to_hex(sha256(secret))},
        {"next", std::move(next)},
    };
    auto saved = co_await store_.save_session(std::move(begun), kBegunMax);
    if (!saved) {
        co_return fail(std::move(saved.error()));
    }
    const std::string verifier = derive(secret, "verifier", state);
    std::string address = with_query(
        text_of(*about, "authorization_endpoint"),
        {{"response_type", "code"},
         {"client_id", options_.client_id},
         {"redirect_uri", options_.return_url},
         {"scope", options_.scopes},
         {"state", state},
         {"nonce", derive(secret, "nonce", state)},
         {"code_challenge", jwt::to_base64url(bytes_of(sha256(verifier)))},
         {"code_challenge_method", "S256"}}
    );
    co_return Begun{std::move(address), std::move(secret)};
}

// RFC 9207: that the answer is of the provider that was asked.
Result<> CodeFlow::check_sender(const json::object& about, const Answer& answer) const {
    const json::value* says = about.if_contains("authorization_response_iss_parameter_supported");
    const bool must_say = says != nullptr && says->is_bool() && says->get_bool();
    const bool is_it = answer.issuer.empty() ? !must_say : answer.issuer == issuer();
    return is_it ? Result<>()
                 : fail(Code::unauthorized, "the answer comes from another login provider");
}

Task<Result<CodeFlow::Person>> CodeFlow::finish_there(Answer answer, std::string secret) {
    const auto id = id_of_browser_token(answer.state);
    if (!id || secret.empty()) {
        co_return not_begun_here();
    }
    auto begun = co_await store_.find_session(SessionKind::begun_login, *id);
    if (!begun) {
        co_return fail(std::move(begun.error()));
    }
    // Others may not even use it up.
    if (!*begun || !is_of((*begun)->about, "state", answer.state) ||
        !is_of((*begun)->about, "browser", secret)) {
        co_return not_begun_here();
    }
    auto taken = co_await store_.take_session(SessionKind::begun_login, *id);
    if (!taken) {
        co_return fail(std::move(taken.error()));
    }
    if (!*taken || clock_.now() >= (*taken)->ends_at) {
        co_return not_begun_here();
    }
    auto about = co_await provider();
    if (!about) {
        co_return fail(std::move(about.error()));
    }
    if (auto checked = check_sender(*about, answer); !checked) {
        co_return fail(std::move(checked.error()));
    }
    if (!answer.error.empty() || answer.code.empty()) {
        const std::string why = is_code_word(answer.error) ? ": " + answer.error : "";
        co_return fail(Code::unauthorized, "the login provider refused the login" + why);
    }
    auto id_token =
        co_await exchange(*about, std::move(answer.code), derive(secret, "verifier", answer.state));
    if (!id_token) {
        co_return fail(std::move(id_token.error()));
    }
    auto caller = co_await judge(*id_token, derive(secret, "nonce", answer.state));
    if (!caller) {
        co_return fail(std::move(caller.error()));
    }
    co_return Person{std::move(*caller), std::move(*id_token), text_of((*taken)->about, "next")};
}

Task<Result<std::string>> CodeFlow::exchange(
    const json::object& about, std::string code, std::string verifier
) {
    std::vector<std::pair<std::string, std::string>> fields{
        {"grant_type", "authorization_code"},
        {"code", std::move(code)},
        {"redirect_uri", options_.return_url},
        {"code_verifier", std::move(verifier)},
        {"client_id", options_.client_id},
    };
    net::ClientRequest request;
    constexpr const char* kMethods = "token_endpoint_auth_methods_supported";
    const bool by_body = has_word(about, kMethods, "client_secret_post") &&
                         !has_word(about, kMethods, "client_secret_basic");
    if (!options_.client_secret.empty() && by_body) {
        fields.emplace_back("client_secret", options_.client_secret);
    } else if (!options_.client_secret.empty()) {
        request.headers.set(
            "Authorization",
            "Basic " + to_base64(
                           net::percent_encode(options_.client_id) + ":" +
                           net::percent_encode(options_.client_secret)
                       )
        );
    }
    request.method = "POST";
    request.url = text_of(about, "token_endpoint");
    request.headers.set("Content-Type", "application/x-www-form-urlencoded");
    request.body = form(fields);
    const auto pass = keys_.itself().admit();
    if (!pass) {
        co_return unusable(rests());
    }
    auto answer = co_await ask(client_, std::move(request));
    note(answer ? std::nullopt : std::optional(answer.error().code));
    if (!answer) {
        co_return unusable(answer.error());
    }
    const auto tokens = json::parse_unique_object(answer->body);
    std::string id_token = tokens ? text_of(*tokens, "id_token") : "";
    if (id_token.empty()) {
        co_return unusable(Error(Code::protocol_error, "its answer has no ID token"));
    }
    co_return id_token;
}

Task<Result<Caller>> CodeFlow::judge(const std::string& id_token, const std::string& nonce) {
    const auto token = jwt::parse_token(id_token);
    if (!token) {
        co_return fail(token.error());
    }
    auto is_signed = co_await keys_.check_signature(*token);
    if (!is_signed) {
        co_return fail(std::move(is_signed.error()));
    }
    auto judged = jwt::judge_claims(token->claims, options_.claims, clock_.now());
    if (!judged) {
        co_return fail(std::move(judged.error()));
    }
    if (text_of(token->claims, "nonce") != nonce) {
        co_return jwt::invalid_token("it was made for another login");
    }
    const json::value* audience = token->claims.if_contains("aud");
    const bool has_several = audience->is_array() && audience->get_array().size() > 1;
    if ((has_several || token->claims.contains("azp")) &&
        text_of(token->claims, "azp") != options_.client_id) {
        co_return jwt::invalid_token("it was made for another client");
    }
    std::string subject = text_of(token->claims, "sub");
    if (!is_tenant_name(subject)) {
        co_return jwt::invalid_token("it does not say whose it is");
    }
    judged->caller.key_name = std::move(subject);
    co_return std::move(judged->caller);
}

Task<std::string> CodeFlow::logout_address(std::string id_token) {
    auto about = co_await await_on(executor_, provider());
    const std::string address = about ? text_of(*about, "end_session_endpoint") : "";
    if (!is_safe_address(address)) {
        co_return std::string();
    }
    co_return with_query(
        address,
        {{"id_token_hint", std::move(id_token)},
         {"client_id", options_.client_id},
         {"post_logout_redirect_uri", options_.after_logout_url}}
    );
}

}  // namespace comfyd::auth::oidc
