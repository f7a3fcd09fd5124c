// Connections carried in WebSockets, requests that go through in pieces, sockets handed to a
// server.
#include "net/line.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/client.hpp"
#include "net/lines.hpp"
#include "net/test_server.hpp"

namespace comfyd::net {
namespace {

using test::Loop;
using test::TestServer;
using testing::HasSubstr;

TEST(LineName, OnlyOfWorkers) {
    EXPECT_EQ(line_name("worker://gpu-1.home"), "gpu-1.home");
    for (const char* wrong :
         {"",
          "worker://",
          "worker:gpu",
          "http://gpu",
          "worker://a/b",
          "worker://a b",
          "worker://a:1"}) {
        EXPECT_FALSE(line_name(wrong)) << wrong;
    }
    EXPECT_FALSE(line_name("worker://" + std::string(129, 'a')));
}

// The far side of all lines is a server of this process, as an agent's is.
class HandedOver final : public Lines {
public:
    explicit HandedOver(Server& server) : server_(server) {}
    Task<Result<Descriptor>> open(std::string name, Deadline) override {
        if (name != "gpu") {
            co_return fail(Code::connection_failed, "worker://" + name + ": has not called");
        }
        auto ends = connected_sockets();
        server_.take(std::move(ends->second));
        co_return std::move(ends->first);
    }

private:
    Server& server_;
};

Task<> answer(Exchange& exchange) {
    auto body = co_await exchange.read_body(1 << 24);
    Response response;
    response.headers.set("X-Peer", exchange.request().peer);
    response.body = exchange.request().method_name + " " + exchange.request().target + " " +
                    (body ? *body : body.error().message);
    auto sent = co_await exchange.send(std::move(response));
    static_cast<void>(sent);
}

class LinesTest : public testing::Test {
protected:
    LinesTest() {
        thread_.start();
        EXPECT_TRUE(server_.listen({"127.0.0.1", 0}));
        ClientOptions options;
        options.lines = std::make_shared<HandedOver>(server_);
        client_ = std::make_unique<Client>(loop_.executor(), options);
    }
    ~LinesTest() override { server_.stop(Millis(0)); }

    Result<ClientResponse> ask(std::string socket, std::string body = {}) {
        ClientRequest request;
        request.method = "POST";
        request.url = "http://localhost/hello?x=1";
        request.socket = std::move(socket);
        request.body = std::move(body);
        return loop_.run(client_->send(std::move(request)));
    }

    IoThread thread_{"server"};
    Server server_{{&thread_.context()}, {}, answer};
    Loop loop_;
    std::unique_ptr<Client> client_;
};

TEST_F(LinesTest, AClientReachesWhoeverHasCalled) {
    for (int i = 0; i < 3; ++i) {
        const auto reply = ask("worker://gpu", "body " + std::to_string(i));
        ASSERT_TRUE(reply) << reply.error().message;
        EXPECT_EQ(reply->body, "POST /hello?x=1 body " + std::to_string(i));
        EXPECT_EQ(reply->headers.get("X-Peer"), "127.0.0.1");
    }
    // Kept and used again, like any other.
    EXPECT_EQ(server_.counters().connections_total, 1U);
}

TEST_F(LinesTest, OthersAreNotThere) {
    const auto reply = ask("worker://other");
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, Code::connection_failed);
    // Nobody else is connected to in its place, and without lines there are none.
    Client without(loop_.executor(), {});
    ClientRequest request;
    request.url = "http://localhost/";
    request.socket = "worker://gpu";
    const auto refused = loop_.run(without.send(std::move(request)));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::connection_failed);
}

TEST_F(LinesTest, StrangersUrlsReachNoWorker) {
    ClientOptions options;
    options.policy = AddressPolicy::public_only;
    options.lines = std::make_shared<HandedOver>(server_);
    Client guarded(loop_.executor(), options);
    ClientRequest request;
    request.url = "http://localhost/";
    request.socket = "worker://gpu";
    EXPECT_FALSE(loop_.run(guarded.send(std::move(request))));
    ClientRequest named;
    named.url = "worker://gpu/";
    EXPECT_FALSE(loop_.run(guarded.send(std::move(named))));
    EXPECT_EQ(server_.counters().connections_total, 0U);
}

struct Passed {
    int status = 0;
    std::string body;
    std::string type;
};

Task<Result<Passed>> pass(
    Client& client, ClientRequest request, std::vector<std::string> pieces, bool is_chunked
) {
    std::uint64_t bytes = 0;
    for (const auto& piece : pieces) {
        bytes += piece.size();
    }
    auto passage =
        co_await client.pass(std::move(request), is_chunked ? std::nullopt : std::optional(bytes));
    if (!passage) {
        co_return fail(std::move(passage.error()));
    }
    for (auto& piece : pieces) {
        auto written = co_await (*passage)->write(std::move(piece));
        if (!written) {
            break;
        }
    }
    auto ended = co_await (*passage)->end_body();
    static_cast<void>(ended);
    auto head = co_await (*passage)->head();
    if (!head) {
        co_return fail(std::move(head.error()));
    }
    Passed passed{head->status, "", std::string(head->headers.get("Content-Type"))};
    bool more = true;
    while (more) {
        auto piece = co_await (*passage)->read();
        if (!piece) {
            co_return fail(std::move(piece.error()));
        }
        more = !piece->empty();
        passed.body += *piece;
    }
    co_return passed;
}

TEST_F(LinesTest, ARequestGoesThroughInPieces) {
    const std::vector<std::string> pieces{"one ", std::string(300'000, 'x'), " three"};
    const std::string whole = pieces[0] + pieces[1] + pieces[2];
    for (const bool is_chunked : {false, true}) {
        ClientRequest request;
        request.method = "POST";
        request.url = "http://localhost/p";
        request.socket = "worker://gpu";
        const auto passed = loop_.run(pass(*client_, std::move(request), pieces, is_chunked));
        ASSERT_TRUE(passed) << passed.error().message;
        EXPECT_EQ(passed->status, 200);
        EXPECT_EQ(passed->body, "POST /p " + whole);
    }
}

TEST_F(LinesTest, AnswersWithoutABodyEnd) {
    ClientRequest request;
    request.method = "HEAD";
    request.url = "http://localhost/p";
    request.socket = "worker://gpu";
    const auto passed = loop_.run(pass(*client_, std::move(request), {}, false));
    ASSERT_TRUE(passed) << passed.error().message;
    EXPECT_EQ(passed->status, 200);
    EXPECT_EQ(passed->body, "");
}

TEST(Passage, NobodyThere) {
    Loop loop;
    Client client(loop.executor(), {});
    ClientRequest request;
    request.url = "http://127.0.0.1:1/";
    const auto passed = loop.run(pass(client, std::move(request), {}, false));
    ASSERT_FALSE(passed);
    EXPECT_EQ(passed.error().code, Code::connection_failed);
}

TEST(Passage, LargeAnswersComeInPiecesAndErrorsWithTheirBody) {
    TestServer server;
    Loop loop;
    Client client(loop.executor(), {});
    ClientRequest request;
    request.url = server.url("/file");
    const auto file = loop.run(pass(client, std::move(request), {}, false));
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(file->body, server.file_bytes);
    ClientRequest other;
    other.url = server.url("/throw");
    const auto failed = loop.run(pass(client, std::move(other), {}, false));
    ASSERT_TRUE(failed) << failed.error().message;
    EXPECT_EQ(failed->status, 500);
    EXPECT_THAT(failed->body, HasSubstr("error"));
}

}  // namespace
}  // namespace comfyd::net
