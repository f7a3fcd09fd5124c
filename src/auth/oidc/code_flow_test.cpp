// A provider on the loopback that says what it likes; what a browser brings back from it is
// believed only where all of it fits together.
#include "auth/oidc/code_flow.hpp"

#include <gmock/gmock.h>

#include <thread>

#include "auth/browser_token.hpp"
#include "auth/digest.hpp"
#include "auth/jwt/base64url.hpp"
#include "auth/jwt/issuer_test_support.hpp"
#include "auth/jwt/test_support.hpp"
#include "auth/memory_sessions.hpp"

namespace comfyd::auth::oidc {
namespace {

using jwt::test::Signer;
using testing::HasSubstr;
using testing::StartsWith;
using Fields = std::map<std::string, std::string>;

Fields fields_of(std::string_view text) {
    Fields fields;
    for (auto& [name, value] : net::parse_query(text)) {
        fields[name] = value;
    }
    return fields;
}

class CodeFlowTest : public testing::Test {
protected:
    CodeFlowTest() {
        describe({});
        issuer_.put_keys({signer_.jwk()});
        issuer_.answer("/token", [this](std::string body) { return exchange(body); });
        keys_.emplace(
            loop_.executor(), jwt::IssuerKeys::Options{issuer_.url(), "", "", kPatience}, clock_
        );
        CodeFlow::Options options;
        options.client_id = "comfyd";
        options.client_secret = "s3cret";
        options.return_url = "https://comfyd.example.com/login/callback";
        options.after_logout_url = "https://comfyd.example.com/login";
        options.claims.issuer = issuer_.url();
        options.claims.audience = "comfyd";
        flow_.emplace(loop_.executor(), std::move(options), *keys_, store_, clock_);
        loop_.run(start(*keys_));
    }
    ~CodeFlowTest() override { loop_.run(stop(*keys_)); }

    static Task<bool> start(jwt::IssuerKeys& keys) {
        keys.start();
        co_return true;
    }
    static Task<bool> stop(jwt::IssuerKeys& keys) {
        co_await keys.stop();
        co_return true;
    }
    void describe(json::object more) {
        json::object about{
            {"issuer", issuer_.url()},
            {"jwks_uri", issuer_.url() + "/keys"},
            {"authorization_endpoint", issuer_.url() + "/auth?of=acme"},
            {"token_endpoint", issuer_.url() + "/token"},
            {"end_session_endpoint", issuer_.url() + "/end"},
        };
        for (auto& member : more) {
            about[member.key()] = std::move(member.value());
        }
        issuer_.put("/.well-known/openid-configuration", json::serialize(about));
    }
    // The provider's side: the code of the one login that it was asked for, with PKCE.
    std::string exchange(const std::string& body) {
        exchanged_ = fields_of(body);
        const bool is_theirs = exchanged_["code"] == "the-code" &&
                               jwt::to_base64url(bytes_of(sha256(exchanged_["code_verifier"]))) ==
                                   asked_["code_challenge"];
        return is_theirs ? json::serialize(json::object{
                               {"access_token", "x"}, {"id_token", signer_.token(claims_)}
                           })
                         : "";
    }
    CodeFlow::Begun begin(std::string next = "/next") {
        auto begun = loop_.run(flow_->begin(std::move(next)));
        EXPECT_TRUE(begun) << begun.error().message;
        asked_ = fields_of(begun->address.substr(begun->address.find('?') + 1));
        const std::int64_t now = to_unix_ms(clock_.now()) / 1000;
        claims_ = {
            {"iss", issuer_.url()},
            {"aud", "comfyd"},
            {"sub", "jo"},
            {"nonce", asked_["nonce"]},
            {"iat", now},
            {"exp", now + 300},
        };
        return *begun;
    }
    CodeFlow::Answer answer() { return {"the-code", asked_["state"], "", ""}; }
    Result<CodeFlow::Person> finish(CodeFlow::Answer answer, const std::string& secret) {
        return loop_.run(flow_->finish(std::move(answer), secret));
    }

