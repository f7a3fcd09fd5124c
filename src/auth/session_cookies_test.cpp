#include "auth/session_cookies.hpp"

#include <gmock/gmock.h>

namespace comfyd::auth {
namespace {

using Purpose = SessionCookies::Purpose;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

net::Request request(std::vector<std::pair<std::string, std::string>> headers) {
    net::Request made;
    for (auto& [name, value] : headers) {
        made.headers.add(name, std::move(value));
    }
    return made;
}

const SessionCookies kSecure({true, "https://comfyd.example.com"});
const SessionCookies kPlain({false, ""});

TEST(SessionCookies, ASecureOneIsOfThisHostAlone) {
    const std::string made = kSecure.keep_session("value");
    EXPECT_THAT(made, StartsWith("__Host-comfyd=value; "));
    for (const char* mark : {"; Path=/", "; HttpOnly", "; SameSite=Lax", "; Secure"}) {
        EXPECT_THAT(made, HasSubstr(mark));
    }
    EXPECT_THAT(made, Not(HasSubstr("Domain")));
    EXPECT_THAT(kSecure.forget(Purpose::session), StartsWith("__Host-comfyd=; "));
    EXPECT_THAT(kSecure.forget(Purpose::session), HasSubstr("Max-Age=0"));
    const std::string login = kSecure.keep_login("x", std::chrono::minutes(10));
    EXPECT_THAT(login, StartsWith("__Host-comfyd-login=x; "));
    EXPECT_THAT(login, HasSubstr("Max-Age=600"));
}

TEST(SessionCookies, OverPlainHttpTheNameHasNoPrefix) {
    const std::string made = kPlain.keep_session("value");
    EXPECT_THAT(made, StartsWith("comfyd=value; "));
    EXPECT_THAT(made, Not(HasSubstr("Secure")));
    EXPECT_THAT(made, HasSubstr("; HttpOnly"));
}

TEST(SessionCookies, AreReadByTheirWholeName) {
    const auto read = [](const char* header) {
        return kSecure.read(request({{"Cookie", header}}).headers, Purpose::session);
    };
    EXPECT_EQ(read("__Host-comfyd=a.b"), "a.b");
    EXPECT_EQ(read("x=1; __Host-comfyd=a=b ;y=2"), "a=b");
    EXPECT_EQ(read("comfyd=a; __host-comfyd=b; x__Host-comfyd=c; __Host-comfyd-login=d"), "");
    EXPECT_EQ(read(""), "");
    EXPECT_EQ(read(";;;=;__Host-comfyd"), "");
}

TEST(SessionCookies, OneThatSomebodySetAsWellIsNone) {
    EXPECT_EQ(
        kPlain.read(request({{"Cookie", "comfyd=mine; comfyd=yours"}}).headers, Purpose::session),
        ""
    );
    EXPECT_EQ(
        kPlain.read(
            request({{"Cookie", "comfyd=mine"}, {"cookie", "comfyd=yours"}}).headers,
            Purpose::session
        ),
        ""
    );
}

TEST(SessionCookies, APageOfOursIsToldFromOthers) {
    EXPECT_TRUE(kSecure.is_own_page(request({{"Sec-Fetch-Site", "same-origin"}})));
    EXPECT_TRUE(kSecure.is_own_page(request({{"Sec-Fetch-Site", "none"}})));
    for (const char* site : {"cross-site", "same-site", "nonsense"}) {
        EXPECT_FALSE(kSecure.is_own_page(
            request({{"Sec-Fetch-Site", site}, {"Origin", "https://comfyd.example.com"}})
        )) << site;
    }
    EXPECT_TRUE(kSecure.is_own_page(request({{"Origin", "https://comfyd.example.com"}})));
    for (const char* origin :
         {"http://comfyd.example.com",
          "https://comfyd.example.com:8443",
          "https://evil.example.com",
          "https://comfyd.example.com.evil.com",
          "null"}) {
        EXPECT_FALSE(kSecure.is_own_page(request({{"Origin", origin}}))) << origin;
    }
    EXPECT_FALSE(kSecure.is_own_page(request({}))) << "what cannot tell is none";
}

TEST(SessionCookies, WithoutAPublicAddressTheHostIsTheOrigin) {
    EXPECT_TRUE(kPlain.is_own_origin(
        request({{"Host", "127.0.0.1:8080"}, {"Origin", "http://127.0.0.1:8080"}})
    ));
    EXPECT_FALSE(kPlain.is_own_origin(
        request({{"Host", "127.0.0.1:8080"}, {"Origin", "http://127.0.0.1:8081"}})
    ));
    EXPECT_FALSE(kPlain.is_own_origin(request({{"Host", "127.0.0.1:8080"}})));
}

}  // namespace
}  // namespace comfyd::auth
