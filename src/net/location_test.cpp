#include "net/location.hpp"

#include <gtest/gtest.h>

#include <string>

namespace comfyd::net {
namespace {

TEST(Location, IsResolvedAgainstItsUrl) {
    const auto base = Url::parse("https://a.example:8443/x/y/z.png?q=1");
    ASSERT_TRUE(base);
    const auto resolved = [&base](std::string_view reference) {
        const auto url = resolve_location(*base, reference);
        return url ? url->to_string() : std::string("refused");
    };
    EXPECT_EQ(resolved("http://b.example/p"), "http://b.example/p");
    EXPECT_EQ(resolved("//b.example/p"), "https://b.example/p");
    EXPECT_EQ(resolved("/p?a:b=1#part"), "https://a.example:8443/p?a:b=1");
    EXPECT_EQ(resolved("p.png"), "https://a.example:8443/x/y/p.png");
    EXPECT_EQ(resolved("../p/./q/?r=../s"), "https://a.example:8443/x/p/q/?r=../s");
    EXPECT_EQ(resolved("../../../.."), "https://a.example:8443/");
    EXPECT_EQ(resolved("?r=2"), "https://a.example:8443/x/y/z.png?r=2");
    EXPECT_EQ(resolved(""), "https://a.example:8443/x/y/z.png?q=1");
    EXPECT_EQ(resolved("file:///etc/passwd"), "refused");
    EXPECT_EQ(resolved("javascript:alert(1)"), "refused");
    EXPECT_EQ(resolved("/a b"), "refused");
}

TEST(Location, IsNotFollowedAnywhere) {
    const auto plain = Url::parse("http://a.example/");
    const auto secure = Url::parse("https://a.example/");
    ASSERT_TRUE(plain && secure);
    EXPECT_EQ(follow_redirect(*plain, "https://b.example/x")->to_string(), "https://b.example/x");
    EXPECT_EQ(follow_redirect(*secure, "/x")->to_string(), "https://a.example/x");
    const auto code = [](const Result<Url>& url) {
        return url ? Code::internal : url.error().code;
    };
    EXPECT_EQ(code(follow_redirect(*secure, "http://a.example/x")), Code::address_refused);
    EXPECT_EQ(code(follow_redirect(*plain, "ws://a.example/x")), Code::upstream_error);
    EXPECT_EQ(code(follow_redirect(*plain, "file:///etc/passwd")), Code::upstream_error);
    EXPECT_EQ(code(follow_redirect(*plain, "http://user:x@b.example/")), Code::upstream_error);
}

}  // namespace
}  // namespace comfyd::net
