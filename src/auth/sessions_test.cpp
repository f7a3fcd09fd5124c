#include "auth/sessions.hpp"

#include <gmock/gmock.h>

#include "auth/api_key.hpp"
#include "auth/browser_token.hpp"
#include "auth/memory_sessions.hpp"
#include "net/test_support.hpp"

namespace comfyd::auth {
namespace {

using net::test::Loop;
using std::chrono::hours;
using std::chrono::minutes;
using testing::IsEmpty;
using testing::SizeIs;

constexpr const char* kConfigured = "a key of the configuration";

class SessionsTest : public testing::Test {
protected:
    SessionsTest() {
        key_.id = make_key_id();
        text_ = make_key(key_.id);
        key_.name = "ci";
        key_.tenant = "acme";
        key_.sha256 = sha256(text_);
        key_.scopes = {Scope::jobs_read};
        change();
    }
    // What holds from now on.
    void change() {
        AllIdentities all;
        all.records = {key_.to_record(), tenant_.to_record()};
        directory_.set(std::make_shared<const Directory>(
            std::vector<ApiKey>{{"app", "blue", hash_key(kConfigured)}},
            std::vector<Tenant>(),
            all,
            Directory()
        ));
    }
    Sessions sessions(std::string issuer = "https://id.example.com") {
        return Sessions({{}, std::move(issuer)}, store_, directory_, clock_);
    }
    std::string open(const std::string& key) {
        auto opened = loop_.run(sessions().open_by_key(key, {"192.0.2.1", "Browser\x01/1"}));
        EXPECT_TRUE(opened) << opened.error().message;
        return opened ? opened->token : "";
    }
    std::string open_by_issuer(const std::string& tenant = "acme") {
        Caller caller{tenant, "jo", {Scope::jobs_read, Scope::admin}, "pro"};
        auto opened = loop_.run(sessions().open_by_issuer(caller, "ey.the.token", {"::1", ""}));
        EXPECT_TRUE(opened) << opened.error().message;
        return opened ? opened->token : "";
    }
    Result<Sessions::Found> find(const std::string& token) {
        return loop_.run(sessions().find(token));
    }
    std::optional<Code> refused(const std::string& token) {
        const auto found = find(token);
        return found ? std::nullopt : std::optional(found.error().code);
    }

