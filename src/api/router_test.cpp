#include "api/router.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <stdexcept>

#include "api/test_support.hpp"
#include "observe/metrics.hpp"

namespace comfyd::api {
namespace {

using test::Arrangement;
using test::error_code;
using test::header;
using test::TestApi;
using testing::HasSubstr;

Task<> send_text(Call& call, std::string text) {
    net::Response response;
    response.body = std::move(text);
    const auto sent = co_await call.exchange.send(std::move(response));
    EXPECT_TRUE(sent);
}

Task<> echo_call(Call& call) {
    std::string text = call.caller.tenant;
    for (const std::string& parameter : call.path_parameters) {
        text += "|" + parameter;
    }
    text += "|" + std::string(call.query_value("q"));
    co_await send_text(call, std::move(text));
}

Task<> throw_error(Call&) {
    throw std::runtime_error("the secret reason");
    co_return;
}

Task<> say_nothing(Call&) {
    co_return;
}

Task<> refuse_all(Call& call) {
    const auto sent = co_await call.exchange.send(encode_error(Error(Code::queue_full, "full")));
    EXPECT_TRUE(sent);
}

net::Response own_shape(const Error& error) {
    net::Response response;
    response.status = info(error.code).http_status;
    response.body = "own shape: " + error.message;
    return response;
}

Route route(
    net::Method method, std::string pattern, Handler handler, Access access = Access::jobs
) {
    return Route{method, std::move(pattern), std::move(handler), own_shape, access, {}};
}

void add_test_routes(Router& router) {
    router.add(route(net::Method::get, "/test/echo/{a}/{b}", echo_call));
    router.add(route(net::Method::del, "/test/echo/{a}/{b}", echo_call));
    router.add(route(net::Method::post, "/test/echo/{a}/{b}", echo_call));
    router.add(route(net::Method::get, "/test/open", echo_call, Access::open));
    router.add(route(net::Method::get, "/test/throw", throw_error));
    router.add(route(net::Method::get, "/test/silent", say_nothing));
    router.add(route(net::Method::get, "/test/full", refuse_all));
}

Arrangement with_routes() {
    Arrangement setup;
    setup.add_routes = add_test_routes;
    return setup;
}

Arrangement with_keys() {
    Arrangement setup = with_routes();
    setup.keys = {{"ci", "acme", auth::hash_key("sesame")}};
    return setup;
}

TEST(Router, HandsParametersAndQueryToTheHandler) {
    TestApi api(with_routes());
    const auto response = api.get("/test/echo/x%2Fy/z?q=a+b%21&other=1");
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, "local|x/y|z|a b!");
}

TEST(RouterDeathTest, ARouteThatDeclaresNoScopeIsRefused) {
    const auto keys = auth::make_key_authenticator({});
    observe::Metrics metrics;
    SystemClock clock;
    Router router(*keys, metrics, clock);
    Route undeclared;
    undeclared.pattern = "/test/undeclared";
    undeclared.handler = say_nothing;
    undeclared.encode_error = own_shape;
    EXPECT_DEATH(router.add(std::move(undeclared)), "undeclared");
}

TEST(Router, EveryAnswerNamesTheVersion) {
    TestApi api(with_keys());
    struct Case {
        const char* path;
        const char* asked;
        const char* answered;
    };
    for (const Case& one : {
             Case{"/test/open", "", "1.0"},
             Case{"/test/open", "1.0", "1.0"},
             Case{"/test/open", "2.0", "2.0"},
             Case{"/test/open", "2026-01-01", "1.0"},
             Case{"/test/full", "2.0", "2.0"},
             Case{"/nothing", "2.0", "2.0"},
             Case{"/v1/nothing", "2.0", "1.0"},
             Case{"/v2/workflows/executions", "1.0", "2.0"},
             Case{"/v1/workflows/executions", "2.0", "1.0"},
         }) {
        net::Headers headers;
        if (*one.asked != '\0') {
            headers.set("X-API-Version", one.asked);
        }
        EXPECT_EQ(api.get(one.path, headers).headers.get("X-API-Version"), one.answered)
            << one.path << " " << one.asked;
    }
}

TEST(Router, UnknownPathsAre404InJson) {
    TestApi api(with_routes());
    const auto response = api.get("/nothing/here");
    EXPECT_EQ(response.status, 404);
    EXPECT_EQ(response.headers.get("Content-Type"), "application/json");
    EXPECT_EQ(error_code(response), "not_found");
}

TEST(Router, BrokenPathsAreRefused) {
    TestApi api(with_routes());
    EXPECT_EQ(api.get("/test/echo/%zz/b").status, 400);
}

TEST(Router, WrongMethodsAre405WithAllowInTheRoutesShape) {
    TestApi api(with_routes());
    const auto response = api.send("PUT", "/test/echo/a/b");
    EXPECT_EQ(response.status, 405);
    EXPECT_EQ(response.headers.get("Allow"), "GET, HEAD, DELETE, POST, OPTIONS");
    EXPECT_THAT(response.body, HasSubstr("own shape: /test/echo/a/b does not allow PUT"));
}

TEST(Router, HeadIsAnsweredByGetRoutes) {
    TestApi api(with_routes());
    const auto response = api.send("HEAD", "/test/echo/a/b");
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, "");
}

