#include "net/client.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/test_server.hpp"
#include "net/tls_test_server.hpp"

namespace comfyd::net {
namespace {

using test::Loop;
using test::RawServer;
using test::TestServer;
using test::TlsServer;
using testing::HasSubstr;
using testing::StartsWith;

ClientRequest make_get(std::string url) {
    ClientRequest request;
    request.url = std::move(url);
    return request;
}
ClientRequest make_post(std::string url, std::string body) {
    ClientRequest request = make_get(std::move(url));
    request.method = "POST";
    request.body = std::move(body);
    return request;
}

class ClientTest : public testing::Test {
protected:
    Result<ClientResponse> send(ClientRequest request) {
        return loop_.run(client_.send(std::move(request)));
    }
    // Plays the server for one request on a new connection of `server`.
    std::pair<std::string, Result<ClientResponse>> play(
        ClientRequest request, std::string_view answer
    ) {
        auto sending = loop_.start(client_.send(std::move(request)));
        const auto peer = server_.accept();
        auto head = peer->read_until("\r\n\r\n");
        peer->send(answer);
        peer->close();
        return {std::move(head), test::get(sending)};
    }

    RawServer server_;
    Loop loop_;
    Client client_{loop_.executor(), {}};
};

TEST_F(ClientTest, TalksToTheServer) {
    TestServer server;
    const auto hello = send(make_get(server.url("/a?b=c")));
    ASSERT_TRUE(hello) << hello.error().message;
    EXPECT_EQ(hello->status, 200);
    EXPECT_EQ(hello->body, "GET /a b=c");
    EXPECT_EQ(hello->headers.get("content-type"), "text/plain");
    const std::string body(300'000, 'p');
    const auto echo = send(make_post(server.url("/echo"), body));
    ASSERT_TRUE(echo) << echo.error().message;
    EXPECT_EQ(echo->body, body);
    const auto stream = send(make_get(server.url("/stream")));
    ASSERT_TRUE(stream);
    EXPECT_EQ(stream->body, "one" + std::string(20, 'z'));
    auto head = make_get(server.url("/big"));
    head.method = "HEAD";
    const auto headed = send(head);
    ASSERT_TRUE(headed);
    EXPECT_EQ(headed->headers.get("Content-Length"), "100000");
    EXPECT_EQ(headed->body, "");
    const auto missing = send(make_get(server.url("/no-file")));
    ASSERT_TRUE(missing);
    EXPECT_EQ(missing->status, 404);
    EXPECT_EQ(server.counters().connections_total, 1U);
}

TEST_F(ClientTest, SendsAProperHead) {
    auto request = make_post(server_.url("/x?y"), "data");
    request.headers.set("X-Own", "1");
    request.headers.set("Host", "evil");
    const auto [head, result] = play(std::move(request), "HTTP/1.1 204 No Content\r\n\r\n");
    ASSERT_TRUE(result);
    EXPECT_THAT(
        head,
        StartsWith(
            "POST /x?y HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(server_.port()) + "\r\n"
        )
    );
    EXPECT_THAT(head, HasSubstr("Accept-Encoding: identity\r\n"));
    EXPECT_THAT(head, HasSubstr("User-Agent: comfyd/"));
    EXPECT_THAT(head, HasSubstr("X-Own: 1\r\n"));
    EXPECT_THAT(head, HasSubstr("Content-Length: 4\r\n"));
    EXPECT_THAT(head, testing::Not(HasSubstr("evil")));
}

TEST_F(ClientTest, ReadsEveryKindOfAnswer) {
    const auto get = make_get(server_.url("/"));
    EXPECT_EQ(play(get, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab").second->body, "ab");
    EXPECT_EQ(play(get, "HTTP/1.1 200 OK\r\n\r\nuntil the end").second->body, "until the end");
    EXPECT_EQ(
        play(
            get,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\nT: "
            "t\r\n\r\n"
        )
            .second->body,
        "abc"
    );
    const auto interim = play(
                             get,
                             "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 201 "
                             "Created\r\nContent-Length: 1\r\n\r\nz"
    )
                             .second;
    ASSERT_TRUE(interim);
    EXPECT_EQ(interim->status, 201);
    EXPECT_EQ(interim->body, "z");
    EXPECT_FALSE(interim->headers.contains("Link"));
}

TEST_F(ClientTest, ReportsBrokenAnswers) {
    const auto get = make_get(server_.url("/"));
    const auto expect = [&](std::string_view answer, Code code) {
        const auto result = play(get, answer).second;
        ASSERT_FALSE(result) << answer;
        EXPECT_EQ(result.error().code, code) << answer << ": " << result.error().message;
        EXPECT_THAT(
            result.error().message, StartsWith("127.0.0.1:" + std::to_string(server_.port()) + ": ")
        );
    };
    expect("SSH-2.0-OpenSSH_9.2\r\n\r\n", Code::protocol_error);
    expect("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", Code::protocol_error);
    expect("HTTP/1.1 101 Switching Protocols\r\n\r\n", Code::protocol_error);
    expect("HTTP/1.1 200 OK\r\nX: " + std::string(100'000, 'x'), Code::protocol_error);
    expect("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", Code::connection_failed);
    expect("HTTP/1.1 200 OK\r\nContent-", Code::connection_failed);
    expect("", Code::connection_failed);
}

TEST_F(ClientTest, RefusesAnswersThatAreTooLarge) {
    auto request = make_get(server_.url("/"));
    request.response_bytes_max = 3;
    for (const auto* answer :
         {"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n",
          "HTTP/1.1 200 OK\r\n\r\nabcd",
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n"}) {
        const auto result = play(request, answer).second;
        ASSERT_FALSE(result) << answer;
        EXPECT_EQ(result.error().code, Code::payload_too_large);
    }
    EXPECT_TRUE(play(request, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc").second);
}

TEST_F(ClientTest, DownloadsIntoASink) {
    TestServer server;
    std::string got;
    const auto take = [&](std::string_view piece) -> Result<> {
        got += piece;
        return {};
    };
    auto request = make_get(server.url("/file"));
    const auto whole = loop_.run(client_.download(request, take));
    ASSERT_TRUE(whole) << whole.error().message;
    EXPECT_EQ(whole->body, "");
    EXPECT_EQ(got, server.file_bytes);

    got.clear();
    const auto missing = loop_.run(client_.download(make_get(server.url("/no-file")), take));
    ASSERT_TRUE(missing);
    EXPECT_EQ(missing->status, 404);
    EXPECT_EQ(got, "");

    const auto full = [](std::string_view) -> Result<> {
        return fail(Code::storage_full, "no space");
    };
    const auto refused = loop_.run(client_.download(request, full));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::storage_full);
}

// Adds up what has been taken since the last time, and fails once that was enough.
Task<Result<>> absorb_until(std::string& taken, std::string& absorbed, std::size_t enough) {
    co_await sleep_for(Millis(0));
    absorbed += std::exchange(taken, {});
    if (absorbed.size() >= enough) {
        co_return fail(Code::storage_full, "no space");
    }
    co_return Result<>();
}

TEST_F(ClientTest, ADownloadWaitsForWhatItsReceiverDoesWithIt) {
    TestServer server;
    std::string taken;
    std::string absorbed;
    const auto take = [&](std::string_view piece) -> Result<> {
        taken += piece;
        return {};
    };
    const auto request = make_get(server.url("/file"));
    const auto whole = loop_.run(client_.download(request, take, [&] {
        return absorb_until(taken, absorbed, server.file_bytes.size() + 1);
    }));
    ASSERT_TRUE(whole) << whole.error().message;
    EXPECT_EQ(absorbed + taken, server.file_bytes);

    absorbed.clear();
    taken.clear();
    const auto refused =
        loop_.run(client_.download(request, take, [&] { return absorb_until(taken, absorbed, 1); })
        );
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::storage_full);
}

TEST_F(ClientTest, SaysWhyItCannotConnect) {
    const auto nobody = send(make_get("http://127.0.0.1:1/"));
    ASSERT_FALSE(nobody);
    EXPECT_EQ(nobody.error().code, Code::connection_failed);
    EXPECT_EQ(nobody.error().message, "127.0.0.1:1: connection refused");
    const auto unknown = send(make_get("http://no-such-host.invalid/"));
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().code, Code::connection_failed);
    EXPECT_THAT(
        unknown.error().message, StartsWith("no-such-host.invalid:80: the name cannot be resolved")
    );
}

TEST_F(ClientTest, RefusesBadRequestsOfItsCaller) {
    EXPECT_EQ(send(make_get("nonsense")).error().code, Code::invalid_argument);
    EXPECT_EQ(send(make_get("ws://127.0.0.1/")).error().code, Code::invalid_argument);
    auto request = make_get(server_.url("/"));
    request.headers.set("X", "a\r\nY: b");
    EXPECT_EQ(send(request).error().code, Code::invalid_argument);
    request = make_get(server_.url("/"));
    request.method = "GET /x HTTP/1.1\r\n";
    EXPECT_EQ(send(request).error().code, Code::invalid_argument);
}

TEST_F(ClientTest, AddressPolicyIsCheckedAfterResolving) {
    TestServer server;
    ClientOptions options;
    options.policy = AddressPolicy::public_only;
    Client guarded(loop_.executor(), options);
    for (const auto& url : {server.url("/"), std::string("http://[::ffff:127.0.0.1]:80/")}) {
        const auto refused = loop_.run(guarded.send(make_get(url)));
        ASSERT_FALSE(refused) << url;
        EXPECT_EQ(refused.error().code, Code::address_refused) << refused.error().message;
    }
    const auto socket = loop_.run(guarded.connect(server.url("/ws", "ws"), {}, Millis(1000)));
    ASSERT_FALSE(socket);
    EXPECT_EQ(socket.error().code, Code::address_refused);
    EXPECT_EQ(server.counters().connections_total, 0U);
}

TEST_F(ClientTest, PrivateNamesAreNotToldFromUnknownOnes) {
    TestServer server;
    ClientOptions options;
    options.policy = AddressPolicy::public_only;
    Client guarded(loop_.executor(), options);
    const std::string port = std::to_string(server.port());
    for (const char* host : {"localhost", "2130706433", "no-such-host.invalid"}) {
        const std::string origin = std::string(host) + ":" + port;
        const auto refused = loop_.run(guarded.send(make_get("http://" + origin + "/")));
        ASSERT_FALSE(refused) << host;
        EXPECT_EQ(refused.error().code, Code::connection_failed) << host;
        EXPECT_EQ(
            refused.error().message, origin + ": the name cannot be resolved to a public address"
        );
    }
    EXPECT_EQ(server.counters().connections_total, 0U);
}

TEST_F(ClientTest, TimesOut) {
    auto request = make_get(server_.url("/"));
    request.timeout = Millis(50);
    const auto late = send(request);
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code, Code::request_timeout);
    // Bytes that trickle in do not prolong it.
    auto sending = loop_.start(client_.send(request));
    static_cast<void>(server_.accept());  // the connection of the first request
    const auto peer = server_.accept();
    peer->send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc");
    const auto partial = test::get(sending);
    ASSERT_FALSE(partial);
    EXPECT_EQ(partial.error().code, Code::request_timeout);
}

TEST_F(ClientTest, IsCancelled) {
    auto sending = loop_.start(client_.send(make_get(server_.url("/"))));
    const auto peer = server_.accept();
    peer->read_until("\r\n\r\n");
    loop_.cancel();
    const auto result = test::get(sending);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::cancelled);
    const auto later = loop_.run(client_.send(make_get(server_.url("/"))));
    ASSERT_FALSE(later);
    EXPECT_EQ(later.error().code, Code::cancelled);
}

constexpr std::string_view kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

TEST_F(ClientTest, ReusesAConnection) {
    auto first = loop_.start(client_.send(make_get(server_.url("/1"))));
    const auto peer = server_.accept();
    peer->read_until("\r\n\r\n");
    peer->send(kOk);
    ASSERT_TRUE(test::get(first));
    auto second = loop_.start(client_.send(make_get(server_.url("/2"))));
    EXPECT_THAT(peer->read_until("\r\n\r\n"), StartsWith("GET /2 "));
    peer->send(kOk);
    ASSERT_TRUE(test::get(second));
}

TEST_F(ClientTest, DoesNotUseAConnectionThatThePeerClosed) {
    auto first = loop_.start(client_.send(make_get(server_.url("/1"))));
    auto peer = server_.accept();
    peer->read_until("\r\n\r\n");
    peer->send(kOk);
    ASSERT_TRUE(test::get(first));
    peer->close();
    auto second = loop_.start(client_.send(make_post(server_.url("/2"), "body")));
    peer = server_.accept();
    EXPECT_THAT(peer->read_until("\r\n\r\n"), StartsWith("POST /2 "));
    peer->read_bytes(4);
    peer->send(kOk);
    ASSERT_TRUE(test::get(second));
}

TEST_F(ClientTest, RepeatsASafeRequestThatGotNoAnswer) {
    auto first = loop_.start(client_.send(make_get(server_.url("/1"))));
    auto peer = server_.accept();
    peer->read_until("\r\n\r\n");
    peer->send(kOk);
    ASSERT_TRUE(test::get(first));
    auto second = loop_.start(client_.send(make_get(server_.url("/2"))));
    peer->read_until("\r\n\r\n");
    peer->close();
    peer = server_.accept();
    EXPECT_THAT(peer->read_until("\r\n\r\n"), StartsWith("GET /2 "));
    peer->send(kOk);
    ASSERT_TRUE(test::get(second));
}

TEST_F(ClientTest, NeverRepeatsAPostThatWasSent) {
    auto first = loop_.start(client_.send(make_get(server_.url("/1"))));
    const auto peer = server_.accept();
    peer->read_until("\r\n\r\n");
    peer->send(kOk);
    ASSERT_TRUE(test::get(first));
    auto second = loop_.start(client_.send(make_post(server_.url("/2"), "body")));
    peer->read_until("\r\n\r\n");
    peer->close();
    const auto result = test::get(second);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::connection_failed);
}

TEST_F(ClientTest, ClosesIdleConnections) {
    auto first = loop_.start(client_.send(make_get(server_.url("/1"))));
    const auto peer = server_.accept();
    peer->read_until("\r\n\r\n");
    peer->send(kOk);
    ASSERT_TRUE(test::get(first));
    std::promise<void> closed;
    auto done = closed.get_future();
    boost::asio::post(loop_.executor(), [&] {
        client_.close_idle();
        closed.set_value();
    });
    test::get(done);
    EXPECT_EQ(peer->read_all(), "");
}

TEST_F(ClientTest, UnderstandsAnAnswerThatComesBeforeTheBodyIsRead) {
    ServerLimits limits;
    limits.body_bytes_max = 1000;
    TestServer server(limits);
    const auto refused = send(make_post(server.url("/echo"), std::string(8 * 1024 * 1024, 'b')));
    ASSERT_TRUE(refused) << refused.error().message;
    EXPECT_EQ(refused->status, 413);
}

TEST_F(ClientTest, VerifiesTls) {
    TlsServer server;
    ClientOptions options;
    options.ca_file = server.path;
    {
        Client trusting(loop_.executor(), options);
        for (int i = 0; i < 2; ++i) {
            const auto answer = loop_.run(trusting.send(make_get(server.url("localhost"))));
            ASSERT_TRUE(answer) << answer.error().message;
            EXPECT_EQ(answer->body, "ok");
        }
    }
    {
        Client trusting(loop_.executor(), options);
        const auto wrong_name = loop_.run(trusting.send(make_get(server.url("127.0.0.1"))));
        ASSERT_FALSE(wrong_name);
        EXPECT_EQ(wrong_name.error().code, Code::connection_failed);
    }
    const auto unknown = send(make_get(server.url("localhost")));
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().code, Code::connection_failed);
    EXPECT_THAT(unknown.error().message, HasSubstr("certificate"));
    {
        Client lax(loop_.executor(), {});
        auto request = make_get(server.url("localhost"));
        request.verify_tls = false;
        const auto unverified = loop_.run(lax.send(request));
        ASSERT_TRUE(unverified) << unverified.error().message;
    }
    ClientOptions broken;
    broken.ca_file = "/nonexistent/ca.pem";
    Client misconfigured(loop_.executor(), broken);
    const auto failed = loop_.run(misconfigured.send(make_get(server.url("localhost"))));
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, Code::config_invalid);
}

TEST_F(ClientTest, ShowsACertificateToServersThatItIsKnownTo) {
    TlsServer server(
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", TlsServer::Clients::with_its_certificate
    );
    const auto ask = [&](std::vector<ClientIdentity> identities, const char* host) {
        Client client(loop_.executor(), {});
        const auto identified = client.identify(identities);
        EXPECT_TRUE(identified) << identified.error().message;
        return loop_.run(client.send(make_get(server.url(host))));
    };
    const std::string url = server.url("localhost");
    const auto answer = ask({{url, server.path, server.key_path, server.path}}, "localhost");
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->body, "ok");
    EXPECT_FALSE(ask({{url, "", "", server.path}}, "localhost")) << "without one";
    EXPECT_FALSE(ask({}, "localhost")) << "whose authority nobody knows";
    EXPECT_FALSE(ask({{url, server.path, server.key_path}}, "localhost")) << "likewise";
    // By its address; the name in its certificate is told.
    const std::string by_address = server.url("127.0.0.1");
    ClientIdentity named{by_address, server.path, server.key_path, server.path};
    EXPECT_FALSE(ask({named}, "127.0.0.1"));
    named.server_name = "localhost";
    EXPECT_TRUE(ask({named}, "127.0.0.1"));
    EXPECT_FALSE(ask({named}, "localhost")) << "an identity is for one server";
}

TEST_F(ClientTest, AnIdentityThatCannotBeUsedIsToldAtOnce) {
    TlsServer server;
    Client client(loop_.executor(), {});
    const std::string url = server.url("localhost");
    for (const ClientIdentity& bad :
         {ClientIdentity{url, "/nonexistent.pem", server.key_path},
          ClientIdentity{url, server.path, server.path},
          ClientIdentity{url, server.path, server.key_path, "/nonexistent.pem"}}) {
        const auto refused = client.identify({bad});
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code, Code::config_invalid);
    }
}

TEST_F(ClientTest, ReportsAServerWithoutTls) {
    auto sending = loop_.start(
        client_.send(make_get("https://127.0.0.1:" + std::to_string(server_.port()) + "/"))
    );
    const auto peer = server_.accept();
    peer->read_bytes(5);
    peer->send("HTTP/1.1 400 Bad Request\r\n\r\n");
    const auto result = test::get(sending);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::connection_failed);
}

}  // namespace
}  // namespace comfyd::net