    Loop loop_;
    ManualClock clock_;
    MemorySessions store_;
    KeyRecord key_;
    std::string text_;
    Tenant tenant_{.name = "acme", .revision = 1};
    DirectoryBoard directory_{std::make_shared<const Directory>()};
};

TEST_F(SessionsTest, AKeyOpensOneThatIsThatKey) {
    const auto found = find(open(text_));
    ASSERT_TRUE(found);
    EXPECT_EQ(found->caller.tenant, "acme");
    EXPECT_EQ(found->caller.key_name, "ci");
    EXPECT_EQ(found->caller.scopes, key_.scopes);
    EXPECT_EQ(found->session.by, "key");
    EXPECT_EQ(found->session.address, "192.0.2.1");
    EXPECT_EQ(found->session.agent, "Browser/1");
    const auto other = find(open(kConfigured));
    ASSERT_TRUE(other);
    EXPECT_EQ(other->caller.tenant, "blue");
    EXPECT_EQ(other->caller.scopes, kTenantScopes);
}

TEST_F(SessionsTest, ABadKeyOpensNone) {
    for (const std::string& key : {std::string(), make_key(key_.id), std::string("ey.J.x")}) {
        const auto opened = loop_.run(sessions().open_by_key(key, {}));
        EXPECT_FALSE(opened);
    }
    EXPECT_THAT(*loop_.run(sessions().list({})), IsEmpty());
}

TEST_F(SessionsTest, EachLoginIsAnotherAndNothingStoredOpensIt) {
    const std::string first = open(text_);
    const std::string second = open(text_);
    EXPECT_NE(first, second);
    EXPECT_NE(first.substr(0, 16), second.substr(0, 16));
    const auto stored = loop_.run(store_.list_sessions({.now = clock_.now()}));
    ASSERT_TRUE(stored);
    ASSERT_THAT(*stored, SizeIs(2));
    for (const SessionRecord& record : *stored) {
        const std::string text = json::serialize(record.about);
        for (const std::string& token : {first, second}) {
            EXPECT_EQ(text.find(token.substr(17)), std::string::npos);
        }
    }
}

TEST_F(SessionsTest, WhatIsNotTheTokenIsRefused) {
    const std::string token = open(text_);
    std::string other = token;
    other.back() = other.back() == 'A' ? 'Q' : 'A';
    for (const std::string& shown :
         {std::string(),
          token.substr(0, 16),
          token.substr(0, 17),
          token + "A",
          other,
          make_browser_token(),
          token.substr(0, 17) + make_secret_text(),
          std::string(100'000, 'a')}) {
        EXPECT_EQ(refused(shown), Code::unauthorized) << shown.substr(0, 80);
    }
    EXPECT_EQ(refused(token), std::nullopt);
}

TEST_F(SessionsTest, EndsAfterEightHoursOfSilence) {
    const std::string token = open(text_);
    clock_.advance(hours(8) - Millis(1));
    EXPECT_EQ(refused(token), std::nullopt);
    clock_.advance(hours(8) - Millis(1));
    EXPECT_EQ(refused(token), std::nullopt) << "it was used meanwhile";
    clock_.advance(hours(8));
    EXPECT_EQ(refused(token), Code::unauthorized);
}

TEST_F(SessionsTest, EndsAfterADayHoweverItIsUsed) {
    const std::string token = open(text_);
    for (int i = 0; i < 4; ++i) {
        clock_.advance(hours(5) + minutes(59));
        EXPECT_EQ(refused(token), std::nullopt) << i;
    }
    clock_.advance(minutes(4));
    EXPECT_EQ(refused(token), Code::unauthorized);
}

TEST_F(SessionsTest, EndsWithItsKey) {
    const std::string token = open(text_);
    key_.scopes = {Scope::assets_read};
    change();
    EXPECT_EQ(find(token)->caller.scopes, key_.scopes) << "it may what the key may now";
    key_.revoked_at = clock_.now();
    change();
    EXPECT_EQ(refused(token), Code::unauthorized);
}

TEST_F(SessionsTest, EndsWithTheKeyThatARotationReplaces) {
    const std::string token = open(text_);
    key_.previous_sha256 = key_.sha256;
    key_.previous_until = clock_.now() + hours(1);
    key_.sha256 = sha256(make_key(key_.id));
    change();
    EXPECT_EQ(refused(token), std::nullopt);
    clock_.advance(hours(1));
    EXPECT_EQ(refused(token), Code::unauthorized);
}

TEST_F(SessionsTest, EndsWhenTheTenantIsDisabled) {
    const std::string by_key = open(text_);
    const std::string by_issuer = open_by_issuer();
    tenant_.disabled = true;
    change();
    EXPECT_EQ(refused(by_key), Code::forbidden);
    EXPECT_EQ(refused(by_issuer), Code::forbidden);
    EXPECT_FALSE(loop_.run(sessions().open_by_issuer({"acme", "jo", {}}, "", {})));
    tenant_.disabled = false;
    change();
    EXPECT_EQ(refused(by_key), Code::unauthorized) << "it has ended for good";
    EXPECT_EQ(refused(by_issuer), Code::unauthorized);
}

TEST_F(SessionsTest, OneOfTheIssuerIsWhatTheIssuerSaid) {
    const std::string token = open_by_issuer();
    const auto found = find(token);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->caller.tenant, "acme");
    EXPECT_EQ(found->caller.key_name, "jo");
    EXPECT_EQ(found->caller.tier, "pro");
    EXPECT_EQ(found->caller.scopes, (Scopes{Scope::jobs_read, Scope::admin}));
    EXPECT_EQ(found->session.by, "oidc");
    for (const char* issuer : {"", "https://other.example.com"}) {
        EXPECT_FALSE(loop_.run(sessions(issuer).find(token))) << "it is trusted no more";
    }
}

TEST_F(SessionsTest, ClosingTellsWhatTheIssuerSaidToTheTokenAlone) {
    const std::string token = open_by_issuer();
    const auto stored = loop_.run(store_.list_sessions({.now = clock_.now()}));
    ASSERT_TRUE(stored);
    EXPECT_EQ(json::serialize(stored->front().about).find("ey.the.token"), std::string::npos);
    EXPECT_EQ(*loop_.run(sessions().close(token.substr(0, 17) + make_secret_text())), "");
    EXPECT_EQ(refused(token), std::nullopt) << "a name alone ends nothing";
    EXPECT_EQ(*loop_.run(sessions().close(token)), "ey.the.token");
    EXPECT_EQ(refused(token), Code::unauthorized);
    EXPECT_EQ(*loop_.run(sessions().close(token)), "");
    EXPECT_EQ(*loop_.run(sessions().close("nonsense")), "");
}

TEST_F(SessionsTest, OwnersEndTheirOwnAndOperatorsAny) {
    const std::string mine = open(text_);
    const std::string theirs = open_by_issuer("blue");
    const Caller me = find(mine)->caller;
    const auto listed = loop_.run(sessions().list({.tenant = me.tenant, .owner = me.key_name}));
    ASSERT_THAT(*listed, SizeIs(1));
    EXPECT_EQ(listed->front().id, mine.substr(0, 16));
    EXPECT_FALSE(*loop_.run(sessions().end(theirs.substr(0, 16), me)));
    EXPECT_FALSE(
        *loop_.run(sessions().end(mine.substr(0, 16), Caller{me.tenant, "another", me.scopes}))
    ) << "another key of the tenant";
    EXPECT_EQ(refused(theirs), std::nullopt);
    EXPECT_TRUE(*loop_.run(sessions().end(mine.substr(0, 16), me)));
    EXPECT_TRUE(*loop_.run(sessions().end(theirs.substr(0, 16), std::nullopt)));
    EXPECT_EQ(refused(mine), Code::unauthorized);
    EXPECT_EQ(refused(theirs), Code::unauthorized);
}

TEST_F(SessionsTest, AnOwnerHasAHundredAtMost) {
    std::string first = open(text_);
    for (int i = 0; i < 100; ++i) {
        clock_.advance(Millis(1));
        open(text_);
    }
    EXPECT_EQ(refused(first), Code::unauthorized);
    EXPECT_THAT(*loop_.run(sessions().list({.limit = 1000})), SizeIs(100));
}

TEST_F(SessionsTest, ThePageTokenIsOfOneSession) {
    const std::string first = open(text_);
    const std::string second = open(text_);
    EXPECT_EQ(Sessions::page_token(first), Sessions::page_token(first));
    EXPECT_NE(Sessions::page_token(first), Sessions::page_token(second));
    EXPECT_EQ(Sessions::page_token(first).find(first.substr(17)), std::string::npos);
}

}  // namespace
}  // namespace comfyd::auth