TEST(Router, KeysAreAskedForWhereTheyAreConfigured) {
    TestApi api(with_keys());
    const auto missing = api.get("/test/echo/a/b");
    EXPECT_EQ(missing.status, 401);
    EXPECT_EQ(missing.headers.get("WWW-Authenticate"), "Bearer");
    EXPECT_THAT(missing.body, HasSubstr("own shape"));
    EXPECT_EQ(api.get("/test/echo/a/b", header("Authorization", "Bearer wrong")).status, 401);
    const auto right = api.get("/test/echo/a/b", header("Authorization", "Bearer sesame"));
    EXPECT_EQ(right.status, 200);
    EXPECT_EQ(right.body, "acme|a|b|");
}

TEST(Router, OpenRoutesKnowTheCallerOnlyByAKey) {
    TestApi api(with_keys());
    EXPECT_EQ(api.get("/test/open").body, "|");
    EXPECT_EQ(api.get("/test/open", header("Authorization", "Bearer wrong")).body, "|");
    EXPECT_EQ(api.get("/test/open", header("Authorization", "Bearer sesame")).body, "acme|");
}

TEST(Router, SomeRoutesNeedAnOperatorsKey) {
    Arrangement setup = with_keys();
    setup.keys.push_back({"boss", "house", auth::hash_key("open up"), true});
    setup.add_routes = [](Router& router) {
        router.add(route(net::Method::post, "/test/change", echo_call, Access::admin));
    };
    TestApi api(std::move(setup));
    EXPECT_EQ(api.post("/test/change", "").status, 401);
    const auto refused = api.post("/test/change", "", header("Authorization", "Bearer sesame"));
    EXPECT_EQ(refused.status, 403);
    EXPECT_THAT(refused.body, HasSubstr("own shape: POST /test/change needs an operator's key"));
    EXPECT_THAT(refused.body, HasSubstr("auth.operators"));
    const auto taken = api.post("/test/change", "", header("Authorization", "Bearer open up"));
    EXPECT_EQ(taken.body, "house|");
    TestApi without_keys(with_routes());
    EXPECT_EQ(without_keys.get("/admin/v1/workers").status, 200);
}

// Asks another thread who holds a token, which is named as the scopes that it has.
class Introspection final : public auth::Authenticator {
public:
    Introspection() { elsewhere_.start(); }
    ~Introspection() override { elsewhere_.stop(); }

