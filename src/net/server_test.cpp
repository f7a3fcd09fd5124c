#include "net/server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "net/test_server.hpp"

namespace comfyd::net {
namespace {

using test::RawClient;
using test::TestServer;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr std::string_view kHost = "Host: x\r\n";

std::string get(std::string_view target, std::string_view more = "") {
    return "GET " + std::string(target) + " HTTP/1.1\r\n" + std::string(kHost) + std::string(more) +
           "\r\n";
}
std::string post(std::string_view target, std::string_view body, std::string_view more = "") {
    return "POST " + std::string(target) + " HTTP/1.1\r\n" + std::string(kHost) +
           std::string(more) + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
           std::string(body);
}
// Head and body of an answer with Content-Length.
std::string read_answer(RawClient& client) {
    std::string answer = client.read_until("\r\n\r\n");
    const auto at = answer.find("Content-Length: ");
    if (at != std::string::npos) {
        answer += client.read_bytes(static_cast<std::size_t>(std::stoul(answer.substr(at + 16))));
    }
    return answer;
}

TEST(Server, AnswersAndKeepsTheConnection) {
    TestServer server;
    RawClient client(server.port());
    client.send(get("/a%20b?x=1"));
    const auto answer = read_answer(client);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\nDate: "));
    EXPECT_THAT(answer, EndsWith("\r\n\r\nGET /a%20b x=1"));
    EXPECT_THAT(answer, Not(HasSubstr("Connection")));
    client.send("DELETE /x HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_THAT(read_answer(client), EndsWith("DELETE /x "));
    client.send(get("/last", "Connection: close\r\n"));
    EXPECT_THAT(client.read_all(), HasSubstr("Connection: close\r\n"));
    EXPECT_EQ(server.counters().connections_total, 1U);
}

TEST(Server, AnswersPipelinedRequestsInOrder) {
    TestServer server;
    RawClient client(server.port());
    std::string requests = "\r\n";
    for (int i = 0; i < 300; ++i) {
        requests +=
            i % 3 == 0 ? post("/echo", "body" + std::to_string(i)) : get("/n" + std::to_string(i));
    }
    client.send(requests);
    for (int i = 0; i < 300; ++i) {
        const std::string expected =
            i % 3 == 0 ? "\r\n\r\nbody" + std::to_string(i) : "GET /n" + std::to_string(i) + " ";
        ASSERT_THAT(read_answer(client), EndsWith(expected));
    }
}

TEST(Server, UnderstandsAbsoluteTargets) {
    TestServer server;
    RawClient client(server.port());
    client.send(get("http://x:80/a?b=c") + get("http://X") + get("/go?to=http://other/y"));
    EXPECT_THAT(read_answer(client), EndsWith("\r\n\r\nGET /a b=c"));
    EXPECT_THAT(read_answer(client), EndsWith("\r\n\r\nGET / "));
    EXPECT_THAT(read_answer(client), EndsWith("\r\n\r\nGET /go to=http://other/y"));
}

TEST(Server, UnderstandsARequestByteByByte) {
    TestServer server;
    RawClient client(server.port());
    for (const char c : post("/echo", "abc")) {
        client.send(std::string_view(&c, 1));
    }
    EXPECT_THAT(read_answer(client), EndsWith("\r\n\r\nabc"));
}

TEST(Server, Http10ClosesUnlessAskedNotTo) {
    TestServer server;
    RawClient closing(server.port());
    closing.send("GET /old HTTP/1.0\r\n\r\n");
    EXPECT_THAT(closing.read_all(), StartsWith("HTTP/1.0 200 OK"));
    RawClient keeping(server.port());
    keeping.send("GET /old HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    EXPECT_THAT(read_answer(keeping), HasSubstr("Connection: keep-alive\r\n"));
    keeping.send("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    const auto streamed = keeping.read_all();
    EXPECT_THAT(streamed, Not(HasSubstr("chunked")));
    EXPECT_THAT(streamed, EndsWith("\r\n\r\none" + std::string(20, 'z')));
}

TEST(Server, HeadHasNoBody) {
    TestServer server;
    RawClient client(server.port());
    client.send(
        "HEAD /hello HTTP/1.1\r\nHost: x\r\n\r\n"
        "HEAD /file HTTP/1.1\r\nHost: x\r\n\r\n"
        "HEAD /stream HTTP/1.1\r\nHost: x\r\n\r\n"
    );
    EXPECT_THAT(client.read_until("\r\n\r\n"), HasSubstr("Content-Length: 12\r\n"));
    EXPECT_THAT(
        client.read_until("\r\n\r\n"),
        HasSubstr("Content-Length: " + std::to_string(server.file_bytes.size()))
    );
    EXPECT_THAT(client.read_until("\r\n\r\n"), HasSubstr("Transfer-Encoding: chunked"));
    client.send(get("/next"));
    EXPECT_THAT(read_answer(client), EndsWith("GET /next "));
}

TEST(Server, AStreamMayHaveAKnownLength) {
    TestServer server;
    RawClient client(server.port());
    client.send(get("/sized?6") + "HEAD /sized?6 HTTP/1.1\r\nHost: x\r\n\r\n" + get("/next"));
    const auto whole = read_answer(client);
    EXPECT_THAT(whole, HasSubstr("Content-Length: 6\r\n"));
    EXPECT_THAT(whole, Not(HasSubstr("chunked")));
    EXPECT_THAT(whole, EndsWith("\r\n\r\nonetwo"));
    EXPECT_THAT(client.read_until("\r\n\r\n"), HasSubstr("Content-Length: 6\r\n"));
    EXPECT_THAT(read_answer(client), EndsWith("GET /next "));
    RawClient old(server.port());
    old.send("GET /sized?6 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    EXPECT_THAT(read_answer(old), EndsWith("\r\n\r\nonetwo"));
    // One that ends early, or would go on, is cut off: the client sees that something is wrong.
    for (const char* length : {"7", "5"}) {
        RawClient cut(server.port());
        cut.send(get(std::string("/sized?") + length) + get("/next"));
        EXPECT_THAT(cut.read_all(), Not(HasSubstr("/next")));
    }
}

TEST(Server, ReadsChunkedBodies) {
    TestServer server;
    RawClient client(server.port());
    const std::string chunked =
        "POST /pieces HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    client.send(
        chunked + "5;ext=1\r\nhello\r\nA\r\n 123456789\r\n0\r\nTrailer: t\r\n\r\n" + get("/next")
    );
    EXPECT_THAT(read_answer(client), EndsWith("\r\n\r\nhello 123456789"));
    EXPECT_THAT(read_answer(client), EndsWith("GET /next "));
    client.send("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n186A0\r\n");
    client.send(std::string(100'000, 'c') + "\r\n0\r\n\r\n");
    EXPECT_THAT(read_answer(client), EndsWith("\r\n\r\n" + std::string(100'000, 'c')));
}

TEST(Server, ReadsLargeBodies) {
    TestServer server;
    RawClient client(server.port());
    const std::string body(1024 * 1024, 'b');
    client.send(post("/echo", body));
    EXPECT_THAT(read_answer(client), EndsWith(body));
    const std::string uneven = body.substr(0, 70'001);
    client.send(post("/pieces", uneven));
    EXPECT_THAT(read_answer(client), EndsWith("\r\n\r\n" + uneven));
}

TEST(Server, RefusesBodiesThatAreTooLarge) {
    ServerLimits limits;
    limits.body_bytes_max = 1000;
    TestServer server(limits);
    RawClient sized(server.port());
    sized.send(post("/echo", std::string(1001, 'b')));
    const auto answer = sized.read_all();
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 413 "));
    EXPECT_THAT(answer, EndsWith("payload_too_large"));
    RawClient chunked(server.port());
    chunked.send(
        "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n7D0\r\n" +
        std::string(2000, 'c') + "\r\n"
    );
    EXPECT_THAT(chunked.read_all(), StartsWith("HTTP/1.1 413 "));
}

TEST(Server, SendsContinueWhenTheBodyIsWanted) {
    TestServer server;
    RawClient client(server.port());
    client.send(
        "POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"
    );
    EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    client.send("abc");
    EXPECT_THAT(read_answer(client), EndsWith("\r\n\r\nabc"));
    // Refused without reading: nobody knows whether the body will come, so the connection ends.
    client.send(
        "POST /ignore HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"
    );
    const auto answer = read_answer(client);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK"));
    EXPECT_THAT(answer, HasSubstr("Connection: close"));
    RawClient odd(server.port());
    odd.send(get("/", "Expect: miracles\r\n"));
    EXPECT_THAT(read_answer(odd), StartsWith("HTTP/1.1 417 "));
}

TEST(Server, DiscardsShortBodiesThatNobodyRead) {
    TestServer server;
    RawClient client(server.port());
    client.send(post("/ignore", std::string(200'000, 'i')) + get("/next"));
    EXPECT_THAT(read_answer(client), EndsWith("ignored"));
    EXPECT_THAT(read_answer(client), EndsWith("GET /next "));
    client.send("POST /ignore HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n");
    EXPECT_THAT(client.read_all(), HasSubstr("Connection: close\r\n"));
}

struct Bad {
    std::string_view name;
    std::string request;
    int status;
};

TEST(Server, RefusesWhatIsAmbiguousOrMalformed) {
    const std::string te = "Transfer-Encoding: chunked\r\n";
    const std::vector<Bad> cases{
        {"both lengths", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n" + te + "\r\nabc", 400
        },
        {"both lengths, other order",
         "POST / HTTP/1.1\r\nHost: x\r\n" + te + "Content-Length: 3\r\n\r\nabc",
         400},
        {"two lengths",
         "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
         400},
        {"negative length", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -3\r\n\r\nabc", 400},
        {"length with plus", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +3\r\n\r\nabc", 400},
        {"unknown coding", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", 400},
        {"coding list",
         "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
         400},
        {"chunked twice", "POST / HTTP/1.1\r\nHost: x\r\n" + te + te + "\r\n0\r\n\r\n", 400},
        {"chunked 1.0", "POST / HTTP/1.0\r\nHost: x\r\n" + te + "\r\n0\r\n\r\n", 400},
        {"bad chunk", "POST /echo HTTP/1.1\r\nHost: x\r\n" + te + "\r\nxyz\r\nabc\r\n0\r\n\r\n", 400
        },
        {"chunk overrun",
         "POST /echo HTTP/1.1\r\nHost: x\r\n" + te + "\r\n2\r\nabcd\r\n0\r\n\r\n",
         400},
        {"no host", "GET / HTTP/1.1\r\n\r\n", 400},
        {"two hosts", "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400},
        {"absolute target with another host", get("http://other.example/a"), 400},
        {"carriage return alone", get("/", "X: a\rb\r\n"), 400},
        {"carriage return ends a line", "GET / HTTP/1.1\r\nHost: x\rX: y\r\n\r\n", 400},
        {"line feed ends a line", "GET / HTTP/1.1\r\nHost: x\nX: y\r\n\r\n", 400},
        {"zero byte", get("/", std::string_view("X: a\0b\r\n", 8)), 400},
        {"zero byte in a name", get("/", std::string_view("X\0: b\r\n", 7)), 400},
        {"length in a list", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3, 3\r\n\r\nabc", 400},
        {"length in hex", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0x3\r\n\r\nabc", 400},
        {"space before colon of the length",
         "POST / HTTP/1.1\r\nHost: x\r\nContent-Length : 3\r\n\r\nabc",
         400},
        {"endless chunk extension",
         "POST /echo HTTP/1.1\r\nHost: x\r\n" + te + "\r\n2;" + std::string(70'000, 'e') +
             "\r\nab\r\n0\r\n\r\n",
         400},
        {"endless trailers",
         "POST /echo HTTP/1.1\r\nHost: x\r\n" + te + "\r\n0\r\nT: " + std::string(70'000, 't') +
             "\r\n\r\n",
         400},
        {"space before colon", "GET / HTTP/1.1\r\nHost : x\r\n\r\n", 400},
        {"line feed only", "GET / HTTP/1.1\nHost: x\n\n\r\n\r\n", 400},
        {"garbage", "\x16\x03\x01 hello\r\n\r\n", 400},
        {"no version", "GET /\r\nHost: x\r\n\r\n", 400},
        {"version 2", "GET / HTTP/2.0\r\nHost: x\r\n\r\n", 505},
        {"long target", "GET /" + std::string(9000, 'a') + " HTTP/1.1\r\nHost: x\r\n\r\n", 414},
        {"endless target", "GET /" + std::string(40'000, 'a'), 414},
        {"large headers", get("/", "X: " + std::string(40'000, 'a') + "\r\n"), 431},
    };
    TestServer server;
    for (const auto& [name, request, status] : cases) {
        RawClient client(server.port());
        client.send(request);
        const auto answer = client.read_all();
        EXPECT_THAT(answer, StartsWith("HTTP/1.1 " + std::to_string(status))) << name;
        if (answer.find("application/json") != std::string::npos) {
            EXPECT_THAT(answer, HasSubstr("{\"error\":{\"code\":\"")) << name;
        }
        EXPECT_THAT(answer, HasSubstr("Connection: close")) << name;
    }
}

TEST(Server, LimitsHeadersThatArriveInPieces) {
    TestServer server;
    RawClient client(server.port());
    client.send("GET / HTTP/1.1\r\nHost: x\r\n");
    for (int i = 0; i < 100; ++i) {
        if (!client.send("X-" + std::to_string(i) + ": " + std::string(1000, 'v') + "\r\n")) {
            break;
        }
    }
    EXPECT_THAT(client.read_all(), StartsWith("HTTP/1.1 431 "));
    RawClient many(server.port());
    std::string fields;
    for (int i = 0; i < 200; ++i) {
        fields += "X: y\r\n";
    }
    many.send(get("/", fields));
    EXPECT_THAT(many.read_all(), StartsWith("HTTP/1.1 431 "));
}

TEST(Server, EndsSlowAndIdleConnections) {
    ServerLimits limits;
    limits.header_timeout = std::chrono::seconds(0);
    limits.body_timeout = std::chrono::seconds(0);
    TestServer server(limits);
    RawClient slow_head(server.port());
    slow_head.send("GET / HTT");
    RawClient slow_body(server.port());
    slow_body.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab");
    EXPECT_THAT(slow_head.read_all(), StartsWith("HTTP/1.1 408 "));
    EXPECT_THAT(slow_body.read_all(), StartsWith("HTTP/1.1 408 "));

    ServerLimits impatient;
    impatient.idle_timeout = std::chrono::seconds(0);
    TestServer other(impatient);
    RawClient idle(other.port());
    EXPECT_EQ(idle.read_all(), "");
}

TEST(Server, RefusesFoldedHeaders) {
    TestServer server;
    for (const char* fold :
         {"X: a\r\n b\r\n", "X: a\r\n\tb\r\n", "X: a\r\n \r\n", "X:\r\n a\r\n"}) {
        RawClient client(server.port());
        client.send(get("/", fold));
        EXPECT_THAT(client.read_all(), StartsWith("HTTP/1.1 400 ")) << fold;
        RawClient slow(server.port());
        for (const char byte : get("/", fold)) {
            slow.send(std::string(1, byte));
        }
        EXPECT_THAT(slow.read_all(), StartsWith("HTTP/1.1 400 ")) << fold;
    }
    RawClient client(server.port());
    client.send(post("/echo", "a\r\n b\r\n\tc"));
    EXPECT_THAT(read_answer(client), EndsWith("a\r\n b\r\n\tc"));
}

TEST(Server, EndsBodiesThatStall) {
    ServerLimits limits;
    limits.stall_timeout = std::chrono::seconds(0);
    TestServer server(limits);
    for (const char* framing :
         {"Content-Length: 5\r\n\r\nab", "Transfer-Encoding: chunked\r\n\r\n1\r\na"}) {
        RawClient client(server.port());
        client.send("POST /echo HTTP/1.1\r\nHost: x\r\n" + std::string(framing));
        EXPECT_THAT(client.read_all(), StartsWith("HTTP/1.1 408 ")) << framing;
    }
}

TEST(Server, BodiesOfAllRequestsHaveOneBound) {
    ServerLimits limits;
    limits.bodies_bytes_max = 300'000;
    TestServer server(limits);
    const std::string body(200'000, 'b');
    const std::string request = post("/echo", body);
    RawClient first(server.port());
    RawClient second(server.port());
    const auto wait_until_held = [&server](std::uint64_t bytes) {
        while (server.counters().bodies_bytes != bytes) {
            std::this_thread::yield();
        }
    };
    first.send(request.substr(0, request.size() - 1));
    wait_until_held(200'000);
    second.send(request);
    EXPECT_THAT(second.read_all(), StartsWith("HTTP/1.1 429 "));
    first.send("b");
    EXPECT_THAT(read_answer(first), EndsWith(body));
    wait_until_held(0);
    RawClient third(server.port());
    third.send(request);
    EXPECT_THAT(read_answer(third), EndsWith(body));
}

TEST(Server, EndsAClientThatDoesNotRead) {
    ServerLimits limits;
    limits.write_timeout = std::chrono::seconds(0);
    TestServer server(limits);
    RawClient client(server.port());
    client.send(get("/flood"));
    auto left = server.left.get_future();
    EXPECT_TRUE(test::get(left));
}

TEST(Server, RefusesConnectionsAboveTheLimit) {
    ServerLimits limits;
    limits.connections_max = 1;
    TestServer server(limits);
    RawClient first(server.port());
    first.send(get("/"));
    EXPECT_THAT(read_answer(first), StartsWith("HTTP/1.1 200"));
    RawClient second(server.port());
    EXPECT_THAT(second.read_all(), StartsWith("HTTP/1.1 503 "));
    EXPECT_EQ(server.counters().connections_refused, 1U);
    EXPECT_EQ(server.counters().connections_open, 1U);
}

TEST(Server, StrangersOfOneAddressAreLimitedAndTrustedOnesAreNot) {
    ServerLimits limits;
    limits.strangers_per_address_max = 2;
    TestServer server(limits);
    std::vector<std::unique_ptr<RawClient>> trusted;
    for (int i = 0; i < 5; ++i) {
        trusted.push_back(std::make_unique<RawClient>(server.port()));
        trusted.back()->send(get("/trusted"));
        EXPECT_THAT(read_answer(*trusted.back()), StartsWith("HTTP/1.1 200"));
    }
    std::vector<std::unique_ptr<RawClient>> strangers;
    for (int i = 0; i < 2; ++i) {
        strangers.push_back(std::make_unique<RawClient>(server.port()));
        strangers.back()->send(get("/"));
        EXPECT_THAT(read_answer(*strangers.back()), StartsWith("HTTP/1.1 200"));
    }
    RawClient refused(server.port());
    EXPECT_THAT(refused.read_all(), StartsWith("HTTP/1.1 503 "));
    // Those that are in go on, and a place is free again when one has shown who it is.
    strangers.front()->send(get("/trusted"));
    EXPECT_THAT(read_answer(*strangers.front()), StartsWith("HTTP/1.1 200"));
    RawClient next(server.port());
    next.send(get("/"));
    EXPECT_THAT(read_answer(next), StartsWith("HTTP/1.1 200"));
}

TEST(Server, HandlerFailuresAreAnswers) {
    TestServer server;
    RawClient throwing(server.port());
    throwing.send(get("/throw"));
    const auto answer = throwing.read_all();
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 500 "));
    EXPECT_THAT(answer, Not(HasSubstr("deliberate")));
    RawClient silent(server.port());
    silent.send(get("/silent"));
    EXPECT_THAT(silent.read_all(), StartsWith("HTTP/1.1 500 "));
}

TEST(Server, HandlersCannotBreakTheHead) {
    TestServer server;
    RawClient client(server.port());
    client.send(get("/inject"));
    const auto answer = read_answer(client);
    EXPECT_THAT(answer, HasSubstr("X-Name: a  X-Evil: 1\r\n"));
    EXPECT_THAT(answer, HasSubstr("Content-Length: 0\r\n"));
    EXPECT_THAT(answer, Not(HasSubstr("Content-Length: 5")));
}

TEST(Server, CompressesWhatIsWorthIt) {
    TestServer server;
    RawClient client(server.port());
    client.send(get("/big", "Accept-Encoding: br, gzip\r\n"));
    const auto packed = read_answer(client);
    EXPECT_THAT(packed, HasSubstr("Content-Encoding: gzip\r\n"));
    EXPECT_THAT(packed, HasSubstr("Vary: Accept-Encoding\r\n"));
    EXPECT_LT(packed.size(), 2000U);
    client.send(get("/big", "Accept-Encoding: gzip;q=0\r\n"));
    const auto plain = read_answer(client);
    EXPECT_THAT(plain, Not(HasSubstr("Content-Encoding")));
    EXPECT_THAT(plain, HasSubstr("Vary: Accept-Encoding\r\n"));
    EXPECT_GT(plain.size(), 100'000U);
    client.send(get("/big?png", "Accept-Encoding: gzip\r\n"));
    EXPECT_THAT(read_answer(client), Not(HasSubstr("Content-Encoding")));
    client.send(get("/small", "Accept-Encoding: gzip\r\n"));
    EXPECT_THAT(read_answer(client), EndsWith("GET /small "));
}

TEST(Server, SendsFilesAndPartsOfThem) {
    TestServer server;
    RawClient client(server.port());
    client.send(get("/file"));
    EXPECT_THAT(read_answer(client), EndsWith("\r\n\r\n" + server.file_bytes));
    client.send(get("/file", "Range: bytes=1000000-1000009\r\n"));
    const auto part = read_answer(client);
    EXPECT_THAT(part, StartsWith("HTTP/1.1 206 "));
    EXPECT_THAT(part, EndsWith("\r\n\r\n" + server.file_bytes.substr(1'000'000, 10)));
    client.send(get("/file", "Range: bytes=9999999-\r\n"));
    EXPECT_THAT(read_answer(client), StartsWith("HTTP/1.1 416 "));
    client.send(get("/no-file"));
    EXPECT_THAT(read_answer(client), StartsWith("HTTP/1.1 404 "));
    client.send(get("/twice") + get("/next"));
    EXPECT_THAT(read_answer(client), EndsWith("first"));
    EXPECT_THAT(read_answer(client), EndsWith("GET /next "));
}

TEST(Server, StreamsInChunksAndGoesOn) {
    TestServer server;
    RawClient client(server.port());
    client.send(get("/stream") + get("/next"));
    EXPECT_THAT(client.read_until("\r\n\r\n"), HasSubstr("Transfer-Encoding: chunked\r\n"));
    EXPECT_EQ(
        client.read_until("0\r\n\r\n"),
        "3\r\none\r\n14\r\n" + std::string(20, 'z') + "\r\n0\r\n\r\n"
    );
    EXPECT_THAT(read_answer(client), EndsWith("GET /next "));
}

TEST(Server, NoticesThatAStreamsClientIsGone) {
    TestServer server;
    auto entered = server.entered.get_future();
    auto left = server.left.get_future();
    RawClient client(server.port());
    client.send(get("/watch"));
    test::get(entered);
    client.read_until("ready");
    client.close();
    EXPECT_TRUE(test::get(left));
}

TEST(Server, KeepsRequestsThatArriveWhileItWatches) {
    TestServer server;
    RawClient client(server.port());
    client.send(get("/hold"));
    client.read_until("ready");
    client.send(get("/pipelined") + post("/echo", "abc"));
    server.finish = true;
    EXPECT_THAT(client.read_until("0\r\n\r\n"), EndsWith("0\r\n\r\n"));
    EXPECT_THAT(read_answer(client), EndsWith("GET /pipelined "));
    EXPECT_THAT(read_answer(client), EndsWith("\r\n\r\nabc"));
}

TEST(Server, StopLetsRequestsFinish) {
    TestServer server;
    auto entered = server.entered.get_future();
    RawClient idle(server.port());
    idle.send(get("/"));
    read_answer(idle);
    RawClient busy(server.port());
    busy.send(get("/drain"));
    test::get(entered);
    server.stop(std::chrono::hours(1));
    const auto answer = busy.read_all();
    EXPECT_THAT(answer, EndsWith("drained"));
    EXPECT_THAT(answer, HasSubstr("Connection: close"));
    EXPECT_EQ(idle.read_all(), "");
    EXPECT_EQ(server.counters().connections_open, 0U);
}

TEST(Server, StopCancelsWhatDoesNotFinish) {
    TestServer server;
    auto entered = server.entered.get_future();
    auto left = server.left.get_future();
    RawClient busy(server.port());
    busy.send(get("/wait"));
    test::get(entered);
    server.stop(Millis(1));
    EXPECT_FALSE(test::get(left));
    EXPECT_EQ(busy.read_all(), "");
}

TEST(Server, ListenSaysWhyItCannot) {
    TestServer first;
    IoThreads threads(2);
    Server second(threads.contexts(), {}, [](Exchange&) -> Task<> { co_return; });
    const auto taken = second.listen({"127.0.0.1", first.port()});
    ASSERT_FALSE(taken);
    EXPECT_EQ(taken.error().code, Code::conflict);
    const auto foreign = second.listen({"192.0.2.1", 0});
    ASSERT_FALSE(foreign);
    EXPECT_EQ(foreign.error().code, Code::invalid_argument);
    const auto unknown = second.listen({"no-such-host.invalid", 0});
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().code, Code::invalid_argument);
}

TEST(Server, ListensOnNames) {
    IoThreads threads(1);
    Server server(threads.contexts(), {}, [](Exchange&) -> Task<> { co_return; });
    threads.start();
    const auto endpoint = server.listen({"localhost", 0});
    ASSERT_TRUE(endpoint) << endpoint.error().message;
    EXPECT_NE(endpoint->port, 0);
    server.stop(Millis(0));
}

TEST(IoThreads, SurviveAHandlerThatThrows) {
    IoThread thread("test");
    thread.start();
    std::promise<void> ran;
    auto done = ran.get_future();
    boost::asio::post(thread.context(), [] { throw std::runtime_error("deliberate"); });
    boost::asio::post(thread.context(), [&] { ran.set_value(); });
    test::get(done);
}

}  // namespace
}  // namespace comfyd::net
