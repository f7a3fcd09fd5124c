// Who may call, and how those who ask wait for a line.
#include "agent/switchboard.hpp"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "agent/calls.hpp"
#include "net/client.hpp"
#include "net/io_threads.hpp"
#include "support/http.hpp"
#include "support/wait.hpp"

namespace comfyd::agent {
namespace {

using support::Http;
using support::wait_until;

TEST(Tokens, AreGoodForOneNameAloneAndDieWithIt) {
    TokenBook book({{"a", "token-a"}, {"b", "token-b"}, {"none", ""}});
    EXPECT_TRUE(book.knows("a", "token-a"));
    for (const auto& [instance, token] : std::vector<std::pair<const char*, const char*>>{
             {"a", "token-b"}, {"a", ""}, {"", ""}, {"none", ""}, {"c", "token-a"}
         }) {
        EXPECT_FALSE(book.knows(instance, token)) << instance << token;
    }
    book.set("c", "token-c");
    EXPECT_TRUE(book.knows("c", "token-c"));
    book.set("c", "token-d");
    EXPECT_FALSE(book.knows("c", "token-c"));
    book.remove("c");
    EXPECT_FALSE(book.knows("c", "token-d"));
}

class SwitchboardTest : public testing::Test {
protected:
    SwitchboardTest() {
        threads_.start();
        client_thread_.start();
        const auto endpoint = server_.listen({"127.0.0.1", 0});
        EXPECT_TRUE(endpoint);
        http_ = std::make_unique<Http>(endpoint->url());
    }
    ~SwitchboardTest() override {
        server_.stop(Millis(0));
        client_thread_.stop();
        threads_.stop();
    }

    static Task<> handle(Switchboard& switchboard, net::Exchange& exchange) {
        auto instance = switchboard.identify(exchange.request());
        if (!instance) {
            net::Response response;
            response.status = 401;
            auto sent = co_await exchange.send(std::move(response));
            static_cast<void>(sent);
        } else if (exchange.request().path == kControlRoute) {
            co_await switchboard.take_control(exchange, std::move(*instance));
        } else {
            co_await switchboard.take_line(exchange, std::move(*instance));
        }
    }
    std::unique_ptr<support::WsStream> call(std::string_view route, const std::string& session) {
        net::Headers headers;
        headers.set(kInstanceHeader, "gpu");
        headers.set(kTokenHeader, "token");
        headers.set(kSessionHeader, session);
        return http_->ws(std::string(route), headers);
    }
    std::future<Result<net::Descriptor>> open(Millis patience) {
        return boost::asio::co_spawn(
            client_thread_.executor(),
            switchboard_.open("gpu", Deadline::in(patience)),
            boost::asio::use_future
        );
    }

