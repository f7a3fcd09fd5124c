// Browsers that log in by a key: what their cookie is good for, and for whom it is not.
#include "native_support.hpp"
#include "support/raw_socket.hpp"

namespace comfyd::support {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* kBoss = "boss-0123456789abcdef";
constexpr const char* kApp = "app-0123456789abcdef";

net::Headers with(std::vector<std::pair<std::string, std::string>> headers) {
    net::Headers made;
    for (auto& [name, value] : headers) {
        made.set(name, std::move(value));
    }
    return made;
}

class LoginTest : public testing::Test {
protected:
    explicit LoginTest(std::vector<std::string> arguments = {}) {
        ComfydOptions serve;
        serve.arguments = std::move(arguments);
        serve.environment = {
            {"COMFYD_AUTH_KEYS", std::string("boss=") + kBoss + ",app=" + kApp},
            {"COMFYD_AUTH_OPERATORS", "boss"},
        };
        comfyd_ = std::make_unique<Comfyd>(serve);
        web_ = std::make_unique<Http>(comfyd_->url());
        boss_ = std::make_unique<Http>(comfyd_->url());
        boss_->set_header("Authorization", std::string("Bearer ") + kBoss);
    }

    struct Session {
        std::string cookie;  // "name=value"
        std::string token;   // for the header X-CSRF-Token
        std::string id;
    };
    static std::string cookie_of(const Reply& reply) {
        const std::string set(reply.headers.get("Set-Cookie"));
        return set.substr(0, set.find(';'));
    }
    Session log_in(const std::string& key) {
        const Reply reply =
            web_->post_json("/login", {{"key", key}}, with({{"Sec-Fetch-Site", "same-origin"}}));
        EXPECT_EQ(reply.status, 200) << reply.body;
        return {
            cookie_of(reply),
            std::string(reply.json_at("/csrf_token").as_string()),
            std::string(reply.json_at("/id").as_string()),
        };
    }
    net::Headers by(const Session& session) {
        return with({
            {"Cookie", session.cookie},
            {"X-CSRF-Token", session.token},
            {"Sec-Fetch-Site", "same-origin"},
        });
    }
    int status_of(const Session& session) {
        return web_->get("/api/v2/jobs", with({{"Cookie", session.cookie}})).status;
    }
    int submit(net::Headers headers) {
        return web_->post_json("/api/v2/jobs", {{"workflow", small_picture(1)}}, std::move(headers))
            .status;
    }

