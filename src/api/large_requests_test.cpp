#include "api/large_requests.hpp"

#include <gtest/gtest.h>

#include <future>
#include <stdexcept>
#include <string>
#include <thread>

#include "api/test_support.hpp"

namespace comfyd::api {
namespace {

using test::Arrangement;
using test::TestApi;

// Says on which thread it ran, and how much it read.
Task<> tell_where(Call& call, std::thread::id& thread) {
    thread = std::this_thread::get_id();
    auto body = co_await call.exchange.read_body(64 * 1024 * 1024);
    net::Response response;
    response.body = (std::this_thread::get_id() == thread ? "stayed, " : "moved, ") +
                    std::to_string(body ? body->size() : 0);
    co_await send(call, std::move(response));
}

struct Meeting {
    std::promise<void> arrived;
    std::promise<void> go_on;
};

Task<> keep_the_thread(Call& call, Meeting& meeting) {
    meeting.arrived.set_value();
    meeting.go_on.get_future().wait();
    co_await send(call, net::Response{});
}

Task<> throw_error(Call&) {
    throw std::runtime_error("the secret reason");
    co_return;
}

Route route(std::string pattern, Handler handler) {
    Route made;
    made.method = net::Method::post;
    made.pattern = std::move(pattern);
    made.handler = std::move(handler);
    made.encode_error = encode_error;
    made.access = Access::jobs;
    return made;
}

TEST(LargeRequests, HaveThreadsOfTheirOwn) {
    std::thread::id thread;
    Arrangement setup;
    setup.add_routes = [&](Router& router) {
        router.add(route("/where", [&](Call& call) { return tell_where(call, thread); }));
        Route streaming = route("/stream", [&](Call& call) { return tell_where(call, thread); });
        streaming.streams_body = true;
        router.add(std::move(streaming));
    };
    TestApi api(std::move(setup));
    const auto post = [&](const char* path, std::size_t size) {
        return api.post(path, std::string(size, ' ')).body;
    };
    EXPECT_EQ(post("/where", 10), "stayed, 10");
    const std::thread::id connections = thread;
    EXPECT_EQ(post("/where", kLargeBodyBytes), "stayed, 262144");
    EXPECT_EQ(thread, connections);
    for (const std::size_t size : {kLargeBodyBytes + 1, std::size_t{5'000'000}}) {
        EXPECT_EQ(post("/where", size), "stayed, " + std::to_string(size));
        EXPECT_NE(thread, connections);
    }
    EXPECT_EQ(post("/stream", 5'000'000), "stayed, 5000000");
    EXPECT_EQ(thread, connections);
}

TEST(LargeRequests, HoldUpNobodyElse) {
    Meeting meeting;
    Arrangement setup;
    setup.add_routes = [&](Router& router) {
        router.add(route("/busy", [&](Call& call) { return keep_the_thread(call, meeting); }));
        router.add(route("/quick", [](Call& call) { return send(call, net::Response{}); }));
    };
    TestApi api(std::move(setup));
    auto busy = std::async(std::launch::async, [url = api.url("/busy")] {
        net::test::Loop loop;
        net::Client client(loop.executor(), {});
        net::ClientRequest request;
        request.method = "POST";
        request.url = url;
        request.body = std::string(kLargeBodyBytes + 1, ' ');
        return loop.run(client.send(std::move(request)));
    });
    meeting.arrived.get_future().wait();
    EXPECT_EQ(api.post("/quick", "{}").status, 200);
    meeting.go_on.set_value();
    const auto answer = busy.get();
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->status, 200);
}

TEST(LargeRequests, FailLikeAnyOther) {
    Arrangement setup;
    setup.add_routes = [](Router& router) { router.add(route("/throws", throw_error)); };
    TestApi api(std::move(setup));
    const auto answer = api.post("/throws", std::string(kLargeBodyBytes + 1, ' '));
    EXPECT_EQ(answer.status, 500);
    EXPECT_EQ(answer.body.find("secret"), std::string::npos);
}

}  // namespace
}  // namespace comfyd::api
