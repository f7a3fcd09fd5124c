#include "cluster/redis/url.hpp"

#include <gtest/gtest.h>

namespace comfyd::cluster::redis {
namespace {

TEST(RedisUrl, OfOneServer) {
    const auto plain = Url::parse("redis://cache.example");
    ASSERT_TRUE(plain);
    EXPECT_EQ(plain->hosts, (std::vector<Address>{{"cache.example", 6379}}));
    EXPECT_FALSE(plain->tls);
    EXPECT_FALSE(plain->has_sentinels());

    const auto full = Url::parse("rediss://an%3An:p%40ss@[::1]:7000/3?ca=/etc/ca.pem");
    ASSERT_TRUE(full);
    EXPECT_TRUE(full->tls);
    EXPECT_EQ(full->user, "an:n");
    EXPECT_EQ(full->password, "p@ss");
    EXPECT_EQ(full->hosts, (std::vector<Address>{{"::1", 7000}}));
    EXPECT_EQ(full->db, 3);
    EXPECT_EQ(full->ca_file, "/etc/ca.pem");

    EXPECT_EQ(Url::parse("redis://:secret@localhost:1")->password, "secret");
}

TEST(RedisUrl, OfSentinels) {
    const auto url = Url::parse("redis+sentinel://:secret@one,two:27000/main/2");
    ASSERT_TRUE(url);
    EXPECT_TRUE(url->has_sentinels());
    EXPECT_EQ(url->hosts, (std::vector<Address>{{"one", 26379}, {"two", 27000}}));
    EXPECT_EQ(url->service, "main");
    EXPECT_EQ(url->db, 2);
}

TEST(RedisUrl, MayBeLogged) {
    EXPECT_EQ(Url::parse("redis://user:secret@h:1/4")->to_string(), "redis://h:1/4");
    EXPECT_EQ(
        Url::parse("redis+sentinel://:secret@a,b/main")->to_string(),
        "redis+sentinel://a:26379,b:26379/main"
    );
}

TEST(RedisUrl, ThatMakesNoSenseIsRefusedWithoutItsSecrets) {
    for (const char* text :
         {"http://secret@h",
          "redis://",
          "redis://secret@",
          "redis://secret@h:0",
          "redis://secret@h:65536",
          "redis://secret@h:1/x",
          "redis://secret@h/-1",
          "redis://secret@h,h2",
          "redis://%zz:secret@h",
          "redis://secret@h?ca=x",
          "rediss://secret@h?cert=x",
          "redis+sentinel://secret@h",
          "redis://secret@[::1",
          "secret"}) {
        const auto url = Url::parse(text);
        ASSERT_FALSE(url) << text;
        EXPECT_EQ(url.error().code, Code::invalid_argument);
        EXPECT_EQ(url.error().message.find("secret"), std::string::npos) << url.error().message;
    }
}

}  // namespace
}  // namespace comfyd::cluster::redis
