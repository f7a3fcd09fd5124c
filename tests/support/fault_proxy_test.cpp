#include "support/fault_proxy.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "net/io_threads.hpp"
#include "net/server.hpp"
#include "support/raw_socket.hpp"
#include "support/wait.hpp"

namespace comfyd::support {
namespace {

using Way = FaultProxy::Way;
using Fault = FaultProxy::Fault;

constexpr std::string_view kRequest = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
constexpr std::string_view kAnswerEnd = "end of it";

Task<> answer(net::Exchange& exchange) {
    net::Response response;
    response.body = "begin, " + std::string(kAnswerEnd);
    co_await exchange.send(std::move(response));
}

class FaultProxyTest : public testing::Test {
protected:
    FaultProxyTest() {
        thread_.start();
        server_ = std::make_unique<net::Server>(
            std::vector{&thread_.context()},
            net::ServerLimits{},
            [this](net::Exchange& exchange) {
                ++requests;
                return answer(exchange);
            }
        );
        proxy = std::make_unique<FaultProxy>(server_->listen({"127.0.0.1", 0})->port);
    }
    ~FaultProxyTest() override {
        proxy.reset();
        server_->stop(Millis(0));
        server_.reset();
        thread_.stop();
    }

    std::string url() const { return "http://127.0.0.1:" + std::to_string(proxy->port()); }
    // Whether a connection that is new carries a request and its answer.
    bool is_served() {
        RawSocket socket(url());
        return socket.send(kRequest) && is_answered(socket);
    }
    static bool is_answered(RawSocket& socket) {
        return socket.read_until(kAnswerEnd).ends_with(kAnswerEnd);
    }

    std::atomic<int> requests = 0;
    std::unique_ptr<FaultProxy> proxy;

private:
    net::IoThread thread_{"server"};
    std::unique_ptr<net::Server> server_;
};

TEST_F(FaultProxyTest, ForwardsAndCounts) {
    EXPECT_TRUE(is_served());
    EXPECT_EQ(proxy->accepted_connections(), 1U);
    EXPECT_EQ(proxy->passed_bytes(Way::to_server), kRequest.size());
    EXPECT_GT(proxy->passed_bytes(Way::to_client), kAnswerEnd.size());
    EXPECT_TRUE(wait_until([&] { return proxy->open_connections() == 0; }));
}

TEST_F(FaultProxyTest, ForwardsLater) {
    proxy->delay(std::chrono::milliseconds(20));
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_TRUE(is_served());
    EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(40));
}

TEST_F(FaultProxyTest, CutsWhatIsOpen) {
    RawSocket socket(url());
    ASSERT_TRUE(socket.send(kRequest));
    ASSERT_TRUE(is_answered(socket));
    proxy->inflict(Fault::cut);
    EXPECT_TRUE(socket.drain());
    EXPECT_TRUE(is_served());
}

TEST_F(FaultProxyTest, HalfClosesWhatIsOpen) {
    RawSocket socket(url());
    EXPECT_TRUE(socket.send(kRequest));
    ASSERT_TRUE(is_answered(socket));
    proxy->inflict(Fault::half_close);
    EXPECT_TRUE(socket.drain());
    EXPECT_TRUE(socket.send(kRequest));
    EXPECT_TRUE(wait_until([&] { return requests == 2; }));
}

TEST_F(FaultProxyTest, CutsWhatComesUntilItHeals) {
    proxy->inflict_on_all(Fault::cut);
    EXPECT_FALSE(is_served());
    proxy->heal();
    EXPECT_TRUE(is_served());
}

TEST_F(FaultProxyTest, RefusesConnectionsOnThePortThatItKeeps) {
    EXPECT_TRUE(is_served());
    proxy->refuse(true);
    EXPECT_FALSE(RawSocket(url()).connected());
    proxy->refuse(false);
    EXPECT_TRUE(is_served());
}

TEST_F(FaultProxyTest, SwallowsRequests) {
    proxy->inflict_on_all(Fault::swallow_requests);
    RawSocket socket(url());
    EXPECT_TRUE(socket.send(kRequest));
    ASSERT_TRUE(wait_until([&] { return proxy->open_connections() == 1; }));
    proxy->heal();
    EXPECT_TRUE(is_served());
    EXPECT_EQ(requests, 1);
    EXPECT_TRUE(wait_until([&] { return proxy->open_connections() == 1; }));
}

TEST_F(FaultProxyTest, GarblesAnswers) {
    proxy->inflict_on_all(Fault::garble_answers);
    RawSocket socket(url());
    EXPECT_TRUE(socket.send(kRequest));
    const std::string zeros(kAnswerEnd.size(), '\0');
    EXPECT_TRUE(socket.read_until(zeros).ends_with(zeros));
    EXPECT_EQ(requests, 1);
}

TEST_F(FaultProxyTest, SwallowsAnswers) {
    proxy->inflict_on_all(Fault::swallow_answers);
    RawSocket socket(url());
    EXPECT_TRUE(socket.send(kRequest));
    EXPECT_TRUE(wait_until([&] { return requests == 1; }));
    EXPECT_EQ(proxy->passed_bytes(Way::to_client), 0U);
    EXPECT_EQ(proxy->open_connections(), 1U);
}

TEST_F(FaultProxyTest, LosesTheAnswerToWhatWasDone) {
    proxy->inflict_after(Way::to_server, "Host: localhost\r\n\r\n", Fault::lose_answer);
    EXPECT_FALSE(proxy->has_struck());
    EXPECT_FALSE(is_served());
    EXPECT_TRUE(proxy->has_struck());
    EXPECT_EQ(requests, 1);
    EXPECT_EQ(proxy->passed_bytes(Way::to_client), 0U);
    EXPECT_TRUE(is_served());
}

TEST_F(FaultProxyTest, FindsAPatternThatComesInPieces) {
    proxy->inflict_after(Way::to_server, "localhost\r\n\r\n", Fault::cut);
    RawSocket socket(url());
    ASSERT_TRUE(socket.send(kRequest.substr(0, 25)));
    ASSERT_TRUE(wait_until([&] { return proxy->passed_bytes(Way::to_server) == 25; }));
    EXPECT_FALSE(proxy->has_struck());
    socket.send(kRequest.substr(25));
    EXPECT_TRUE(socket.drain());
    EXPECT_TRUE(proxy->has_struck());
}

TEST_F(FaultProxyTest, HoldsARequestInItsMiddle) {
    proxy->inflict_after(Way::to_server, "Host: ", Fault::hold_requests);
    RawSocket socket(url());
    ASSERT_TRUE(socket.send(kRequest));
    ASSERT_TRUE(wait_until([&] { return proxy->has_struck(); }));
    EXPECT_TRUE(is_served()) << "others go on";
    EXPECT_EQ(requests, 1);
    proxy->release();
    EXPECT_TRUE(is_answered(socket));
    EXPECT_EQ(requests, 2);
}

TEST_F(FaultProxyTest, CutsAfterSoManyBytes) {
    proxy->inflict_after(Way::to_client, 10, Fault::cut);
    EXPECT_FALSE(is_served());
    EXPECT_TRUE(proxy->has_struck());
    EXPECT_EQ(proxy->passed_bytes(Way::to_client), 10U);
    EXPECT_TRUE(is_served());
}

TEST_F(FaultProxyTest, IsSeenAsResetWhereNoServerIs) {
    FaultProxy alone(1);
    RawSocket socket("http://127.0.0.1:" + std::to_string(alone.port()));
    EXPECT_TRUE(socket.drain());
}

}  // namespace
}  // namespace comfyd::support