    static constexpr Millis kPatience = net::test::kPatience;
    net::test::Loop loop_;
    ManualClock clock_;
    MemorySessions store_;
    Signer signer_{Signer::Kind::p256, "k"};
    Fields asked_;      // in the address of the provider
    Fields exchanged_;  // for the code
    json::object claims_;
    jwt::test::Issuer issuer_;
    std::optional<jwt::IssuerKeys> keys_;
    std::optional<CodeFlow> flow_;
};

TEST_F(CodeFlowTest, AProviderThatIsAwayIsNotAskedForEveryLogin) {
    const std::string path = "/.well-known/openid-configuration";
    while (keys_->counts().fetches == 0) {
        std::this_thread::yield();  // it asks the same
    }
    ASSERT_TRUE(loop_.run(flow_->begin("/")));
    clock_.advance(std::chrono::minutes(11));
    issuer_.put(path, "sorry", 503);
    const int before = issuer_.asked(path);
    for (int i = 0; i < 50; ++i) {
        const auto refused = loop_.run(flow_->begin("/"));
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code, Code::upstream_error);
        EXPECT_THAT(refused.error().message, StartsWith("the login provider cannot be used now"));
    }
    EXPECT_EQ(issuer_.asked(path) - before, 5);
    EXPECT_EQ(keys_->itself().state(), CircuitBreaker::State::open);

    describe({});
    clock_.advance(std::chrono::minutes(1));
    begin();
    EXPECT_EQ(keys_->itself().state(), CircuitBreaker::State::closed);
}

// Strangers could otherwise lock everybody out.
TEST_F(CodeFlowTest, CodesThatItRefusesAreNoFaultOfTheProvider) {
    for (int i = 0; i < 10; ++i) {
        const auto begun = begin();
        auto wrong = answer();
        wrong.code = "made-up";
        EXPECT_FALSE(finish(wrong, begun.secret));
    }
    EXPECT_EQ(keys_->itself().state(), CircuitBreaker::State::closed);
    const auto begun = begin();
    EXPECT_TRUE(finish(answer(), begun.secret));
}

TEST_F(CodeFlowTest, SomebodyLogsIn) {
    const auto begun = begin();
    EXPECT_THAT(begun.address, StartsWith(issuer_.url() + "/auth?of=acme&"));
    EXPECT_EQ(asked_["response_type"], "code");
    EXPECT_EQ(asked_["client_id"], "comfyd");
    EXPECT_EQ(asked_["redirect_uri"], "https://comfyd.example.com/login/callback");
    EXPECT_EQ(asked_["scope"], "openid");
    EXPECT_EQ(asked_["code_challenge_method"], "S256");
    const auto person = finish(answer(), begun.secret);
    ASSERT_TRUE(person) << person.error().message;
    EXPECT_EQ(person->caller.tenant, "jo");
    EXPECT_EQ(person->caller.key_name, "jo");
    EXPECT_EQ(person->caller.scopes, kTenantScopes);
    EXPECT_EQ(person->next, "/next");
    EXPECT_EQ(exchanged_["redirect_uri"], "https://comfyd.example.com/login/callback");
    EXPECT_FALSE(exchanged_.contains("client_secret")) << "it is in the header";
}

TEST_F(CodeFlowTest, AStateIsGoodOnce) {
    const auto begun = begin();
    ASSERT_TRUE(finish(answer(), begun.secret));
    const auto again = finish(answer(), begun.secret);
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code, Code::unauthorized);
    EXPECT_EQ(issuer_.asked("/token"), 1);
}

TEST_F(CodeFlowTest, AStateIsGoodForTenMinutes) {
    auto begun = begin();
    clock_.advance(std::chrono::minutes(10) - Millis(1));
    claims_["exp"] = to_unix_ms(clock_.now()) / 1000 + 300;
    EXPECT_TRUE(finish(answer(), begun.secret));
    begun = begin();
    clock_.advance(std::chrono::minutes(10));
    claims_["exp"] = to_unix_ms(clock_.now()) / 1000 + 300;
    EXPECT_FALSE(finish(answer(), begun.secret));
}

TEST_F(CodeFlowTest, AnotherBrowserNeitherFinishesNorSpoilsIt) {
    const auto mine = begin();
    const auto state = answer();
    for (const std::string& secret : {std::string(), make_secret_text(), state.state}) {
        const auto refused = finish(state, secret);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code, Code::unauthorized);
    }
    EXPECT_EQ(issuer_.asked("/token"), 0);
    EXPECT_TRUE(finish(state, mine.secret));
}

TEST_F(CodeFlowTest, AnInventedStateIsNone) {
    const auto begun = begin();
    for (const std::string& state :
         {std::string(),
          std::string("x"),
          make_browser_token(),
          asked_["state"].substr(0, 17) + make_secret_text(),
          asked_["state"] + "A"}) {
        EXPECT_FALSE(finish({"the-code", state, "", ""}, begun.secret)) << state;
    }
}

TEST_F(CodeFlowTest, TheAnswerIsOfTheProviderThatWasAsked) {
    auto begun = begin();
    auto of_another = answer();
    of_another.issuer = issuer_.url() + "/";
    EXPECT_FALSE(finish(of_another, begun.secret));
    EXPECT_EQ(issuer_.asked("/token"), 0) << "no code goes to the wrong one";
    begun = begin();
    auto of_this = answer();
    of_this.issuer = issuer_.url();
    EXPECT_TRUE(finish(of_this, begun.secret));
}

