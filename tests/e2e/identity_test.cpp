// Keys, tenants and tokens that a running server is given, used as strangers use them.
#include <algorithm>

#include "auth/jwt/test_support.hpp"
#include "native_support.hpp"
#include "support/raw_socket.hpp"

namespace comfyd::support {
namespace {

using auth::jwt::test::hs_token;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kBoss = "boss-0123456789abcdef";
const std::string kSecret = "a secret of more than thirty-two bytes";

class IdentityTest : public testing::Test {
protected:
    IdentityTest() {
        ComfydOptions serve;
        serve.environment = {
            {"COMFYD_AUTH_KEYS", std::string("boss=") + kBoss},
            {"COMFYD_AUTH_OPERATORS", "boss"},
            {"COMFYD_JWT_SECRET", kSecret},
        };
        comfyd_ = std::make_unique<Comfyd>(serve);
        boss_ = client(kBoss);
    }
    std::unique_ptr<Http> client(const std::string& key) {
        auto made = std::make_unique<Http>(comfyd_->url());
        made->set_header("Authorization", "Bearer " + key);
        return made;
    }
    struct Ran {
        int code = -1;
        std::string output;
        std::string errors;
    };
    Ran run(std::vector<std::string> words) {
        words.insert(words.begin(), COMFYD_BINARY);
        Process process(ProcessOptions{
            .arguments = std::move(words),
            .environment = {{"COMFYD_URL", comfyd_->url()}, {"COMFYD_KEY", kBoss}},
        });
        const int code = process.wait().value_or(-1);
        return {code, process.output(), process.errors()};
    }
    static std::string first_line(const std::string& text) {
        return text.substr(0, text.find('\n'));
    }
    // By the API; its answer.
    json::value make_key(json::object body) {
        const Reply made = boss_->post_json("/admin/v1/keys", body);
        EXPECT_EQ(made.status, 201) << made.body;
        return made.json();
    }
    std::string key_with(const std::string& tenant, json::array scopes) {
        const json::value made =
            make_key({{"name", "some"}, {"tenant", tenant}, {"scopes", std::move(scopes)}});
        return std::string(made.at("key").as_string());
    }

