// The dashboard's page and files, over real sockets.
#include "api/dashboard.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/test_support.hpp"

namespace comfyd::api {
namespace {

using test::header;
using test::TestApi;
using testing::HasSubstr;
using testing::Not;

class Dashboard : public testing::Test {
protected:
    static test::Arrangement arrangement() {
        test::Arrangement made;
        made.keys = {{"ci", "acme", auth::hash_key("sesame")}};
        made.add_routes = [](Router& router) { add_dashboard(router, ApiOptions()); };
        return made;
    }
    static std::string asset(const DashboardFile& file) {
        return "/ui/assets/" + std::string(file.name);
    }

    TestApi api_{arrangement()};
};

TEST_F(Dashboard, IsThePageAtEveryAddressOfItAndNeedsNoKey) {
    for (const char* path :
         {"/ui/", "/ui/jobs", "/ui/jobs/019a?x=1", "/ui/webhooks/deliveries/a_b"}) {
        const auto page = api_.get(path);
        EXPECT_EQ(page.status, 200) << path;
        EXPECT_EQ(page.headers.get("Content-Type"), "text/html; charset=utf-8");
        EXPECT_EQ(page.headers.get("Cache-Control"), "no-cache");
        EXPECT_EQ(page.body, kDashboardFiles.back().bytes);
    }
    EXPECT_EQ(api_.get("/ui").status, 302);
    EXPECT_EQ(api_.get("/ui").headers.get("Location"), "/ui/");
    EXPECT_EQ(api_.post("/ui/", "").status, 405);
}

TEST_F(Dashboard, ThePageNamesItsFilesAndHasNoScriptOfItsOwn) {
    const std::string page = api_.get("/ui/").body;
    ASSERT_GE(kDashboardFiles.size(), 4U);
    for (const DashboardFile& file : kDashboardFiles.first(kDashboardFiles.size() - 1)) {
        EXPECT_THAT(page, HasSubstr(asset(file)));
        const auto got = api_.get(asset(file));
        EXPECT_EQ(got.status, 200) << file.name;
        EXPECT_EQ(got.body, file.bytes) << file.name;
        EXPECT_EQ(got.headers.get("Content-Type"), file.content_type);
        EXPECT_EQ(got.headers.get("Cache-Control"), "public, max-age=31536000, immutable");
        EXPECT_EQ(got.headers.get("X-Content-Type-Options"), "nosniff");
        EXPECT_THAT(std::string(file.name), HasSubstr(std::string(file.hash)));
    }
    EXPECT_THAT(page, Not(HasSubstr("{{")));
    EXPECT_THAT(page, Not(HasSubstr("<style")));
    EXPECT_THAT(page, Not(HasSubstr("://")));
}

TEST_F(Dashboard, NothingComesFromElsewhere) {
    const auto page = api_.get("/ui/");
    const std::string policy(page.headers.get("Content-Security-Policy"));
    EXPECT_THAT(policy, HasSubstr("default-src 'none'"));
    EXPECT_THAT(policy, HasSubstr("script-src 'self';"));
    EXPECT_THAT(policy, HasSubstr("style-src 'self';"));
    EXPECT_THAT(policy, HasSubstr("img-src 'self';"));
    EXPECT_THAT(policy, HasSubstr("frame-ancestors 'none'"));
    EXPECT_THAT(policy, HasSubstr("require-trusted-types-for 'script'"));
    EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
    EXPECT_EQ(page.headers.get("X-Frame-Options"), "DENY");
    EXPECT_EQ(page.headers.get("X-Content-Type-Options"), "nosniff");
    EXPECT_EQ(page.headers.get("Referrer-Policy"), "no-referrer");
    EXPECT_EQ(page.headers.get("Cross-Origin-Opener-Policy"), "same-origin");
}

TEST(DashboardWithCdn, ShowsPicturesOfItAndNothingElse) {
    test::Arrangement made;
    made.options.cdn_url = "https://pictures.example:8443/comfyd/";
    made.add_routes = [options = made.options](Router& router) { add_dashboard(router, options); };
    TestApi api(std::move(made));
    const std::string policy(api.get("/ui/").headers.get("Content-Security-Policy"));
    EXPECT_THAT(policy, HasSubstr("img-src 'self' https://pictures.example:8443;"));
    EXPECT_THAT(policy, HasSubstr("script-src 'self';"));
    EXPECT_THAT(policy, HasSubstr("connect-src 'self';"));
}

TEST_F(Dashboard, IsNotSentAgainToWhoHasIt) {
    for (const std::string& path : {std::string("/ui/"), asset(kDashboardFiles.front())}) {
        const auto first = api_.get(path);
        const std::string etag(first.headers.get("ETag"));
        ASSERT_FALSE(etag.empty());
        const auto again = api_.get(path, header("If-None-Match", etag));
        EXPECT_EQ(again.status, 304) << path;
        EXPECT_TRUE(again.body.empty());
        EXPECT_EQ(again.headers.get("ETag"), etag);
        EXPECT_EQ(api_.get(path, header("If-None-Match", "\"other\"")).status, 200);
        const auto head = api_.send("HEAD", path);
        EXPECT_EQ(head.status, 200);
        EXPECT_TRUE(head.body.empty());
        EXPECT_EQ(head.headers.get("ETag"), etag);
        EXPECT_EQ(head.headers.get("Content-Length"), std::to_string(first.body.size()));
    }
}

TEST_F(Dashboard, HasNoOtherFiles) {
    for (const char* path :
         {"/ui/assets/",
          "/ui/assets/app.js",
          "/ui/assets/index.html",
          "/ui/assets/../../../../etc/passwd",
          "/ui/assets/..%2f..%2f..%2fetc%2fpasswd",
          "/ui/assets/%2e%2e/%2e%2e/etc/passwd",
          "/ui/assets/a/b"}) {
        const auto answer = api_.get(path);
        EXPECT_EQ(answer.status, 404) << path;
        EXPECT_THAT(answer.body, HasSubstr("not_found")) << path;
    }
    EXPECT_EQ(api_.get("/ui/assets/%00").status, 400);
}

TEST_F(Dashboard, IsWhereABrowserThatAsksForTheServerComesTo) {
    const auto browser =
        api_.get("/", header("Accept", "text/html,application/xhtml+xml,*/*;q=0.8"));
    EXPECT_EQ(browser.status, 302);
    EXPECT_EQ(browser.headers.get("Location"), "/ui/");
    EXPECT_EQ(browser.headers.get("Vary"), "Accept");
    const auto program = api_.get("/", header("Accept", "*/*"));
    EXPECT_EQ(program.status, 200);
    EXPECT_THAT(program.body, HasSubstr("/openapi.json"));
}

}  // namespace
}  // namespace comfyd::api
