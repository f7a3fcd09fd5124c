// Logging in by an OpenID provider: the authorization code flow with PKCE (RFC 7636). The browser
// is sent to the provider with a state that only this browser can bring back, once and within ten
// minutes; what it brings is exchanged for an ID token, which is judged as any token is.
//
// What binds the two halves together is made of a secret that only the browser has, in a cookie:
// nothing that is stored lets anybody else finish a login. Any thread.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "auth/jwt/claims.hpp"
#include "auth/jwt/issuer_keys.hpp"
#include "auth/session_store.hpp"
#include "net/client.hpp"

namespace comfyd::auth::oidc {

class CodeFlow {
public:
    struct Options {
        std::string client_id;
        std::string client_secret{};  // empty: a public client
        std::string scopes = "openid";
        std::string return_url;        // as the provider knows it, byte for byte
        std::string after_logout_url;  // likewise
        std::string ca_file{};
        jwt::ClaimRules claims;  // of ID tokens; its issuer is the provider
    };
    // The last three outlive it.
    CodeFlow(
        Executor executor, Options options, jwt::IssuerKeys& keys, SessionStore& store, Clock& clock
    );

    const std::string& issuer() const { return options_.claims.issuer; }

    static constexpr std::chrono::minutes kPatience{10};
    struct Begun {
        std::string address;  // to which the browser goes
        std::string secret;   // that it keeps
    };
    // `next`: where the user wants to be in the end. Code::upstream_error.
    Task<Result<Begun>> begin(std::string next);

    // What the browser brings back, as it is.
    struct Answer {
        std::string code;
        std::string state;
        std::string issuer;
        std::string error;
    };
    struct Person {
        Caller caller;
        std::string id_token;
        std::string next;
    };
    // Code::unauthorized, Code::upstream_error.
    Task<Result<Person>> finish(Answer answer, std::string secret);

    // Where the browser goes to be logged out of the provider as well; empty: there is no such.
    Task<std::string> logout_address(std::string id_token);

private:
    Task<Result<json::object>> provider();
    void note(std::optional<Code> failure);  // of what the provider was asked
    Task<Result<Begun>> begin_there(std::string next);
    Task<Result<Person>> finish_there(Answer answer, std::string secret);
    Task<Result<std::string>> exchange(
        const json::object& about, std::string code, std::string verifier
    );
    Task<Result<Caller>> judge(const std::string& id_token, const std::string& nonce);
    Result<> check_sender(const json::object& about, const Answer& answer) const;

    Executor executor_;
    const Options options_;
    jwt::IssuerKeys& keys_;
    SessionStore& store_;
    Clock& clock_;
    net::Client client_;                    // on the executor, like what follows
    std::optional<json::object> provider_;  // as it said
    Time asked_at_{};
};

}  // namespace comfyd::auth::oidc
