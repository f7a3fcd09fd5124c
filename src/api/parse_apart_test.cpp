#include "admission/parse_apart.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "api/test_support.hpp"

namespace comfyd::api {
namespace {

// Answers with where a text of `size` bytes was parsed.
Task<> tell_where(Call& call, const Services& services, std::size_t size) {
    auto parsed_on = co_await admission::parse_apart(
        services,
        std::string(size, 'x'),
        [](const std::string& text) { return std::pair(std::this_thread::get_id(), text.size()); }
    );
    net::Response response;
    response.body = parsed_on.first == std::this_thread::get_id() ? "here" : "apart";
    response.body += " " + std::to_string(parsed_on.second);
    co_await send(call, std::move(response));
}

TEST(ParseApart, LargeTextsDoNotOccupyTheThreadOfTheConnection) {
    const Services* services = nullptr;
    test::Arrangement setup;
    setup.add_routes = [&services](Router& router) {
        for (const std::size_t size :
             {std::size_t{10}, admission::kLargeTextBytes, admission::kLargeTextBytes + 1}) {
            Route route;
            route.pattern = "/where/" + std::to_string(size);
            route.handler = [&services, size](Call& call) {
                return tell_where(call, *services, size);
            };
            route.encode_error = encode_error;
            route.access = Access::jobs;
            router.add(std::move(route));
        }
    };
    test::TestApi api(std::move(setup));
    services = &api.services;
    EXPECT_EQ(api.get("/where/10").body, "here 10");
    EXPECT_EQ(api.get("/where/262144").body, "here 262144");
    EXPECT_EQ(api.get("/where/262145").body, "apart 262145");
}

}  // namespace
}  // namespace comfyd::api
