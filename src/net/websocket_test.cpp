#include "net/websocket.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/client.hpp"
#include "net/test_server.hpp"

namespace comfyd::net {
namespace {

using test::Loop;
using test::RawClient;
using test::TestServer;
using testing::HasSubstr;
using testing::StartsWith;

constexpr Millis kTimeout{10'000};

std::string handshake(std::string_view target) {
    return "GET " + std::string(target) +
           " HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"
           "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
           "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n";
}

class WebSocketTest : public testing::Test {
protected:
    std::unique_ptr<WebSocket> connect(WebSocketOptions options = {}) {
        auto socket =
            loop_.run(client_.connect(server_.url("/ws", "ws"), std::move(options), kTimeout));
        EXPECT_TRUE(socket) << socket.error().message;
        return std::move(*socket);
    }
    // A WebSocket belongs to its executor, its end included.
    void destroy(std::unique_ptr<WebSocket> socket) { loop_.run(destroy_here(std::move(socket))); }
    static Task<> destroy_here(std::unique_ptr<WebSocket> socket) {
        socket.reset();
        co_return;
    }
    static Task<> abort_here(WebSocket& socket) {
        socket.abort();
        co_return;
    }
    static Task<Result<WebSocketMessage>> exchange(
        WebSocket& socket, std::string data, bool binary
    ) {
        auto written = co_await socket.write(std::move(data), binary);
        if (!written) {
            co_return fail(std::move(written.error()));
        }
        auto answer = co_await socket.read();
        co_return answer;
    }

    TestServer server_;
    Loop loop_;
    Client client_{loop_.executor(), {}};
};

TEST_F(WebSocketTest, EchoesTextAndBinary) {
    auto socket = connect();
    const auto text = loop_.run(exchange(*socket, "hello", false));
    ASSERT_TRUE(text) << text.error().message;
    EXPECT_EQ(text->data, "hello");
    EXPECT_FALSE(text->binary);
    const std::string bytes("\0\1\2", 3);
    const auto binary = loop_.run(exchange(*socket, bytes, true));
    ASSERT_TRUE(binary);
    EXPECT_EQ(binary->data, bytes);
    EXPECT_TRUE(binary->binary);
    const auto empty = loop_.run(exchange(*socket, "", false));
    ASSERT_TRUE(empty);
    EXPECT_EQ(empty->data, "");
    destroy(std::move(socket));
}

TEST_F(WebSocketTest, TheClientCloses) {
    auto seen = server_.seen.get_future();
    auto socket = connect();
    loop_.run(socket->close(1000, std::string(500, 'r')));
    EXPECT_EQ(test::get(seen), "connection_failed");
    const auto after = loop_.run(socket->read());
    ASSERT_FALSE(after);
    EXPECT_EQ(after.error().code, Code::cancelled);
    destroy(std::move(socket));
}

TEST_F(WebSocketTest, TheServerCloses) {
    auto seen = server_.seen.get_future();
    auto socket = connect();
    const auto answer = loop_.run(exchange(*socket, "bye", false));
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, Code::connection_failed);
    EXPECT_THAT(answer.error().message, HasSubstr("1000"));
    EXPECT_EQ(test::get(seen), "closed");
    destroy(std::move(socket));
}

TEST_F(WebSocketTest, TheServerDropsTheConnection) {
    auto seen = server_.seen.get_future();
    auto socket = connect();
    const auto answer = loop_.run(exchange(*socket, "drop", false));
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, Code::connection_failed);
    EXPECT_EQ(test::get(seen), "cancelled");
    destroy(std::move(socket));
}

TEST_F(WebSocketTest, AbortEndsAWaitingRead) {
    auto socket = connect();
    auto reading = loop_.start(socket->read());
    loop_.run(abort_here(*socket));
    const auto result = test::get(reading);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::cancelled);
    destroy(std::move(socket));
}

TEST_F(WebSocketTest, CloseEndsAWaitingRead) {
    auto socket = connect();
    auto reading = loop_.start(socket->read());
    loop_.run(socket->close(1000, ""));
    const auto result = test::get(reading);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::cancelled);
    destroy(std::move(socket));
}

TEST_F(WebSocketTest, CancellingTheTaskEndsAWaitingRead) {
    Loop loop;
    Client client(loop.executor(), {});
    auto socket = loop.run(client.connect(server_.url("/ws", "ws"), {}, kTimeout));
    ASSERT_TRUE(socket);
    auto reading = loop.start((*socket)->read());
    loop.cancel();
    const auto result = test::get(reading);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::cancelled);
    loop.run(destroy_here(std::move(*socket)));
}

TEST_F(WebSocketTest, DestroyingTellsThePeer) {
    auto seen = server_.seen.get_future();
    destroy(connect());
    EXPECT_EQ(test::get(seen), "connection_failed");
}