    bool required() const override { return true; }
    Task<Result<auth::Caller>> authenticate(std::string_view authorization) const override {
        auto caller = co_await call_on(elsewhere_.executor(), [authorization] {
            return caller_of(authorization);
        });
        co_return caller;
    }

private:
    static Result<auth::Caller> caller_of(std::string_view authorization) {
        const std::map<std::string_view, auth::Scopes> known{
            {"Bearer reader", {auth::Scope::jobs_read}},
            {"Bearer librarian", {auth::Scope::assets_read, auth::Scope::assets_write}},
            {"Bearer watcher", {auth::Scope::metrics_read}},
        };
        const auto found = known.find(authorization);
        return found == known.end()
                   ? Result<auth::Caller>(fail(Code::unauthorized, "nobody knows this token"))
                   : auth::Caller{"acme", "token", found->second};
    }

    mutable net::IoThread elsewhere_{"elsewhere"};
};

TEST(Router, ATokenMayBeAskedAboutElsewhereAndHasItsScopes) {
    Arrangement setup = with_routes();
    setup.authenticator = std::make_shared<Introspection>();
    TestApi api(std::move(setup));
    const auto status = [&api](std::string method, std::string_view path, std::string token) {
        return api.send(method, path, {}, header("Authorization", "Bearer " + token)).status;
    };
    EXPECT_EQ(status("GET", "/test/echo/a/b", "reader"), 200);
    EXPECT_EQ(status("DELETE", "/test/echo/a/b", "reader"), 403);
    EXPECT_EQ(status("GET", "/test/echo/a/b", "librarian"), 403);
    EXPECT_EQ(status("GET", "/test/open", "librarian"), 200);
    EXPECT_EQ(status("GET", "/test/echo/a/b", "stranger"), 401);
    const std::string asset = "/api/v2/assets/00000000-0000-7000-8000-000000000001";
    EXPECT_EQ(status("GET", asset, "reader"), 403);
    EXPECT_EQ(status("GET", asset, "librarian"), 404);
    EXPECT_EQ(status("GET", "/v2/workflows", "reader"), 403);
    EXPECT_EQ(status("GET", "/metrics", "reader"), 403);
    EXPECT_EQ(status("GET", "/metrics", "watcher"), 200);
    EXPECT_EQ(status("GET", "/admin/v1/workers", "watcher"), 403);
    const auto refused = api.post("/test/echo/a/b", "", header("Authorization", "Bearer reader"));
    EXPECT_THAT(
        refused.body,
        HasSubstr("own shape: POST /test/echo/a/b needs the scope 'jobs:write', which these")
    );
}

// Everything that changes the fleet or shows what belongs to all tenants.
TEST(Router, OperatorsRoutesAreClosedToTenantsAndSayItInTheDocument) {
    Arrangement setup = with_keys();
    setup.keys.push_back({"boss", "house", auth::hash_key("open up"), true});
    TestApi api(std::move(setup));
    const auto document = *json::parse_object(api.get("/openapi.json").body);
    for (const auto& [method, path, pattern] : std::vector<std::array<std::string, 3>>{
             {"GET", "/admin/v1/workers", "/admin/v1/workers"},
             {"POST", "/admin/v1/workers/w/drain", "/admin/v1/workers/{id}/drain"},
             {"POST", "/admin/v1/workers/w/resume", "/admin/v1/workers/{id}/resume"},
             {"GET", "/metrics", "/metrics"},
         }) {
        EXPECT_EQ(api.send(method, path).status, 401) << path;
        const auto tenant = api.send(method, path, {}, header("Authorization", "Bearer sesame"));
        EXPECT_EQ(tenant.status, 403) << path;
        EXPECT_EQ(error_code(tenant), "forbidden") << path;
        const auto boss = api.send(method, path, {}, header("Authorization", "Bearer open up"));
        EXPECT_NE(boss.status, 403) << path;
        const auto& operation =
            document.at("paths").at(pattern).at(method == "GET" ? "get" : "post").as_object();
        EXPECT_TRUE(operation.at("responses").as_object().contains("403")) << path;
        EXPECT_THAT(
            std::string(operation.at("description").as_string()), HasSubstr("operator's key")
        );
    }
}

TEST(Router, MetricsMayBeOpenForScrapers) {
    Arrangement setup = with_keys();
    setup.options.metrics_are_open = true;
    TestApi api(std::move(setup));
    EXPECT_EQ(api.get("/metrics").status, 200);
}

