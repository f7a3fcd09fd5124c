#include "auth/credentials.hpp"

#include <gtest/gtest.h>

#include <functional>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>

#include "auth/api_key.hpp"
#include "auth/identity_book.hpp"
#include "auth/memory_identities.hpp"
#include "base/wait_for.hpp"

namespace comfyd::auth {
namespace {

// Whose key it is.
Result<Caller> ask(const Authenticator& keys, std::string_view authorization) {
    boost::asio::io_context context;
    auto answer = boost::asio::co_spawn(
        context.get_executor(), keys.authenticate(authorization), boost::asio::use_future
    );
    context.run();
    return answer.get();
}

std::unique_ptr<Authenticator> two_keys() {
    std::string upper = hash_key("second");
    for (char& c : upper) {
        c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    }
    return make_key_authenticator({{"one", "red", hash_key("first")}, {"two", "blue", upper}});
}

TEST(Keys, WithoutKeysEverybodyIsTheLocalCaller) {
    const auto keys = make_key_authenticator({});
    EXPECT_FALSE(keys->required());
    for (const char* header : {"", "Bearer anything", "nonsense"}) {
        const auto caller = ask(*keys, header);
        ASSERT_TRUE(caller) << header;
        EXPECT_EQ(caller->tenant, "local");
        EXPECT_EQ(caller->key_name, "");
        EXPECT_EQ(caller->scopes, kAllScopes);
    }
}

TEST(Keys, AKeyNamesItsTenant) {
    const auto keys = two_keys();
    EXPECT_TRUE(keys->required());
    for (const char* header :
         {"Bearer second", "bearer second", "BEARER   second ", " Bearer\tsecond"}) {
        const auto caller = ask(*keys, header);
        ASSERT_TRUE(caller) << header;
        EXPECT_EQ(caller->tenant, "blue");
        EXPECT_EQ(caller->key_name, "two");
    }
    const auto first = ask(*keys, "Bearer first");
    ASSERT_TRUE(first);
    EXPECT_EQ(first->tenant, "red");
    EXPECT_EQ(first->scopes, kTenantScopes);
}

TEST(Keys, AKeyMayBeAnOperators) {
    const auto keys = make_key_authenticator(
        {{"one", "red", hash_key("first")}, {"boss", "red", hash_key("second"), true}}
    );
    EXPECT_FALSE(ask(*keys, "Bearer first")->may(Scope::admin));
    EXPECT_TRUE(ask(*keys, "Bearer second")->may(Scope::admin));
}

TEST(Keys, AKeyHasTheScopesOfItsTenant) {
    const auto keyed = make_key_authenticator({{"one", "red", hash_key("first")}});
    EXPECT_TRUE(keyed->required());
    EXPECT_TRUE(ask(*keyed, "Bearer first")->may(Scope::jobs_write));
    EXPECT_FALSE(ask(*keyed, "Bearer first")->may(Scope::metrics_read));
    EXPECT_FALSE(ask(*keyed, ""));
}

TEST(Keys, RefusesEverythingElse) {
    const auto keys = two_keys();
    for (const std::string& header :
         {std::string("Bearer"),
          std::string("Bearer "),
          std::string("first"),
          std::string("Basic first"),
          std::string("Bearerfirst"),
          std::string("Bearer First"),
          std::string("Bearer first second"),
          std::string("Bearer fir"),
          "Bearer " + hash_key("first"),
          "Bearer " + std::string(1'000'000, 'x'),
          std::string("Bearer first\0", 13)}) {
        const auto caller = ask(*keys, header);
        ASSERT_FALSE(caller) << header.substr(0, 100);
        EXPECT_EQ(caller.error().code, Code::unauthorized);
    }
}

TEST(Keys, SaysHowToSendAKey) {
    const auto caller = ask(*two_keys(), "");
    ASSERT_FALSE(caller);
    EXPECT_EQ(caller.error().code, Code::unauthorized);
    EXPECT_NE(caller.error().message.find("Authorization: Bearer <key>"), std::string::npos);
}

TEST(Keys, AnEmptyHashInTheConfigurationLetsNobodyIn) {
    const auto keys = make_key_authenticator({{"broken", "red", ""}});
    EXPECT_FALSE(ask(*keys, "Bearer "));
    EXPECT_FALSE(ask(*keys, "Bearer x"));
}

TEST(Keys, HashesAreShaTwoFiftySix) {
    EXPECT_EQ(hash_key("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

// Keys that were made while comfyd runs, over a store in memory.
class MadeKeys : public testing::Test {
protected:
    MadeKeys() { run(book_.refresh()); }

    template <class T>
    T run(Task<T> task) {
        return run_task(context_, std::move(task));
    }
    // Its text.
    std::string make(const std::function<void(KeyRecord&)>& change = {}) {
        KeyRecord key;
        key.id = make_key_id();
        key.name = "made";
        key.tenant = "acme";
        key.created_at = clock_.now();
        const std::string text = make_key(key.id);
        key.sha256 = sha256(text);
        if (change) {
            change(key);
        }
        EXPECT_TRUE(run(book_.save(key)));
        return text;
    }
    KeyRecord record(const std::string& text) {
        return book_.directory().now()->find_key(id_of_key(text).value())->record;
    }
    Result<Caller> use(const std::string& text) { return ask(*authenticator_, "Bearer " + text); }

    boost::asio::io_context context_;
    ManualClock clock_;
    MemoryIdentities store_;
    IdentityBook book_{
        context_.get_executor(),
        {{{"old", "red", hash_key("of the configuration")}}, {}},
        clock_,
        store_
    };
    std::unique_ptr<Authenticator> authenticator_ =
        make_authenticator(AuthOptions{book_.directory(), clock_});
};

TEST_F(MadeKeys, NameTheirTenantAndWhatTheyMayDo) {
    const std::string text = make([](KeyRecord& key) { key.scopes = {Scope::jobs_read}; });
    const auto caller = use(text);
    ASSERT_TRUE(caller) << caller.error().message;
    EXPECT_EQ(caller->tenant, "acme");
    EXPECT_EQ(caller->key_name, "made");
    EXPECT_EQ(caller->scopes, Scopes{Scope::jobs_read});
    EXPECT_EQ(use("of the configuration")->tenant, "red");
}

TEST_F(MadeKeys, AreRefusedWithAnyLetterChanged) {
    const std::string text = make();
    const std::string other = make();
    for (std::size_t i = 0; i < text.size(); ++i) {
        std::string changed = text;
        changed[i] = changed[i] == 'x' ? 'y' : 'x';
        EXPECT_FALSE(use(changed)) << i;
    }
    EXPECT_FALSE(use(make_key(*id_of_key(text)))) << "another secret of the same id";
    EXPECT_FALSE(use(make_key(make_key_id()))) << "an id that nobody has";
    EXPECT_FALSE(use(text.substr(0, text.size() - 1)));
    EXPECT_TRUE(use(other));
}

TEST_F(MadeKeys, EndWhenTheyExpireOrAreRevoked) {
    const std::string text =
        make([this](KeyRecord& key) { key.expires_at = clock_.now() + Millis(1'000); });
    const std::string lasting = make();
    EXPECT_TRUE(use(text));
    clock_.advance(Millis(999));
    EXPECT_TRUE(use(text));
    clock_.advance(Millis(1));
    EXPECT_EQ(use(text).error().code, Code::unauthorized);
    EXPECT_TRUE(use(lasting));
    KeyRecord revoked = record(lasting);
    revoked.revoked_at = clock_.now();
    EXPECT_TRUE(run(book_.save(revoked)));
    EXPECT_EQ(use(lasting).error().message, "the API key was revoked");
}

TEST_F(MadeKeys, AreGoodForAWhileAfterTheirRotation) {
    const std::string old = make();
    KeyRecord key = record(old);
    const std::string fresh = make_key(key.id);
    key.previous_sha256 = key.sha256;
    key.previous_until = clock_.now() + Millis(60'000);
    key.sha256 = sha256(fresh);
    EXPECT_TRUE(run(book_.save(key)));
    EXPECT_TRUE(use(old));
    EXPECT_TRUE(use(fresh));
    clock_.advance(Millis(60'000));
    EXPECT_FALSE(use(old));
    EXPECT_TRUE(use(fresh));
}

TEST_F(MadeKeys, OfADisabledTenantAreForbidden) {
    const std::string text = make();
    Tenant tenant;
    tenant.name = "acme";
    tenant.disabled = true;
    EXPECT_TRUE(run(book_.save(tenant)));
    EXPECT_EQ(use(text).error().code, Code::forbidden);
    tenant = *book_.directory().now()->find_tenant("acme");
    tenant.disabled = false;
    EXPECT_TRUE(run(book_.save(tenant)));
    EXPECT_TRUE(use(text));
}

TEST_F(MadeKeys, ChangesOfOtherNodesAreSeenAtTheNextLook) {
    IdentityBook other(context_.get_executor(), {}, clock_, store_);
    run(other.refresh());
    const std::string text = make();
    run(other.refresh());
    const auto there = make_authenticator(AuthOptions{other.directory(), clock_});
    EXPECT_TRUE(ask(*there, "Bearer " + text));
    EXPECT_TRUE(run(book_.remove_key(record(text).id)).value());
    EXPECT_TRUE(ask(*there, "Bearer " + text));
    run(other.refresh());
    EXPECT_FALSE(ask(*there, "Bearer " + text));
}

TEST_F(MadeKeys, WhoeverIsSlowerDecidesAnew) {
    IdentityBook other(context_.get_executor(), {}, clock_, store_);
    const std::string text = make();
    run(other.refresh());
    KeyRecord here = record(text);
    KeyRecord there = other.directory().now()->find_key(here.id)->record;
    here.name = "here";
    there.name = "there";
    EXPECT_TRUE(run(book_.save(here)));
    EXPECT_EQ(run(other.save(there)).error().code, Code::conflict);
}

// The ledger is told once the book stops; on the way of a request nothing is written.
TEST_F(MadeKeys, WhenTheyWereUsedIsWrittenBehind) {
    const std::string text = make();
    const std::string unused = make();
    const Time first = clock_.now();
    EXPECT_TRUE(use(text));
    clock_.advance(Millis(59'000));
    EXPECT_TRUE(use(text));
    EXPECT_TRUE(run(store_.all_identities())->uses.empty());
    boost::asio::post(context_, [this] { book_.start(); });
    run(book_.stop());
    const auto uses = run(store_.all_identities())->uses;
    ASSERT_EQ(uses.size(), 1U);
    EXPECT_EQ(uses.begin()->first, record(text).id);
    EXPECT_LT(first - uses.begin()->second, Millis(1'000));
}

TEST_F(MadeKeys, WhatTheConfigurationSaysStays) {
    Tenant mine;
    mine.name = "acme";
    mine.weight = 3;
    IdentityBook book(context_.get_executor(), {{}, {mine}}, clock_, store_);
    run(book.refresh());
    Tenant changed = mine;
    changed.weight = 4;
    EXPECT_EQ(run(book.save(changed)).error().code, Code::conflict);
    EXPECT_EQ(book.directory().now()->find_tenant("acme")->weight, 3);
}

}  // namespace
}  // namespace comfyd::auth