TEST_F(WebSocketTest, MessagesAboveTheLimitClose) {
    auto seen = server_.seen.get_future();
    auto socket = connect();
    const auto answer = loop_.run(exchange(*socket, std::string(2000, 'x'), false));
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, Code::connection_failed);
    EXPECT_THAT(answer.error().message, HasSubstr("1009"));
    EXPECT_EQ(test::get(seen), "payload_too_large");
    destroy(std::move(socket));
}

TEST_F(WebSocketTest, StopClosesWithGoingAway) {
    auto socket = connect();
    auto reading = loop_.start(socket->read());
    server_.stop(std::chrono::hours(1));
    const auto result = test::get(reading);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::connection_failed);
    EXPECT_THAT(result.error().message, HasSubstr("1001"));
    destroy(std::move(socket));
}

TEST_F(WebSocketTest, AnswersPingsAndShowsItsHeaders) {
    RawClient client(server_.port());
    client.send(handshake("/ws"));
    const auto head = client.read_until("\r\n\r\n");
    EXPECT_THAT(head, StartsWith("HTTP/1.1 101 "));
    EXPECT_THAT(head, HasSubstr("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    EXPECT_THAT(head, HasSubstr("X-Extra: yes"));
    EXPECT_THAT(head, testing::Not(HasSubstr("permessage-deflate")));
    client.send(std::string("\x89\x82\0\0\0\0hi", 8));
    EXPECT_EQ(client.read_bytes(4), "\x8A\x02hi");
}

TEST_F(WebSocketTest, AnIdlePeerIsPingedThenDropped) {
    auto seen = server_.seen.get_future();
    RawClient client(server_.port());
    client.send(handshake("/ws?idle"));
    client.read_until("\r\n\r\n");
    EXPECT_EQ(client.read_bytes(2), std::string("\x89\0", 2));
    EXPECT_EQ(test::get(seen), "connection_failed");
    client.read_all();
}

TEST_F(WebSocketTest, ADeclinedHandshakeSaysHow) {
    test::RawServer raw;
    Loop loop;
    Client client(loop.executor(), {});
    auto connecting = loop.start(
        client.connect("ws://127.0.0.1:" + std::to_string(raw.port()) + "/", {}, kTimeout)
    );
    const auto peer = raw.accept();
    const auto head = peer->read_until("\r\n\r\n");
    peer->send("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
    const auto declined = test::get(connecting);
    ASSERT_FALSE(declined);
    EXPECT_EQ(declined.error().code, Code::protocol_error);
    EXPECT_THAT(declined.error().message, HasSubstr("403"));
    EXPECT_THAT(head, HasSubstr("Upgrade: websocket"));
}

TEST_F(WebSocketTest, RefusesFramesBeforeTheHandshakeIsAnswered) {
    RawClient client(server_.port());
    client.send(handshake("/ws") + std::string("\x89\x82\0\0\0\0hi", 8));
    EXPECT_THAT(client.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 502 "));
}

TEST_F(WebSocketTest, ReportsBrokenFrames) {
    auto seen = server_.seen.get_future();
    RawClient client(server_.port());
    client.send(handshake("/ws"));
    client.read_until("\r\n\r\n");
    client.send(std::string("\xF1\x82\0\0\0\0hi", 8));
    EXPECT_EQ(client.read_bytes(4), "\x88\x02\x03\xEA");
    // And it does not depend on us to close.
    EXPECT_EQ(test::get(seen), "connection_failed");
}

TEST_F(WebSocketTest, PlainRequestsAreToldToUpgrade) {
    RawClient client(server_.port());
    client.send("GET /ws HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_THAT(client.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 426 "));
}

TEST_F(WebSocketTest, ConnectFailsWithAReason) {
    const auto nobody = loop_.run(client_.connect("ws://127.0.0.1:1/", {}, kTimeout));
    ASSERT_FALSE(nobody);
    EXPECT_EQ(nobody.error().code, Code::connection_failed);
    EXPECT_THAT(nobody.error().message, HasSubstr("127.0.0.1:1: connection refused"));
    const auto no_websocket = loop_.run(client_.connect(server_.url("/hello", "ws"), {}, kTimeout));
    ASSERT_FALSE(no_websocket);
    EXPECT_EQ(no_websocket.error().code, Code::protocol_error);
    const auto wrong_scheme = loop_.run(client_.connect(server_.url("/ws"), {}, kTimeout));
    ASSERT_FALSE(wrong_scheme);
    EXPECT_EQ(wrong_scheme.error().code, Code::invalid_argument);
    test::RawServer mute;
    const auto late = loop_.run(
        client_.connect("ws://127.0.0.1:" + std::to_string(mute.port()) + "/", {}, Millis(50))
    );
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code, Code::request_timeout);
}

}  // namespace
}  // namespace comfyd::net