TEST(Router, OnlyItsOwnNamesAreHosts) {
    Arrangement setup = with_routes();
    setup.rules.hosts = net::HostRules({"comfyd.example"});
    TestApi api(std::move(setup));
    const auto ask = [&api](const std::string& host, const std::string& more = {}) {
        net::test::RawClient client(api.port);
        client.send(
            "GET /test/open HTTP/1.1\r\nHost: " + host + "\r\n" + more + "Connection: close\r\n\r\n"
        );
        return client.read_all();
    };
    for (const char* host : {"localhost", "127.0.0.1:8080", "[::1]:1", "comfyd.example:444"}) {
        EXPECT_THAT(ask(host), testing::StartsWith("HTTP/1.1 200")) << host;
    }
    for (const char* host : {"evil.example", "evil.example:8080", "10.0.0.1"}) {
        const std::string refused = ask(host, "Origin: http://" + std::string(host) + "\r\n");
        EXPECT_THAT(refused, testing::StartsWith("HTTP/1.1 421")) << host;
        EXPECT_THAT(refused, HasSubstr("own shape")) << host;
        EXPECT_THAT(refused, HasSubstr("COMFYD_HOSTS")) << host;
    }
}

TEST(Router, RequestIdsAreEchoedOrMade) {
    TestApi api(with_routes());
    EXPECT_EQ(
        api.get("/test/open", header("X-Request-Id", "abc-1.2:3")).headers.get("X-Request-Id"),
        "abc-1.2:3"
    );
    const auto made = api.get("/test/open", header("X-Request-Id", "not <valid>"));
    EXPECT_TRUE(Uuid::parse(made.headers.get("X-Request-Id")));
    EXPECT_FALSE(api.get("/nothing").headers.get("X-Request-Id").empty());
}

TEST(Router, FailingHandlersAreInternalErrorsThatTellNoSecrets) {
    TestApi api(with_routes());
    const auto thrown = api.get("/test/throw", header("X-Request-Id", "r-1"));
    EXPECT_EQ(thrown.status, 500);
    EXPECT_THAT(thrown.body, HasSubstr("own shape"));
    EXPECT_THAT(thrown.body, HasSubstr("r-1"));
    EXPECT_THAT(thrown.body, testing::Not(HasSubstr("secret")));
    EXPECT_EQ(api.get("/test/silent").status, 500);
    EXPECT_EQ(api.get("/test/open").status, 200);
}

TEST(Router, BusyAnswersSayWhenToComeBack) {
    TestApi api(with_routes());
    const auto response = api.get("/test/full");
    EXPECT_EQ(response.status, 429);
    EXPECT_FALSE(response.headers.get("Retry-After").empty());
}

TEST(Router, CountsRequestsByPattern) {
    TestApi api(with_routes());
    api.get("/test/echo/a/b");
    api.get("/test/echo/c/d");
    api.get("/no/such/path");
    api.send("PUT", "/test/echo/a/b");
    const auto text = api.get("/metrics").body;
    EXPECT_THAT(
        text,
        HasSubstr(
            R"(comfyd_http_requests_total{method="GET",route="/test/echo/{a}/{b}",status="200"} 2)"
        )
    );
    EXPECT_THAT(text, HasSubstr(R"({method="GET",route="unmatched",status="404"} 1)"));
    EXPECT_THAT(text, HasSubstr(R"({method="PUT",route="/test/echo/{a}/{b}",status="405"} 1)"));
}

net::Headers preflight(std::string origin) {
    net::Headers headers = header("Origin", std::move(origin));
    headers.set("Access-Control-Request-Method", "POST");
    headers.set("Access-Control-Request-Headers", "authorization");
    return headers;
}