    std::unique_ptr<Comfyd> comfyd_;
    std::unique_ptr<Http> web_;
    std::unique_ptr<Http> boss_;
};

TEST_F(LoginTest, AKeyGivesACookieThatIsThatKey) {
    const Session session = log_in(kApp);
    EXPECT_THAT(session.cookie, StartsWith("comfyd="));
    EXPECT_EQ(status_of(session), 200);
    EXPECT_EQ(submit(by(session)), 201);
    EXPECT_EQ(web_->get("/admin/v1/keys", by(session)).status, 403);
    const Reply about = web_->get("/login/session", by(session));
    EXPECT_EQ(about.json_at("/tenant"), "app");
    EXPECT_EQ(about.json_at("/by"), "key");
    EXPECT_EQ(about.json_at("/csrf_token"), json::value(session.token));
    EXPECT_EQ(about.headers.get("Cache-Control"), "no-store");
    EXPECT_EQ(web_->get("/admin/v1/keys", by(log_in(kBoss))).status, 200);
    EXPECT_THAT(comfyd_->log(), Not(HasSubstr(session.cookie.substr(7))));
}

TEST_F(LoginTest, WhatChangesSomethingComesFromAPageOfOurs) {
    const Session session = log_in(kApp);
    const std::string own = comfyd_->url();
    const auto ask = [&](std::vector<std::pair<std::string, std::string>> headers) {
        headers.emplace_back("Cookie", session.cookie);
        return submit(with(std::move(headers)));
    };
    EXPECT_EQ(ask({{"X-CSRF-Token", session.token}, {"Sec-Fetch-Site", "same-origin"}}), 201);
    EXPECT_EQ(ask({{"X-CSRF-Token", session.token}, {"Sec-Fetch-Site", "none"}}), 201);
    EXPECT_EQ(ask({{"X-CSRF-Token", session.token}, {"Origin", own}}), 201);
    EXPECT_EQ(ask({{"X-CSRF-Token", session.token}, {"Sec-Fetch-Site", "cross-site"}}), 403);
    EXPECT_EQ(ask({{"X-CSRF-Token", session.token}, {"Sec-Fetch-Site", "same-site"}}), 403);
    EXPECT_EQ(ask({{"X-CSRF-Token", session.token}, {"Origin", "https://evil.example"}}), 403);
    EXPECT_EQ(ask({{"X-CSRF-Token", session.token}, {"Origin", "null"}}), 403);
    EXPECT_EQ(ask({{"X-CSRF-Token", session.token}}), 403) << "nobody says where it is from";
    EXPECT_EQ(ask({{"Sec-Fetch-Site", "same-origin"}}), 403) << "without the token";
    EXPECT_EQ(ask({{"X-CSRF-Token", "x"}, {"Sec-Fetch-Site", "same-origin"}}), 403);
    const Session other = log_in(kApp);
    EXPECT_EQ(ask({{"X-CSRF-Token", other.token}, {"Sec-Fetch-Site", "same-origin"}}), 403);
    // A key is shown by whoever has it, and needs none of that.
    EXPECT_EQ(submit(with({{"Authorization", std::string("Bearer ") + kApp}})), 201);
}

TEST_F(LoginTest, AStreamByCookieIsForPagesOfOurs) {
    const Session session = log_in(kApp);
    const auto open = [&](const std::string& origin) {
        auto headers = with({{"Cookie", session.cookie}});
        if (!origin.empty()) {
            headers.set("Origin", origin);
        }
        return web_->ws("/ws?clientId=login", std::move(headers))->connected();
    };
    EXPECT_TRUE(open(comfyd_->url()));
    EXPECT_FALSE(open("https://evil.example"));
    EXPECT_FALSE(open("null"));
    EXPECT_FALSE(open("")) << "a browser always says";
}

TEST_F(LoginTest, OnlyAPageOfOursLogsSomebodyIn) {
    for (const auto& headers :
         {with({{"Sec-Fetch-Site", "cross-site"}}),
          with({{"Sec-Fetch-Site", "same-site"}}),
          with({{"Origin", "https://evil.example"}}),
          net::Headers()}) {
        const Reply reply = web_->post_json("/login", {{"key", kApp}}, headers);
        EXPECT_EQ(reply.status, 403) << reply.body;
        EXPECT_FALSE(reply.headers.contains("Set-Cookie"));
    }
    const Reply wrong =
        web_->post_json("/login", {{"key", "wrong"}}, with({{"Sec-Fetch-Site", "same-origin"}}));
    EXPECT_EQ(wrong.status, 401);
    EXPECT_FALSE(wrong.headers.contains("Set-Cookie"));
}

TEST_F(LoginTest, ALoginNeverGoesOnWithASessionThatWasThere) {
    const Session planted = log_in(kApp);
    const Reply reply = web_->post_json(
        "/login",
        {{"key", kBoss}},
        with({{"Sec-Fetch-Site", "same-origin"}, {"Cookie", planted.cookie}})
    );
    ASSERT_EQ(reply.status, 200);
    EXPECT_NE(cookie_of(reply), planted.cookie);
    EXPECT_EQ(status_of(planted), 401) << "it ended with the login";
    EXPECT_EQ(status_of({cookie_of(reply), "", ""}), 200);
}

TEST_F(LoginTest, TwoCookiesOfTheNameAreNone) {
    const Session mine = log_in(kApp);
    const Session tossed = log_in(kBoss);
    EXPECT_EQ(status_of({mine.cookie + "; " + tossed.cookie, "", ""}), 401);
}

TEST_F(LoginTest, ThePageWorksWithoutScriptsAndLeadsNowhereElse) {
    const Reply page = web_->get("/login?next=/api/v2/jobs%22%3E%3Cscript%3E");
    EXPECT_EQ(page.status, 200);
    EXPECT_THAT(page.body, Not(HasSubstr("<script")));
    const std::string policy(page.headers.get("Content-Security-Policy"));
    for (const char* rule :
         {"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"
         }) {
        EXPECT_THAT(policy, HasSubstr(rule));
    }
    EXPECT_EQ(page.headers.get("Referrer-Policy"), "same-origin") << "or a form has no Origin";
    EXPECT_EQ(web_->get("/login/style.css").status, 200);
    const auto post = [&](const std::string& next) {
        return web_->post(
            "/login",
            std::string("key=") + kApp + "&next=" + net::percent_encode(next),
            with({{"Content-Type", "application/x-www-form-urlencoded"}, {"Origin", comfyd_->url()}}
            )
        );
    };
    const Reply good = post("/docs?a=b");
    EXPECT_EQ(good.status, 303);
    EXPECT_EQ(good.headers.get("Location"), "/docs?a=b");
    EXPECT_THAT(cookie_of(good), StartsWith("comfyd="));
    for (const char* next :
         {"//evil.example",
          "/\\evil.example",
          "https://evil.example",
          "javascript:x",
          "/a\r\nX: y",
          "evil",
          "",
          "/\tevil"}) {
        EXPECT_EQ(post(next).headers.get("Location"), "/") << next;
    }
}

TEST_F(LoginTest, LogoutEndsIt) {
    const Session session = log_in(kApp);
    EXPECT_EQ(
        web_->post(
                "/logout", "", with({{"Cookie", session.cookie}, {"Origin", comfyd_->url()}})
        ).status,
        403
    ) << "without the token";
    EXPECT_EQ(status_of(session), 200);
    const Reply out = web_->post("/logout", "", by(session));
    EXPECT_EQ(out.status, 200) << out.body;
    EXPECT_THAT(std::string(out.headers.get("Set-Cookie")), HasSubstr("Max-Age=0"));
    EXPECT_EQ(status_of(session), 401);
    const Session second = log_in(kApp);
    const Reply page = web_->get("/login", with({{"Cookie", second.cookie}}));
    EXPECT_THAT(page.body, HasSubstr("app of app"));
    const Reply form = web_->post(
        "/logout",
        "csrf_token=" + second.token,
        with(
            {{"Content-Type", "application/x-www-form-urlencoded"},
             {"Cookie", second.cookie},
             {"Sec-Fetch-Site", "same-origin"}}
        )
    );
    EXPECT_EQ(form.status, 200);
    EXPECT_EQ(status_of(second), 401);
}

TEST_F(LoginTest, OwnersAndOperatorsSeeAndEndThem) {
    const Session mine = log_in(kApp);
    const Session other = log_in(kBoss);
    const Reply own = web_->get("/login/sessions", by(mine));
    EXPECT_THAT(own.body, HasSubstr(mine.id));
    EXPECT_THAT(own.body, Not(HasSubstr(other.id)));
    EXPECT_EQ(web_->get("/login/sessions").status, 401);
    EXPECT_EQ(web_->del("/login/sessions/" + other.id, by(mine)).status, 404);
    EXPECT_EQ(web_->del("/login/sessions/" + mine.id, with({{"Cookie", mine.cookie}})).status, 401);
    const Reply all = boss_->get("/admin/v1/sessions");
    EXPECT_THAT(all.body, HasSubstr(mine.id));
    EXPECT_THAT(all.body, HasSubstr(other.id));
    EXPECT_THAT(boss_->get("/admin/v1/sessions?tenant=boss").body, Not(HasSubstr(mine.id)));
    EXPECT_EQ(web_->get("/admin/v1/sessions", by(mine)).status, 403);
    EXPECT_EQ(boss_->del("/admin/v1/sessions/" + mine.id).status, 204);
    EXPECT_EQ(boss_->del("/admin/v1/sessions/" + mine.id).status, 404);
    EXPECT_EQ(status_of(mine), 401);
    EXPECT_EQ(web_->del("/login/sessions/" + other.id, by(other)).status, 204);
    EXPECT_EQ(status_of(other), 401);
}

TEST_F(LoginTest, ASessionEndsWithItsKeyAndItsTenant) {
    const Reply made = boss_->post_json("/admin/v1/keys", {{"name", "ci"}, {"tenant", "acme"}});
    const std::string key(made.json_at("/key").as_string());
    const std::string id(made.json_at("/id").as_string());
    const Session session = log_in(key);
    EXPECT_EQ(
        boss_->post_json("/admin/v1/tenants", {{"name", "acme"}, {"disabled", true}}).status, 201
    );
    EXPECT_EQ(status_of(session), 403);
    EXPECT_EQ(boss_->del("/admin/v1/tenants/acme").status, 409);
    net::ClientRequest enable;
    enable.method = "PATCH";
    enable.url = "/admin/v1/tenants/acme";
    enable.body = R"({"disabled": false})";
    EXPECT_EQ(boss_->send(enable).status, 200);
    EXPECT_EQ(status_of(session), 401) << "it has ended";
    const Session second = log_in(key);
    EXPECT_EQ(status_of(second), 200);
    EXPECT_EQ(boss_->post("/admin/v1/keys/" + id + "/revoke", "").status, 200);
    EXPECT_EQ(status_of(second), 401);
}

class HttpsLogin : public LoginTest {
protected:
    HttpsLogin() : LoginTest({"--set", "public_url=https://comfyd.example.com"}) {}
};

TEST_F(HttpsLogin, TheCookieIsOfTheHostAlone) {
    const Session session = log_in(kApp);
    EXPECT_THAT(session.cookie, StartsWith("__Host-comfyd="));
    EXPECT_EQ(status_of(session), 200);
    EXPECT_EQ(status_of({session.cookie.substr(7), "", ""}), 401) << "without the prefix";
    EXPECT_EQ(
        submit(with(
            {{"Cookie", session.cookie},
             {"X-CSRF-Token", session.token},
             {"Origin", "https://comfyd.example.com"}}
        )),
        201
    );
    EXPECT_EQ(web_->get("/login/oidc").status, 404) << "there is no provider";
}

// Behind a proxy, for on loopback nobody is held up.
class LoginFromElsewhere : public LoginTest {
protected:
    LoginFromElsewhere() : LoginTest({"--set", "proxies.trusted=127.0.0.1"}) {}

    int try_key(const std::string& key, const std::string& address) {
        return web_
            ->post_json(
                "/login",
                {{"key", key}},
                with({{"Sec-Fetch-Site", "same-origin"}, {"X-Forwarded-For", address}})
            )
            .status;
    }
};

TEST_F(LoginFromElsewhere, WrongKeysCostEverLongerWaits) {
    EXPECT_EQ(try_key(kApp, "203.0.113.7"), 200);
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(try_key("a-wrong-key-of-nobody", "203.0.113.7"), 401) << i;
    }
    EXPECT_EQ(try_key("a-wrong-key-of-nobody", "203.0.113.7"), 401);
    EXPECT_EQ(try_key("a-wrong-key-of-nobody", "203.0.113.7"), 429);
    EXPECT_EQ(try_key(kApp, "203.0.113.8"), 200);
    EXPECT_EQ(try_key(kApp, "203.0.113.7"), 200) << "a key that was good there is not held up";
}

}  // namespace
}  // namespace comfyd::support