    std::unique_ptr<Comfyd> comfyd_;
    std::unique_ptr<Http> boss_;
};

TEST_F(IdentityTest, AKeyIsMadeUsedRotatedAndRevokedByTheCommandLine) {
    const Ran made = run({"keys", "create", "app", "--tenant", "acme", "--expires", "30d"});
    ASSERT_EQ(made.code, 0) << made.errors;
    const std::string key = first_line(made.output);
    EXPECT_THAT(key, testing::StartsWith("ck_live_"));
    EXPECT_THAT(made.errors, Not(HasSubstr(key)));
    const std::string id = key.substr(8, 8);
    const auto app = client(key);
    // Three dialects.
    const Reply job = app->post_json("/api/v2/jobs", {{"workflow", small_picture(1)}});
    EXPECT_EQ(job.status, 201) << job.body;
    const Reply execution =
        app->post_json("/v2/workflows/execute", {{"workflow", small_picture(2)}});
    EXPECT_TRUE(execution.ok()) << execution.body;
    const Reply prompt = app->post_json("/prompt", {{"prompt", small_picture(3)}});
    EXPECT_EQ(prompt.status, 200) << prompt.body;
    EXPECT_EQ(app->get("/admin/v1/keys").status, 403);
    Http other(comfyd_->url());
    other.set_header("X-API-Key", key);
    EXPECT_EQ(other.get("/api/v2/jobs").status, 200);

    const Ran listed = run({"keys", "list"});
    EXPECT_THAT(listed.output, HasSubstr(id + "  live  app  tenant acme  jobs:read,jobs:write"));
    EXPECT_THAT(listed.output, HasSubstr("  used "));
    EXPECT_THAT(listed.output, HasSubstr("(config)  live  boss"));
    EXPECT_THAT(listed.output, Not(HasSubstr(key)));

    const Ran rotated = run({"keys", "rotate", id});
    ASSERT_EQ(rotated.code, 0) << rotated.errors;
    const auto fresh = client(first_line(rotated.output));
    EXPECT_EQ(fresh->get("/api/v2/jobs").status, 200);
    EXPECT_EQ(app->get("/api/v2/jobs").status, 200) << "for a while";
    const Ran again = run({"keys", "rotate", id, "--old-key-hours", "0"});
    EXPECT_EQ(app->get("/api/v2/jobs").status, 401);
    EXPECT_EQ(fresh->get("/api/v2/jobs").status, 401);
    const auto latest = client(first_line(again.output));
    EXPECT_EQ(latest->get("/api/v2/jobs").status, 200);

    EXPECT_EQ(run({"keys", "revoke", id}).output, "revoked " + id + "\n");
    const Reply refused = latest->get("/api/v2/jobs");
    EXPECT_EQ(refused.status, 401);
    EXPECT_EQ(refused.headers.get("WWW-Authenticate"), "Bearer");
    EXPECT_THAT(refused.body, HasSubstr("revoked"));
    EXPECT_EQ(run({"keys", "remove", id}).code, 0);
    EXPECT_NE(run({"keys", "revoke", id}).code, 0);
    EXPECT_NE(run({"keys", "create"}).code, 0);
    EXPECT_NE(run({"keys", "create", "x", "--scope", "fly"}).code, 0);
    EXPECT_EQ(run({"keys", "list", "--tenant", "nobody"}).output, "no keys\n");
    EXPECT_THAT(comfyd_->log(), Not(HasSubstr("ck_live_")));
}

TEST_F(IdentityTest, KeysAndTenantsOutliveTheServer) {
    const json::value made = make_key({{"name", "app"}, {"tenant", "acme"}});
    const auto app = client(std::string(made.at("key").as_string()));
    EXPECT_EQ(app->get("/api/v2/jobs").status, 200);
    EXPECT_EQ(
        boss_->post_json("/admin/v1/tenants", {{"name", "acme"}, {"tier", "pro"}}).status, 201
    );
    comfyd_->stop();
    comfyd_->start();
    EXPECT_EQ(app->get("/api/v2/jobs").status, 200);
    const std::string id(made.at("id").as_string());
    const Reply shown = boss_->get("/admin/v1/keys/" + id);
    EXPECT_FALSE(shown.json_at("/last_used_at").is_null()) << shown.body;
    EXPECT_EQ(boss_->get("/admin/v1/tenants/acme").json_at("/tier"), "pro");
}

TEST_F(IdentityTest, AKeyEndsWhenItExpires) {
    const json::value made = make_key({{"name", "brief"}, {"expires_in_days", 0.00001}});
    const auto brief = client(std::string(made.at("key").as_string()));
    EXPECT_TRUE(wait_until([&] { return brief->get("/api/v2/jobs").status == 401; }));
    EXPECT_THAT(brief->get("/api/v2/jobs").body, HasSubstr("expired"));
    const std::string id(made.at("id").as_string());
    EXPECT_EQ(boss_->get("/admin/v1/keys/" + id).json_at("/status"), "expired");
    EXPECT_EQ(boss_->post_json("/admin/v1/keys/" + id + "/rotate", json::object()).status, 409);
}

TEST_F(IdentityTest, TenantsAreMadeAndRuledByTheCommandLine) {
    const Ran made = run({"tenants", "create", "acme", "tier=pro", "denied_nodes=SaveImage,Bad*"});
    ASSERT_EQ(made.code, 0) << made.errors;
    EXPECT_THAT(made.output, HasSubstr("tier: pro\n"));
    EXPECT_THAT(made.output, HasSubstr("denied_nodes: SaveImage,Bad*\n"));
    const auto app = client(key_with("acme", {"jobs:*"}));
    const json::object graph{{"workflow", small_picture(1)}};
    const Reply denied = app->post_json("/v2/workflows/execute", graph);
    EXPECT_EQ(denied.status, 400) << denied.body;
    EXPECT_THAT(denied.body, HasSubstr("SaveImage"));
    EXPECT_EQ(run({"tenants", "set", "acme", "denied_nodes=null", "weight=2"}).code, 0);
    EXPECT_TRUE(app->post_json("/v2/workflows/execute", graph).ok());
    EXPECT_EQ(run({"tenants", "set", "acme", "allowed_pools=default"}).code, 0);
    EXPECT_NE(run({"tenants", "set", "acme", "allowed_pools=nowhere"}).code, 0);
    EXPECT_NE(run({"tenants", "set", "acme", "colour=red"}).code, 0);
    EXPECT_NE(run({"tenants", "create", "acme"}).code, 0) << "there is one";
    EXPECT_THAT(run({"tenants", "list"}).output, HasSubstr("acme  pro  weight 2"));

    EXPECT_EQ(run({"tenants", "set", "acme", "disabled=true"}).code, 0);
    EXPECT_EQ(app->get("/api/v2/jobs").status, 403);
    EXPECT_THAT(run({"tenants", "list"}).output, HasSubstr("DISABLED"));
    EXPECT_EQ(run({"tenants", "set", "acme", "disabled=false"}).code, 0);
    EXPECT_EQ(app->get("/api/v2/jobs").status, 200);
    EXPECT_NE(run({"tenants", "remove", "acme"}).code, 0) << "it has a key";
    const std::string id(boss_->get("/admin/v1/keys?tenant=acme").json_at("/keys/0/id").as_string()
    );
    EXPECT_EQ(run({"keys", "revoke", id}).code, 0);
    EXPECT_EQ(run({"tenants", "remove", "acme"}).output, "removed acme\n");
    EXPECT_EQ(boss_->get("/admin/v1/tenants/acme").status, 404);
}

TEST_F(IdentityTest, WrongRequestsOfOperatorsAreExplained) {
    for (const json::object& body : std::vector<json::object>{
             {},
             {{"name", ""}},
             {{"name", 1}},
             {{"name", "a\nb"}},
             {{"name", "a"}, {"scopes", "jobs:read"}},
             {{"name", "a"}, {"scopes", json::array{"fly"}}},
             {{"name", "a"}, {"expires_in_days", 0}},
             {{"name", "a"}, {"expires_in_days", 1e9}},
             {{"name", "a"}, {"expires_at", "2001-01-01T00:00:00Z"}},
             {{"name", "a"}, {"expires_at", "soon"}},
             {{"name", "a"}, {"scope", "admin"}},
             {{"name", "a"}, {"tenant", std::string(200, 'x')}}
         }) {
        const Reply refused = boss_->post_json("/admin/v1/keys", body);
        EXPECT_EQ(refused.status, 400) << json::serialize(body) << refused.body;
        EXPECT_EQ(refused.json_at("/error/code"), "invalid_argument") << refused.body;
    }
    EXPECT_EQ(boss_->post("/admin/v1/keys", "{").status, 400);
    EXPECT_EQ(
        boss_->post_json("/admin/v1/tenants", json::object{{"name", "a"}, {"store", "x"}}).status,
        400
    );
    EXPECT_EQ(boss_->get("/admin/v1/keys/nothing1").status, 404);
    EXPECT_EQ(boss_->get("/admin/v1/keys?limit=0").status, 400);
    EXPECT_EQ(boss_->get("/admin/v1/tenants?limit=x").status, 400);
    // Pages.
    for (int i = 0; i < 5; ++i) {
        make_key({{"name", "k" + std::to_string(i)}});
    }
    std::string cursor;
    std::size_t seen = 0;
    do {
        const Reply page =
            boss_->get("/admin/v1/keys?limit=2" + (cursor.empty() ? "" : "&cursor=" + cursor));
        seen += page.json_at("/keys").as_array().size();
        const json::value next = page.json_at("/next_cursor");
        cursor = next.is_string() ? std::string(next.get_string()) : "";
    } while (!cursor.empty());
    EXPECT_EQ(seen, 6U) << "and that of the configuration";
}

TEST_F(IdentityTest, TokensAreGoodInPlaceOfKeys) {
    const auto token = [](json::object claims, const std::string& secret = kSecret) {
        return hs_token(secret, R"({"alg":"HS256","typ":"JWT"})", json::serialize(claims));
    };
    const json::object plain{{"user_id", "u-1"}, {"exp", 4'000'000'000}};
    const auto user = client(token(plain));
    const Reply job = user->post_json("/api/v2/jobs", {{"workflow", small_picture(1)}});
    ASSERT_EQ(job.status, 201) << job.body;
    const std::string path = "/api/v2/jobs/" + std::string(job.json_at("/id").as_string());
    EXPECT_EQ(user->get(path).status, 200);
    EXPECT_EQ(client(token({{"user_id", "u-2"}, {"exp", 4'000'000'000}}))->get(path).status, 404);
    json::object reader = plain;
    reader["permissions"] = json::array{"jobs:read"};
    const auto reading = client(token(reader));
    EXPECT_EQ(reading->get(path).status, 200);
    EXPECT_EQ(reading->post_json("/api/v2/jobs", {{"workflow", small_picture(1)}}).status, 403);
    EXPECT_EQ(user->get("/admin/v1/tenants").status, 403);
    json::object admin = plain;
    admin["permissions"] = json::array{"admin"};
    EXPECT_EQ(client(token(admin))->get("/admin/v1/tenants").status, 200);
    // In the words of the API that first had tokens.
    const Reply expired = client(token({{"user_id", "u-1"}, {"exp", 1}}))->get("/api/v1/tasks");
    EXPECT_EQ(expired.status, 401);
    EXPECT_EQ(expired.json_at("/error"), "Token has expired") << expired.body;
    for (const std::string& bad :
         {token(plain, kSecret + "x"),
          token(plain) + "x",
          std::string("ey.ey.ey"),
          std::string(8'000, 'e') + ".."}) {
        EXPECT_EQ(client(bad)->get(path).status, 401);
    }
    EXPECT_EQ(client(kBoss)->get("/admin/v1/tenants").status, 200) << "keys are as before";
    EXPECT_EQ(run({"tenants", "create", "u-1", "disabled=true"}).code, 0);
    EXPECT_EQ(user->get(path).status, 403);
}

// Every route of the document, and those that stay out of it, by what it declares.
class ScopesOfRoutes : public IdentityTest {
protected:
    struct Operation {
        std::string method;
        std::string path;   // with an id that nothing has
        std::string scope;  // empty: open
    };

    std::vector<Operation> operations() {
        std::vector<Operation> all;
        const json::value document = boss_->get("/openapi.json").json();
        for (const auto& path : document.at("paths").as_object()) {
            std::string target(path.key());
            for (auto begin = target.find('{'); begin != std::string::npos;
                 begin = target.find('{', begin)) {
                target.replace(begin, target.find('}', begin) - begin + 1, "nothing");
            }
            for (const auto& operation : path.value().as_object()) {
                std::string method(operation.key());
                std::ranges::transform(method, method.begin(), [](char c) {
                    return static_cast<char>(c - 'a' + 'A');
                });
                const json::object& about = operation.value().as_object();
                all.push_back(
                    {method,
                     target,
                     about.contains("x-scope") ? std::string(about.at("x-scope").as_string()) : ""}
                );
            }
        }
        return all;
    }
    static Reply ask(Http& who, const Operation& operation) {
        net::ClientRequest request;
        request.method = operation.method;
        request.url = operation.path;
        if (operation.method != "GET" && operation.method != "DELETE") {
            request.headers.set("Content-Type", "application/json");
            request.body = "{}";
        }
        return who.send(std::move(request));
    }
    static json::array all_but(const std::string& left_out) {
        json::array scopes;
        for (const char* scope :
             {"jobs:read",
              "jobs:write",
              "assets:read",
              "assets:write",
              "workflows:read",
              "workflows:write",
              "metrics:read",
              "admin"}) {
            if (scope != left_out) {
                scopes.emplace_back(scope);
            }
        }
        return scopes;
    }
};

TEST_F(ScopesOfRoutes, AreAskedForByEachAndAllThatIsAskedFor) {
    const auto all = operations();
    EXPECT_GT(all.size(), 100U);
    Http nobody(comfyd_->url());
    nobody.set_header("Sec-Fetch-Site", "same-origin");  // or logins would be refused as foreign
    std::map<std::string, std::unique_ptr<Http>> without;
    std::map<std::string, std::unique_ptr<Http>> with;
    int closed = 0;
    for (const Operation& operation : all) {
        SCOPED_TRACE(operation.method + " " + operation.path);
        const Reply anonymous = ask(nobody, operation);
        if (operation.scope.empty()) {
            EXPECT_NE(anonymous.status, 403) << anonymous.body;
            continue;
        }
        ++closed;
        EXPECT_EQ(anonymous.status, 401) << anonymous.body;
        const bool has_body = operation.method != "HEAD";
        EXPECT_NE(anonymous.json().is_null(), has_body) << "its dialect has a shape for it";
        EXPECT_EQ(anonymous.headers.get("WWW-Authenticate"), "Bearer");
        auto& lacking = without[operation.scope];
        if (!lacking) {
            lacking = client(key_with("t", all_but(operation.scope)));
            with[operation.scope] = client(key_with("t", {operation.scope.c_str()}));
        }
        const Reply refused = ask(*lacking, operation);
        EXPECT_EQ(refused.status, 403) << refused.body;
        EXPECT_NE(refused.json().is_null(), has_body);
        const bool never_ends = operation.path == "/api/v1/stats/stream";
        if (!never_ends) {
            const Reply allowed = ask(*with[operation.scope], operation);
            EXPECT_NE(allowed.status, 0);
            EXPECT_NE(allowed.status, 401) << allowed.body;
            EXPECT_NE(allowed.status, 403) << allowed.body;
        }
    }
    EXPECT_GT(closed, 90);
    EXPECT_EQ(without.size(), 8U) << "each scope is some route's";
}

TEST_F(ScopesOfRoutes, HoldForSocketsAndStreamsOfOthers) {
    const auto red = client(key_with("red", {"*"}));
    const Reply job = red->post_json("/v2/workflows/execute", {{"workflow", small_picture(1)}});
    ASSERT_TRUE(job.ok()) << job.body;
    const std::string id(job.json_at("/execution_id").as_string());
    const auto upgrade = [&](const std::string& path, const std::string& credentials) {
        RawSocket socket(comfyd_->url());
        socket.send(
            "GET " + path +
            " HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
            "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
            (credentials.empty() ? "" : "Authorization: Bearer " + credentials + "\r\n") + "\r\n"
        );
        return socket.read_until("\r\n").substr(9, 3);
    };
    const std::string reading = key_with("red", {"jobs:read"});
    const std::string writing = key_with("red", {"jobs:write", "assets:*"});
    const std::string blue = key_with("blue", {"*"});
    for (const std::string& path : {std::string("/ws"), "/v2/workflows/execution/" + id + "/ws"}) {
        EXPECT_EQ(upgrade(path, ""), "401") << path;
        EXPECT_EQ(upgrade(path, writing), "403") << path;
        EXPECT_EQ(upgrade(path, reading), "101") << path;
        EXPECT_EQ(upgrade(path, blue), path == "/ws" ? "101" : "404") << path;
    }
    const std::string stream = "/v2/workflows/execution/" + id + "/events";
    Http nobody(comfyd_->url());
    EXPECT_EQ(nobody.get(stream).status, 401);
    EXPECT_EQ(client(writing)->get(stream).status, 403);
    EXPECT_EQ(client(blue)->get(stream).status, 404);
    EXPECT_EQ(client(blue)->get("/api/v2/jobs/" + id + "/events").status, 404);
    EXPECT_EQ(client(blue)->get("/comfyui/execution/" + id + "/events").status, 404);
    EXPECT_EQ(client(blue)->get("/api/v1/tasks/" + id + "/events").status, 404);
    // A ticket is had by who may read, and is good for that alone.
    EXPECT_EQ(client(writing)->post_json("/v2/stream-tickets", json::object()).status, 403);
    const Reply ticket = client(reading)->post_json("/v2/stream-tickets", json::object());
    ASSERT_EQ(ticket.status, 201) << ticket.body;
    const std::string shown = "?ticket=" + std::string(ticket.json_at("/ticket").as_string());
    EXPECT_EQ(upgrade("/ws" + shown, ""), "101");
    EXPECT_EQ(nobody.get("/api/v2/jobs" + shown).status, 401);
}

TEST(OpenServer, SaysWhenNobodyCanComeIn) {
    ComfydOptions serve;
    serve.environment = {{"COMFYD_AUTH_REQUIRED", "true"}};
    Comfyd comfyd(serve);
    EXPECT_EQ(comfyd.http().get("/api/v2/jobs").status, 401);
    EXPECT_THAT(comfyd.log(), HasSubstr("nobody is let in"));
}

TEST(OpenServer, AsksForNothingUntilItIsToldTo) {
    ComfydOptions serve;
    Comfyd comfyd(serve);
    Http& anybody = comfyd.http();
    const Reply made = anybody.post_json(
        "/admin/v1/keys", {{"name", "root"}, {"scopes", json::array{"*", "admin"}}}
    );
    ASSERT_EQ(made.status, 201) << made.body;
    EXPECT_EQ(made.json_at("/enforced"), false);
    anybody.set_header("Authorization", "Bearer whatever");
    EXPECT_EQ(anybody.get("/api/v2/jobs").status, 200) << "as ever";
    const std::string data = comfyd.data();
    comfyd.stop();
    serve.data = data;
    serve.environment = {{"COMFYD_AUTH_REQUIRED", "true"}};
    Comfyd closed(serve);
    EXPECT_EQ(closed.http().get("/api/v2/jobs").status, 401);
    Http root(closed.url());
    root.set_header("Authorization", "Bearer " + std::string(made.json_at("/key").as_string()));
    EXPECT_EQ(root.get("/admin/v1/keys").status, 200);
    EXPECT_EQ(root.get("/api/v2/jobs").status, 200);
}

}  // namespace
}  // namespace comfyd::support
