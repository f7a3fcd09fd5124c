#include "api/route_table.hpp"

#include <gtest/gtest.h>

namespace comfyd::api {
namespace {

using net::Method;

class Routes : public testing::Test {
protected:
    void add(Method method, std::string pattern) {
        Route route;
        route.method = method;
        route.pattern = std::move(pattern);
        route.handler = [](Call&) -> Task<> { return nothing(); };
        table.add(std::move(route));
    }
    RouteTable::Match match(Method method, std::string_view path) {
        const auto segments = split_path(path);
        EXPECT_TRUE(segments) << path;
        return table.match(method, *segments);
    }
    std::string pattern(Method method, std::string_view path) {
        const auto found = match(method, path);
        return found.route == nullptr ? "" : found.route->pattern;
    }
    static Task<> nothing() { co_return; }

    RouteTable table;
};

TEST_F(Routes, LiteralsWinOverParametersAndParametersOverTheRest) {
    add(Method::get, "/a/{id}");
    add(Method::get, "/a/list");
    add(Method::get, "/a/{rest*}");
    EXPECT_EQ(pattern(Method::get, "/a/list"), "/a/list");
    EXPECT_EQ(pattern(Method::get, "/a/other"), "/a/{id}");
    EXPECT_EQ(pattern(Method::get, "/a/other/more"), "/a/{rest*}");
    EXPECT_EQ(pattern(Method::get, "/a/list/more"), "/a/{rest*}");
}

TEST_F(Routes, ALiteralThatLeadsNowhereDoesNotHideAParameter) {
    add(Method::get, "/a/list/all");
    add(Method::get, "/a/{id}/events");
    add(Method::post, "/b/fixed");
    add(Method::get, "/b/{id}");
    EXPECT_EQ(pattern(Method::get, "/a/list/events"), "/a/{id}/events");
    EXPECT_EQ(match(Method::get, "/a/list/events").parameters, std::vector<std::string>{"list"});
    EXPECT_EQ(pattern(Method::get, "/b/fixed"), "/b/{id}");
}

TEST_F(Routes, ParametersAreDecodedAndInOrder) {
    add(Method::get, "/a/{x}/b/{y}");
    const auto found = match(Method::get, "/a/1%2F2/b/%C3%A4");
    EXPECT_EQ(found.parameters, (std::vector<std::string>{"1/2", "ä"}));
    EXPECT_EQ(match(Method::get, "/%61/1/b/2").parameters, (std::vector<std::string>{"1", "2"}));
}

TEST_F(Routes, TheRestTakesEverything) {
    add(Method::get, "/files/{rest*}");
    EXPECT_EQ(match(Method::get, "/files/a/b%20c/").parameters[0], "a/b c/");
    EXPECT_EQ(match(Method::get, "/files/").parameters[0], "");
    EXPECT_EQ(match(Method::get, "/files").route, nullptr);
}

TEST_F(Routes, EmptyParametersDoNotMatch) {
    add(Method::get, "/a/{id}");
    EXPECT_EQ(pattern(Method::get, "/a/"), "");
    EXPECT_EQ(pattern(Method::get, "/a"), "");
    EXPECT_EQ(pattern(Method::get, "/a/1/"), "");
}

TEST_F(Routes, TheRootIsARoute) {
    add(Method::get, "/");
    EXPECT_EQ(pattern(Method::get, "/"), "/");
    EXPECT_EQ(pattern(Method::get, "/x"), "");
}

TEST_F(Routes, HeadFallsBackToGet) {
    add(Method::get, "/a");
    add(Method::get, "/b");
    add(Method::head, "/b");
    EXPECT_EQ(match(Method::head, "/a").route->method, Method::get);
    EXPECT_EQ(match(Method::head, "/b").route->method, Method::head);
}

TEST_F(Routes, OtherMethodsOfAPathAreNamed) {
    add(Method::get, "/a/{id}");
    add(Method::del, "/a/{id}");
    const auto found = match(Method::post, "/a/1");
    EXPECT_EQ(found.route, nullptr);
    EXPECT_EQ(found.others.size(), 2U);
    EXPECT_TRUE(match(Method::post, "/nothing").others.empty());
}

TEST(SplitPath, RefusesWhatIsNoPath) {
    EXPECT_FALSE(split_path(""));
    EXPECT_FALSE(split_path("a/b"));
    EXPECT_FALSE(split_path("*"));
    EXPECT_FALSE(split_path("/a%zz"));
    EXPECT_FALSE(split_path("/a%00b"));
    EXPECT_FALSE(split_path(std::string(65, '/')));
    EXPECT_EQ(split_path("/"), std::vector<std::string>{""});
}

TEST(ParameterNames, AreThoseOfThePattern) {
    EXPECT_EQ(parameter_names("/a/{x}/b/{rest*}"), (std::vector<std::string>{"x", "rest"}));
    EXPECT_TRUE(parameter_names("/a/b").empty());
}

}  // namespace
}  // namespace comfyd::api