    TokenBook tokens_{{{"gpu", "token"}}};
    Switchboard switchboard_{tokens_};
    net::IoThreads threads_{2};
    net::IoThread client_thread_{"client"};
    net::Server server_{threads_.contexts(), {}, [this](net::Exchange& exchange) {
                            return handle(switchboard_, exchange);
                        }};
    std::unique_ptr<Http> http_;
};

TEST_F(SwitchboardTest, NobodyIsWaitedForWhoHasNotCalled) {
    const auto end = open(std::chrono::hours(1)).get();
    ASSERT_FALSE(end);
    EXPECT_EQ(end.error().code, Code::connection_failed);
    EXPECT_EQ(end.error().message.find("refused"), std::string::npos);  // which would mean: it died
}

TEST_F(SwitchboardTest, WhoHasCalledIsWaitedForUntilALineIsFree) {
    const auto control = call(kControlRoute, "s");
    ASSERT_TRUE(wait_until([&] { return switchboard_.report_of("gpu").has_value(); }));
    EXPECT_FALSE(open(Millis(20)).get());  // it has none, and none comes
    auto waiting = open(std::chrono::minutes(5));
    const auto line = call(kLineRoute, "s");
    auto end = waiting.get();
    ASSERT_TRUE(end) << end.error().message;
    EXPECT_EQ(switchboard_.parked("gpu"), 0U);
    // Our end closed is the line closed.
    end->reset();
    EXPECT_TRUE(line->wait_end());
}

TEST_F(SwitchboardTest, ANewCallDropsTheLinesOfTheOld) {
    const auto first = call(kControlRoute, "one");
    const auto old = call(kLineRoute, "one");
    ASSERT_TRUE(wait_until([&] { return switchboard_.parked("gpu") == 1; }));
    const auto second = call(kControlRoute, "two");
    EXPECT_TRUE(old->wait_end());
    EXPECT_TRUE(call(kLineRoute, "one")->wait_end());
    const auto line = call(kLineRoute, "two");
    ASSERT_TRUE(wait_until([&] { return switchboard_.parked("gpu") == 1; }));
    // The end of the old call does not end the new one.
    first->close();
    second->send(R"({"state": "ready"})");
    ASSERT_TRUE(wait_until([&] {
        const auto report = switchboard_.report_of("gpu");
        return report && report->contains("state");
    }));
    EXPECT_EQ(switchboard_.parked("gpu"), 1U);
}

TEST_F(SwitchboardTest, LinesGoWithTheirCall) {
    auto control = call(kControlRoute, "s");
    const auto line = call(kLineRoute, "s");
    ASSERT_TRUE(wait_until([&] { return switchboard_.parked("gpu") == 1; }));
    control.reset();
    EXPECT_TRUE(line->wait_end());
    EXPECT_TRUE(wait_until([&] { return !switchboard_.report_of("gpu"); }));
    EXPECT_EQ(switchboard_.parked("gpu"), 0U);
}

TEST_F(SwitchboardTest, ATokenThatIsTakenBackEndsTheCall) {
    const auto control = call(kControlRoute, "s");
    const auto line = call(kLineRoute, "s");
    ASSERT_TRUE(wait_until([&] { return switchboard_.parked("gpu") == 1; }));
    tokens_.remove("gpu");
    control->send("{}");
    EXPECT_TRUE(control->wait_end());
    EXPECT_TRUE(line->wait_end());
    EXPECT_FALSE(call(kControlRoute, "s")->connected());
}

TEST_F(SwitchboardTest, OneThatIsCutOffLosesAllAtOnce) {
    const auto control = call(kControlRoute, "s");
    const auto used = call(kLineRoute, "s");
    auto end = open(std::chrono::minutes(5)).get();
    ASSERT_TRUE(end) << end.error().message;
    const auto parked = call(kLineRoute, "s");
    ASSERT_TRUE(wait_until([&] { return switchboard_.parked("gpu") == 1; }));
    tokens_.remove("gpu");
    switchboard_.cut("gpu");
    EXPECT_TRUE(control->wait_end());
    EXPECT_TRUE(used->wait_end());
    EXPECT_TRUE(parked->wait_end());
    EXPECT_FALSE(switchboard_.report_of("gpu"));
    EXPECT_EQ(switchboard_.parked("gpu"), 0U);
    switchboard_.cut("gpu");  // and nothing, where nobody calls
    switchboard_.cut("nobody");
}

TEST_F(SwitchboardTest, WhoWaitsForALineIsToldThatNoneWillCome) {
    const auto control = call(kControlRoute, "s");
    ASSERT_TRUE(wait_until([&] { return switchboard_.report_of("gpu").has_value(); }));
    auto waiting = open(std::chrono::hours(1));
    EXPECT_EQ(waiting.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
    switchboard_.cut("gpu");
    EXPECT_EQ(waiting.get().error().code, Code::connection_failed);
}

TEST_F(SwitchboardTest, NoMoreLinesThanThereMayBe) {
    const auto control = call(kControlRoute, "s");
    ASSERT_TRUE(wait_until([&] { return switchboard_.report_of("gpu").has_value(); }));
    std::vector<std::unique_ptr<support::WsStream>> lines;
    for (int i = 0; i < 33; ++i) {
        lines.push_back(call(kLineRoute, "s"));
    }
    EXPECT_TRUE(wait_until([&] {
        return std::ranges::count_if(lines, [](const auto& line) { return line->ended(); }) == 1;
    }));
    EXPECT_EQ(switchboard_.parked("gpu"), 32U);
}

}  // namespace
}  // namespace comfyd::agent