TEST_F(CodeFlowTest, AProviderThatNamesItselfAlwaysDoes) {
    describe({{"authorization_response_iss_parameter_supported", true}});
    const auto begun = begin();
    EXPECT_FALSE(finish(answer(), begun.secret));
}

TEST_F(CodeFlowTest, AnIdTokenOfSomethingElseIsRefused) {
    const std::vector<std::function<void(json::object&)>> wrongs{
        [](json::object& claims) { claims["nonce"] = "another"; },
        [](json::object& claims) { claims.erase("nonce"); },
        [](json::object& claims) { claims["aud"] = "another"; },
        [](json::object& claims) { claims.erase("aud"); },
        [](json::object& claims) { claims["aud"] = json::array{"comfyd", "another"}; },
        [](json::object& claims) { claims["azp"] = "another"; },
        [](json::object& claims) { claims["iss"] = "https://another.example.com"; },
        [](json::object& claims) { claims["exp"] = 1; },
        [](json::object& claims) { claims.erase("exp"); },
        [](json::object& claims) { claims.erase("sub"); },
        [](json::object& claims) { claims["sub"] = "a\nb"; },
    };
    for (std::size_t i = 0; i < wrongs.size(); ++i) {
        const auto begun = begin();
        wrongs[i](claims_);
        const auto refused = finish(answer(), begun.secret);
        ASSERT_FALSE(refused) << i;
        EXPECT_EQ(refused.error().code, Code::unauthorized) << i;
    }
    const auto begun = begin();
    claims_["aud"] = json::array{"comfyd", "another"};
    claims_["azp"] = "comfyd";
    EXPECT_TRUE(finish(answer(), begun.secret));
}

TEST_F(CodeFlowTest, AnIdTokenOfAnotherKeyOrOfTheSecretIsRefused) {
    const Signer stranger(Signer::Kind::p256, "k");
    auto begun = begin();
    issuer_.answer("/token", [&](std::string) {
        return json::serialize(json::object{{"id_token", stranger.token(claims_)}});
    });
    EXPECT_FALSE(finish(answer(), begun.secret));
    begun = begin();
    issuer_.answer("/token", [&](std::string) {
        return json::serialize(json::object{
            {"id_token",
             jwt::test::hs_token("s3cret", R"({"alg":"HS256"})", json::serialize(claims_))}
        });
    });
    EXPECT_FALSE(finish(answer(), begun.secret));
}

TEST_F(CodeFlowTest, ARefusalIsToldInItsOwnWordsOnly) {
    auto begun = begin();
    auto refused = finish({"", asked_["state"], "", "access_denied"}, begun.secret);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr("access_denied"));
    begun = begin();
    refused = finish({"", asked_["state"], "", "<script>"}, begun.secret);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, testing::Not(HasSubstr("script")));
}

TEST_F(CodeFlowTest, AProviderThatCannotBeUsedIsTold) {
    auto begun = begin();
    issuer_.answer("/token", [](std::string) { return std::string("nonsense"); });
    auto failed = finish(answer(), begun.secret);
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, Code::upstream_error);
    clock_.advance(std::chrono::minutes(10));
    describe({{"token_endpoint", "http://id.example.com/token"}});
    EXPECT_EQ(loop_.run(flow_->begin("/")).error().code, Code::upstream_error);
    issuer_.put("/.well-known/openid-configuration", "{}", 404);
    EXPECT_EQ(loop_.run(flow_->begin("/")).error().code, Code::upstream_error);
}

TEST_F(CodeFlowTest, ASecretGoesInTheBodyWhereTheProviderWantsIt) {
    describe({{"token_endpoint_auth_methods_supported", json::array{"client_secret_post"}}});
    const auto begun = begin();
    EXPECT_TRUE(finish(answer(), begun.secret));
    EXPECT_EQ(exchanged_["client_secret"], "s3cret");
}

TEST_F(CodeFlowTest, LogoutGoesOnAtTheProvider) {
    const std::string address = loop_.run(flow_->logout_address("ey.a.b"));
    EXPECT_THAT(address, StartsWith(issuer_.url() + "/end?"));
    auto fields = fields_of(address.substr(address.find('?') + 1));
    EXPECT_EQ(fields["id_token_hint"], "ey.a.b");
    EXPECT_EQ(fields["post_logout_redirect_uri"], "https://comfyd.example.com/login");
}

}  // namespace
}  // namespace comfyd::auth::oidc
