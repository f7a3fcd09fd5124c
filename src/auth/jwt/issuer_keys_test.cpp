// An issuer on the loopback: its keys are found, kept, changed and lost.
#include "auth/jwt/issuer_keys.hpp"

#include <gmock/gmock.h>

#include "auth/jwt/issuer_test_support.hpp"
#include "auth/jwt/test_support.hpp"
#include "auth/jwt/tokens.hpp"
#include "auth/oidc/discovery.hpp"
#include "net/test_support.hpp"

namespace comfyd::auth::jwt::test {
namespace {

class IssuerTokens : public testing::Test {
protected:
    ~IssuerTokens() override {
        if (keys_) {
            loop_.run(keys_->stop());
        }
    }
    void start(std::string jwks_url = "") {
        IssuerKeys::Options options{issuer_.url(), std::move(jwks_url)};
        options.patience = net::test::kPatience;
        keys_ = std::make_unique<IssuerKeys>(loop_.executor(), std::move(options), clock_);
        ClaimRules rules;
        rules.issuer = issuer_.url();
        rules.audience = "comfyd";
        tokens_ = std::make_unique<Tokens>(Tokens::Options{"", rules}, keys_.get(), clock_);
        loop_.run(begin(*keys_));
    }
    static Task<bool> begin(IssuerKeys& keys) {
        keys.start();
        co_return true;
    }
    Result<Caller> verify(const std::string& text) {
        return loop_.run(tokens_->verify(text, sha256(text)));
    }
    json::object claims() const {
        return {
            {"iss", issuer_.url()},
            {"aud", "comfyd"},
            {"sub", "acme"},
            {"scope", "jobs:read"},
            {"exp", to_unix_ms(clock_.now()) / 1000 + 600},
        };
    }

