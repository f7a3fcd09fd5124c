#include "assets/drive/tokens.hpp"

#include <algorithm>
#include <utility>

#include "assets/drive/jwt.hpp"
#include "assets/guarded.hpp"
#include "base/json.hpp"
#include "base/on_executor.hpp"

namespace comfyd::assets::drive {
namespace {

constexpr std::chrono::minutes kRenewBefore{5};
constexpr std::chrono::seconds kLife{3'600};  // the longest that Google grants
constexpr Millis kTimeout{30'000};

std::string form_of(std::initializer_list<std::pair<std::string_view, std::string_view>> fields) {
    std::string form;
    for (const auto& [name, value] : fields) {
        form += (form.empty() ? "" : "&") + std::string(name) + "=" + net::percent_encode(value);
    }
    return form;
}

std::string member(const json::object& in, std::string_view name) {
    const auto found = json::find_string(in, name);
    return found && *found ? **found : std::string();
}

Error refusal(int status, std::string_view body) {
    const auto answer = json::parse_object(body);
    const std::string reason = answer ? member(*answer, "error") : std::string();
    std::string message = "Google gives no token: " + std::to_string(status) + " " + reason;
    if (reason == "invalid_grant") {
        message += "; the key or the refresh token was revoked, or this machine's clock is wrong";
    } else if (reason == "unauthorized_client") {
        message +=
            "; the service account may not speak for others: grant it domain-wide delegation";
    }
    const bool may_pass = status >= 500 || status == 429;
    return Error(may_pass ? Code::storage_unavailable : Code::config_invalid, std::move(message));
}

}  // namespace

Result<Identity> read_identity(std::string_view file) {
    const auto text = json::parse_object(file);
    const std::string type = text ? member(*text, "type") : std::string();
    Identity identity;
    if (type == "service_account") {
        identity.account = ServiceAccount{
            member(*text, "client_email"),
            member(*text, "private_key_id"),
            member(*text, "private_key")
        };
        if (const std::string url = member(*text, "token_uri"); !url.empty()) {
            identity.token_url = url;
        }
        if (!identity.account->email.empty() && !identity.account->private_key.empty()) {
            return identity;
        }
    } else if (type == "authorized_user") {
        identity.person = Person{
            member(*text, "client_id"),
            member(*text, "client_secret"),
            member(*text, "refresh_token")
        };
        if (!identity.person->client_id.empty() && !identity.person->refresh_token.empty()) {
            return identity;
        }
    }
    return fail(
        Code::config_invalid,
        "credentials_file: it is neither the JSON key of a service account nor that of a user"
    );
}

Tokens::Tokens(Executor executor, Identity identity, net::Client& client, Clock& clock, Pool& pool)
    : executor_(executor),
      identity_(std::move(identity)),
      client_(client),
      clock_(clock),
      pool_(pool),
      renewed_(executor) {}

Task<Result<std::string>> Tokens::get() {
    COMFYD_ON(executor_);
    while (is_renewing_) {
        const bool woken = co_await renewed_.wait();
        if (!woken) {
            co_return fail(Code::cancelled, "the request for a token was cancelled");
        }
    }
    if (!token_.empty() && clock_.now() < expires_at_ - kRenewBefore) {
        co_return token_;
    }
    is_renewing_ = true;
    auto renewed = co_await renew();
    is_renewing_ = false;
    renewed_.notify();
    if (!renewed && (token_.empty() || clock_.now() >= expires_at_)) {
        co_return fail(std::move(renewed.error()));
    }
    co_return token_;
}

void Tokens::refuse(const std::string& token) {
    if (token == token_) {
        token_.clear();
    }
}

Result<std::string> Tokens::sign_statement() const {
    const ServiceAccount& account = *identity_.account;
    const std::int64_t now = to_unix_ms(clock_.now()) / 1000;
    json::object header{{"alg", "RS256"}, {"typ", "JWT"}};
    if (!account.key_id.empty()) {
        header["kid"] = account.key_id;
    }
    json::object claims{
        {"iss", account.email},
        {"scope", identity_.scope},
        {"aud", identity_.token_url},
        {"iat", now},
        {"exp", now + kLife.count()}
    };
    if (!account.subject.empty()) {
        claims["sub"] = account.subject;
    }
    return make_jwt(header, claims, account.private_key);
}

Task<Result<std::string>> Tokens::make_form() {
    if (const auto& person = identity_.person) {
        co_return form_of({
            {"grant_type", "refresh_token"},
            {"client_id", person->client_id},
            {"client_secret", person->client_secret},
            {"refresh_token", person->refresh_token},
        });
    }
    auto statement = co_await pool_.run(guarded([this] { return sign_statement(); }));
    if (!statement) {
        co_return statement;
    }
    co_return form_of({
        {"grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"},
        {"assertion", *statement},
    });
}

Task<Result<>> Tokens::renew() {
    auto form = co_await make_form();
    if (!form) {
        co_return fail(std::move(form.error()));
    }
    net::ClientRequest request{
        .method = "POST", .url = identity_.token_url, .body = std::move(*form), .timeout = kTimeout
    };
    request.headers.set("Content-Type", "application/x-www-form-urlencoded");
    auto answer = co_await client_.send(std::move(request));
    if (!answer) {
        co_return fail(
            answer.error().code == Code::cancelled ? Code::cancelled : Code::storage_unavailable,
            "Google gives no token: " + answer.error().message
        );
    }
    if (answer->status != 200) {
        co_return fail(refusal(answer->status, answer->body));
    }
    const auto body = json::parse_object(answer->body);
    const std::string token = body ? member(*body, "access_token") : std::string();
    if (token.empty()) {
        co_return fail(Code::storage_unavailable, "Google's answer has no token");
    }
    const auto life = json::find_int(*body, "expires_in");
    const std::int64_t seconds = life && *life ? **life : kLife.count();
    token_ = token;
    expires_at_ = clock_.now() + std::chrono::seconds(std::clamp<std::int64_t>(seconds, 0, 86'400));
    co_return Result<>();
}

}  // namespace comfyd::assets::drive
