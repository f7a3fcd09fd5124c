#include "auth/keys.hpp"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

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

Keys two_keys() {
    std::string upper = hash_key("second");
    for (char& c : upper) {
        c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    }
    return Keys({{"one", "red", hash_key("first")}, {"two", "blue", upper}});
}

TEST(Keys, WithoutKeysEverybodyIsTheLocalCaller) {
    const Keys keys({});
    EXPECT_FALSE(keys.required());
    for (const char* header : {"", "Bearer anything", "nonsense"}) {
        const auto caller = ask(keys, header);
        ASSERT_TRUE(caller) << header;
        EXPECT_EQ(caller->tenant, "local");
        EXPECT_EQ(caller->key_name, "");
        EXPECT_EQ(caller->scopes, kAllScopes);
    }
}

TEST(Keys, AKeyNamesItsTenant) {
    const Keys keys = two_keys();
    EXPECT_TRUE(keys.required());
    for (const char* header :
         {"Bearer second", "bearer second", "BEARER   second ", " Bearer\tsecond"}) {
        const auto caller = ask(keys, header);
        ASSERT_TRUE(caller) << header;
        EXPECT_EQ(caller->tenant, "blue");
        EXPECT_EQ(caller->key_name, "two");
    }
    const auto first = ask(keys, "Bearer first");
    ASSERT_TRUE(first);
    EXPECT_EQ(first->tenant, "red");
    EXPECT_EQ(first->scopes, kTenantScopes);
}

TEST(Keys, AKeyMayBeAnOperators) {
    const Keys keys({{"one", "red", hash_key("first")}, {"boss", "red", hash_key("second"), true}});
    EXPECT_FALSE(ask(keys, "Bearer first")->may(Scope::admin));
    EXPECT_TRUE(ask(keys, "Bearer second")->may(Scope::admin));
}

TEST(Keys, TheConfigurationsKeysAreOneKindOfAuthenticator) {
    const auto open = make_authenticator({});
    EXPECT_FALSE(open->required());
    EXPECT_TRUE(ask(*open, "")->may(Scope::admin));
    const auto keyed = make_authenticator({{{"one", "red", hash_key("first")}}});
    EXPECT_TRUE(keyed->required());
    EXPECT_TRUE(ask(*keyed, "Bearer first")->may(Scope::jobs_write));
    EXPECT_FALSE(ask(*keyed, "Bearer first")->may(Scope::metrics_read));
    EXPECT_FALSE(ask(*keyed, ""));
}

TEST(Keys, RefusesEverythingElse) {
    const Keys keys = two_keys();
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
        const auto caller = ask(keys, header);
        ASSERT_FALSE(caller) << header.substr(0, 100);
        EXPECT_EQ(caller.error().code, Code::unauthorized);
    }
}

TEST(Keys, SaysHowToSendAKey) {
    const auto caller = ask(two_keys(), "");
    ASSERT_FALSE(caller);
    EXPECT_EQ(caller.error().code, Code::unauthorized);
    EXPECT_NE(caller.error().message.find("Authorization: Bearer <key>"), std::string::npos);
}

TEST(Keys, AnEmptyHashInTheConfigurationLetsNobodyIn) {
    const Keys keys({{"broken", "red", ""}});
    EXPECT_FALSE(ask(keys, "Bearer "));
    EXPECT_FALSE(ask(keys, "Bearer x"));
}

TEST(Keys, HashesAreShaTwoFiftySix) {
    EXPECT_EQ(hash_key("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace comfyd::auth