    ManualClock clock_;
    Issuer issuer_;
    net::test::Loop loop_;
    std::unique_ptr<IssuerKeys> keys_;
    std::unique_ptr<Tokens> tokens_;
    const Signer first_{Signer::Kind::p256, "first"};
    const Signer second_{Signer::Kind::ed25519, "second"};
};

TEST_F(IssuerTokens, AreCheckedWithTheKeysThatItPublishes) {
    issuer_.put_keys({first_.jwk()});
    start();
    const auto caller = verify(first_.token(claims()));
    ASSERT_TRUE(caller) << caller.error().message;
    EXPECT_EQ(caller->tenant, "acme");
    EXPECT_EQ(caller->scopes, Scopes{Scope::jobs_read});
    EXPECT_FALSE(verify(Signer(Signer::Kind::p256, "first").token(claims())));
    EXPECT_EQ(issuer_.asked("/keys"), 1);
    EXPECT_FALSE(verify(hs_token("", R"({"alg":"HS256"})", json::serialize(claims()))));
}

TEST_F(IssuerTokens, AnUnknownKeyIsAskedForOnceInAWhile) {
    issuer_.put_keys({first_.jwk()});
    start();
    EXPECT_TRUE(verify(first_.token(claims())));
    issuer_.put_keys({first_.jwk(), second_.jwk()});
    EXPECT_FALSE(verify(second_.token(claims()))) << "it was asked just now";
    EXPECT_EQ(issuer_.asked("/keys"), 1);
    clock_.advance(std::chrono::seconds(30));
    EXPECT_TRUE(verify(second_.token(claims())));
    EXPECT_EQ(issuer_.asked("/keys"), 2);
    for (int i = 0; i < 20; ++i) {
        const Signer stranger(Signer::Kind::ed25519, "stranger-" + std::to_string(i));
        EXPECT_FALSE(verify(stranger.token(claims())));
    }
    EXPECT_EQ(issuer_.asked("/keys"), 2) << "strangers cannot make us ask";
}

TEST_F(IssuerTokens, AKeyThatIsWithdrawnEndsWhatWasRemembered) {
    issuer_.put_keys({first_.jwk(), second_.jwk()});
    start();
    const std::string text = first_.token(claims());
    EXPECT_TRUE(verify(text));
    issuer_.put_keys({second_.jwk()});
    clock_.advance(std::chrono::seconds(30));
    EXPECT_FALSE(verify(Signer(Signer::Kind::ed25519, "new").token(claims())));
    EXPECT_FALSE(verify(text));
    EXPECT_TRUE(verify(second_.token(claims())));
}

TEST_F(IssuerTokens, OldKeysStayGoodForADayWhenTheIssuerIsAway) {
    issuer_.put_keys({first_.jwk()});
    start();
    EXPECT_TRUE(verify(first_.token(claims())));
    issuer_.put("/keys", "sorry", 500);
    clock_.advance(std::chrono::seconds(30));
    EXPECT_FALSE(verify(second_.token(claims())));
    EXPECT_GE(keys_->counts().failures, 1U);
    clock_.advance(std::chrono::hours(23));
    EXPECT_TRUE(verify(first_.token(claims())));
    clock_.advance(std::chrono::hours(1));
    EXPECT_EQ(verify(first_.token(claims())).error().code, Code::upstream_error);
    issuer_.put_keys({first_.jwk()});
    clock_.advance(std::chrono::seconds(30));
    EXPECT_TRUE(verify(first_.token(claims())));
}

// Whatever is asked of us meanwhile, and by how many.
TEST_F(IssuerTokens, AnIssuerThatIsAwayIsLeftAlone) {
    issuer_.put("/keys", "sorry", 503);
    start();
    // The cool-down is over each time; the breaker is what counts.
    for (;;) {
        EXPECT_FALSE(verify(first_.token(claims())));
        if (keys_->itself().state() == CircuitBreaker::State::open) {
            break;
        }
        clock_.advance(std::chrono::seconds(30));
    }
    const int asked = issuer_.asked("/keys");
    EXPECT_EQ(asked, 5);
    for (int i = 0; i < 50; ++i) {
        EXPECT_EQ(verify(first_.token(claims())).error().code, Code::upstream_error);
    }
    EXPECT_EQ(issuer_.asked("/keys"), asked) << "requests do not ask it";

    issuer_.put_keys({first_.jwk()});
    clock_.advance(std::chrono::seconds(30));
    EXPECT_EQ(keys_->itself().state(), CircuitBreaker::State::half_open);
    EXPECT_TRUE(verify(first_.token(claims())));
    EXPECT_EQ(keys_->itself().state(), CircuitBreaker::State::closed);
}

TEST_F(IssuerTokens, WithoutKeysNobodyIsRefusedForGood) {
    issuer_.put("/keys", "not there", 404);
    start();
    EXPECT_EQ(verify(first_.token(claims())).error().code, Code::upstream_error);
}

TEST_F(IssuerTokens, WhatItSaysOfItselfMustBeRight) {
    issuer_.put_keys({first_.jwk()});
    const std::string path = "/.well-known/openid-configuration";
    const std::string keys = issuer_.url() + "/keys";
    for (const auto& [status, body] : std::vector<std::pair<int, std::string>>{
             {200, R"({"issuer":"https://other.example.com","jwks_uri":")" + keys + "\"}"},
             {200, R"({"issuer":")" + issuer_.url() + R"(/","jwks_uri":")" + keys + "\"}"},
             {200, R"({"issuer":")" + issuer_.url() + R"(","jwks_uri":"http://10.0.0.1/"})"},
             {200, R"({"issuer":")" + issuer_.url() + R"(","jwks_uri":"file:///etc/passwd"})"},
             {200, R"({"issuer":")" + issuer_.url() + "\"}"},
             {200, std::string(300 * 1024, ' ') + "{}"},
             {302, keys},
             {200, "<html>"}
         }) {
        issuer_.put(path, body, status);
        start();
        EXPECT_EQ(verify(first_.token(claims())).error().code, Code::upstream_error)
            << body.substr(0, 100);
        loop_.run(keys_->stop());
    }
    EXPECT_EQ(issuer_.asked("/keys"), 0);
    start(keys);
    EXPECT_TRUE(verify(first_.token(claims()))) << "the address of the keys is configured";
}

TEST_F(IssuerTokens, KeysComeByHttpsOrFromThisMachine) {
    for (const char* good :
         {"https://id.example.com/keys", "http://127.0.0.1:9/", "http://localhost/"}) {
        EXPECT_TRUE(oidc::is_safe_address(good)) << good;
    }
    for (const char* bad :
         {"http://id.example.com/keys",
          "ftp://127.0.0.1/",
          "",
          "keys",
          "http://127.evil.example.com/",
          "ws://127.0.0.1/"}) {
        EXPECT_FALSE(oidc::is_safe_address(bad)) << bad;
    }
    issuer_.put_keys({});
    start();
}

}  // namespace
}  // namespace comfyd::auth::jwt::test