TEST(Router, CorsAllowsConfiguredOrigins) {
    Arrangement setup = with_routes();
    setup.rules.origins = {"https://app.example"};
    TestApi api(std::move(setup));
    const auto allowed =
        api.send("OPTIONS", "/test/echo/a/b", {}, preflight("https://app.example"));
    EXPECT_EQ(allowed.status, 204);
    EXPECT_EQ(allowed.headers.get("Access-Control-Allow-Origin"), "https://app.example");
    EXPECT_THAT(
        std::string(allowed.headers.get("Access-Control-Allow-Methods")), HasSubstr("POST")
    );
    EXPECT_THAT(
        std::string(allowed.headers.get("Access-Control-Allow-Headers")),
        HasSubstr("Idempotency-Key")
    );
    EXPECT_EQ(allowed.headers.get("Vary"), "Origin");
    const auto answer = api.get("/test/echo/a/b", header("Origin", "https://app.example"));
    EXPECT_EQ(answer.headers.get("Access-Control-Allow-Origin"), "https://app.example");
    for (const char* name :
         {"Location", "Retry-After", "X-API-Version", "Deprecation", "Link", "ETag"}) {
        EXPECT_THAT(
            std::string(answer.headers.get("Access-Control-Expose-Headers")), HasSubstr(name)
        );
    }
    const auto other = api.send("OPTIONS", "/test/echo/a/b", {}, preflight("https://evil.example"));
    EXPECT_FALSE(other.headers.contains("Access-Control-Allow-Origin"));
    EXPECT_FALSE(other.headers.contains("Access-Control-Allow-Methods"));
}

TEST(Router, CorsStarAllowsAll) {
    Arrangement setup = with_routes();
    setup.rules.origins = {"*"};
    TestApi api(std::move(setup));
    const auto answer = api.get("/nothing", header("Origin", "https://x.example"));
    EXPECT_EQ(answer.headers.get("Access-Control-Allow-Origin"), "*");
    EXPECT_EQ(
        api.send("POST", "/test/echo/a/b", {}, header("Origin", "https://x.example")).status, 200
    );
}

TEST(Router, PagesOfOtherOriginsCannotUseAServerWithoutKeys) {
    TestApi api(with_routes());
    EXPECT_EQ(
        api.send("POST", "/test/echo/a/b", {}, header("Origin", "https://evil.example")).status, 403
    );
    EXPECT_EQ(api.send("POST", "/test/echo/a/b", {}, header("Origin", "null")).status, 403);
    EXPECT_EQ(api.send("POST", "/test/echo/a/b", {}, header("Origin", api.url(""))).status, 200);
    EXPECT_EQ(api.get("/test/echo/a/b", header("Origin", "https://evil.example")).status, 200);
    const auto options =
        api.send("OPTIONS", "/test/echo/a/b", {}, preflight("https://evil.example"));
    EXPECT_EQ(options.status, 204);
    EXPECT_FALSE(options.headers.contains("Access-Control-Allow-Origin"));
}

TEST(EncodeError, HasCodeMessageAndDetails) {
    const auto response = encode_error(Error(Code::not_found, "gone", {{"id", 7}}));
    EXPECT_EQ(response.status, 404);
    EXPECT_EQ(
        test::parse(response.body),
        test::parse(R"({"error":{"code":"not_found","message":"gone","details":{"id":7}}})")
    );
    EXPECT_FALSE(test::parse(encode_error(Error(Code::internal, "x")).body)
                     .at("error")
                     .as_object()
                     .contains("details"));
}

// Every "$ref" in the document.
void collect_references(const json::value& in, std::set<std::string>& references) {
    if (const json::object* members = in.if_object()) {
        for (const auto& member : *members) {
            if (member.key() == "$ref") {
                references.emplace(member.value().as_string());
            }
            collect_references(member.value(), references);
        }
    } else if (const json::array* items = in.if_array()) {
        for (const json::value& item : *items) {
            collect_references(item, references);
        }
    }
}

TEST(OpenApi, DocumentIsWhole) {
    TestApi api(with_routes());
    const auto response = api.get("/openapi.json");
    EXPECT_EQ(response.headers.get("Content-Type"), "application/json");
    const json::object document = test::parse(response.body);
    EXPECT_EQ(document.at("openapi"), "3.0.3");
    EXPECT_EQ(document.at("info").at("title"), "comfyd");
    EXPECT_TRUE(document.at("components").at("securitySchemes").as_object().contains("bearerAuth"));
    std::set<std::string> references;
    collect_references(document, references);
    EXPECT_FALSE(references.empty());
    for (const std::string& reference : references) {
        ASSERT_TRUE(reference.starts_with("#/components/")) << reference;
        const auto rest = reference.substr(13);
        const auto slash = rest.find('/');
        EXPECT_TRUE(document.at("components")
                        .at(rest.substr(0, slash))
                        .as_object()
                        .contains(rest.substr(slash + 1))
        ) << reference;
    }
}

// Names between braces.
std::set<std::string> names_in_path(std::string_view path) {
    std::set<std::string> names;
    for (auto open = path.find('{'); open != std::string_view::npos;
         open = path.find('{', open + 1)) {
        names.emplace(path.substr(open + 1, path.find('}', open) - open - 1));
    }
    return names;
}

TEST(OpenApi, OperationsAreNamedOnceAndDeclareTheirParameters) {
    TestApi api(with_routes());
    const json::object document = test::parse(api.get("/openapi.json").body);
    std::set<std::string> ids;
    std::set<std::string> tags;
    for (const auto& tag : document.at("tags").as_array()) {
        tags.emplace(tag.at("name").as_string());
    }
    const json::object& paths = document.at("paths").as_object();
    EXPECT_TRUE(paths.contains("/api/v2/jobs/{id}/events"));
    EXPECT_FALSE(paths.contains("/test/open"));
    for (const auto& path : paths) {
        for (const auto& entry : path.value().as_object()) {
            const json::object& operation = entry.value().as_object();
            const std::string where = std::string(entry.key()) + " " + std::string(path.key());
            ASSERT_TRUE(operation.contains("operationId")) << where;
            EXPECT_TRUE(ids.emplace(operation.at("operationId").as_string()).second) << where;
            EXPECT_FALSE(operation.at("responses").as_object().empty()) << where;
            EXPECT_TRUE(operation.at("responses").as_object().contains("default")) << where;
            EXPECT_TRUE(operation.contains("security")) << where;
            for (const json::value& tag : operation.at("tags").as_array()) {
                EXPECT_TRUE(tags.contains(std::string(tag.as_string()))) << where;
            }
            std::set<std::string> declared;
            if (const json::value* parameters = operation.if_contains("parameters")) {
                for (const json::value& parameter : parameters->as_array()) {
                    if (parameter.at("in") == "path") {
                        EXPECT_EQ(parameter.at("required"), true) << where;
                        declared.emplace(parameter.at("name").as_string());
                    }
                }
            }
            EXPECT_EQ(declared, names_in_path(std::string(path.key()))) << where;
        }
    }
}

TEST(Operations, HealthReadinessVersionAndPages) {
    TestApi api(with_keys());
    EXPECT_EQ(api.get("/healthz").status, 200);
    EXPECT_EQ(api.get("/readyz").status, 200);
    api.ready = false;
    const auto not_ready = api.get("/readyz");
    EXPECT_EQ(not_ready.status, 503);
    EXPECT_FALSE(not_ready.headers.get("Retry-After").empty());
    EXPECT_EQ(test::parse(not_ready.body).at("reason"), "no worker is up");
    EXPECT_EQ(api.get("/api/v2/health").status, 503);
    EXPECT_EQ(api.get("/healthz").status, 200);
    EXPECT_EQ(test::parse(api.get("/version").body).at("version"), COMFYD_VERSION);
    EXPECT_EQ(api.get("/metrics").status, 401);
    EXPECT_EQ(api.get("/metrics", header("Authorization", "Bearer sesame")).status, 403);
    for (const char* page : {"/", "/docs"}) {
        const auto response = api.get(page);
        EXPECT_EQ(response.status, 200);
        EXPECT_THAT(std::string(response.headers.get("Content-Type")), HasSubstr("text/html"));
        EXPECT_THAT(response.body, testing::Not(HasSubstr("https://")));
    }
}

}  // namespace
}  // namespace comfyd::api
