#include "net/proxy_line.hpp"

#include <gmock/gmock.h>

#include "net/test_server.hpp"

namespace comfyd::net {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const std::string kSignature("\r\n\r\n\0\r\nQUIT\n", 12);
const std::string kBinary4 =
    kSignature +
    std::string("\x21\x11\x00\x0c\xc0\x00\x02\x07\x0a\x00\x00\x01\x12\x34\x01\xbb", 16);
const std::string kBinary6 = kSignature + std::string("\x21\x21\x00\x24", 4) +
                             std::string("\x20\x01\x48\x60\0\0\0\0\0\0\0\0\0\0\0\x07", 16) +
                             std::string(20, '\0');

std::string client_of(const std::string& text) {
    const auto parsed = parse_proxy_line(text);
    if (!parsed || !*parsed) {
        return parsed ? "more" : "none";
    }
    return (*parsed)->client ? (*parsed)->client->to_string() : "itself";
}

TEST(ProxyLine, SaysWhomTheProxySpeaksFor) {
    EXPECT_EQ(client_of("PROXY TCP4 192.0.2.7 10.0.0.1 4660 443\r\nGET"), "192.0.2.7");
    EXPECT_EQ(client_of("PROXY TCP6 2001:4860::7 ::1 4660 443\r\n"), "2001:4860::7");
    EXPECT_EQ(client_of("PROXY UNKNOWN\r\n"), "itself");
    EXPECT_EQ(client_of("PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n"), "itself");
    EXPECT_EQ(client_of(kBinary4 + "GET"), "192.0.2.7");
    EXPECT_EQ(client_of(kBinary6), "2001:4860::7");
    EXPECT_EQ(client_of(kSignature + std::string("\x20\x00\x00\x00", 4)), "itself");
    EXPECT_EQ(client_of(kSignature + std::string("\x21\x00\x00\x03xyz", 7)), "itself");
    EXPECT_EQ((*parse_proxy_line("PROXY TCP4 192.0.2.7 10.0.0.1 1 2\r\nGET"))->bytes, 35U);
    EXPECT_EQ((*parse_proxy_line(kBinary4 + "GET"))->bytes, 28U);
}

TEST(ProxyLine, WaitsForAllOfIt) {
    for (const std::string& whole :
         {std::string("PROXY TCP4 192.0.2.7 10.0.0.1 4660 443\r\n"), kBinary4, kBinary6}) {
        for (std::size_t size = 0; size < whole.size(); ++size) {
            EXPECT_EQ(client_of(whole.substr(0, size)), "more") << size;
        }
    }
}

TEST(ProxyLine, WhatIsNoneIsRefused) {
    for (const std::string& bad :
         {std::string("GET / HTTP/1.1\r\n"),
          std::string("proxy TCP4 192.0.2.7 10.0.0.1 1 2\r\n"),
          std::string("PROXY TCP4 2001:4860::7 ::1 1 2\r\n"),
          std::string("PROXY TCP4 192.0.2.7 10.0.0.1 1\r\n"),
          std::string("PROXY TCP4 nonsense 10.0.0.1 1 2\r\n"),
          std::string("PROXY UDP4 192.0.2.7 10.0.0.1 1 2\r\n"),
          "PROXY TCP4 " + std::string(107, '1'),
          std::string("\x16\x03\x01", 3),
          kSignature + std::string("\x11\x11\x00\x0c", 4) + std::string(12, '\1'),
          kSignature + std::string("\x22\x11\x00\x0c", 4) + std::string(12, '\1'),
          kSignature + std::string("\x21\x11\x00\x04", 4) + std::string(4, '\1'),
          kSignature + std::string("\x21\x31\x00\x0c", 4) + std::string(12, '\1'),
          kSignature + std::string("\x21\x11\xff\xff", 4)}) {
        EXPECT_EQ(client_of(bad), "none") << bad;
    }
}

// Tells whom it takes its client for.
class ProxiedServer {
public:
    explicit ProxiedServer(std::vector<std::string> trusted, ServerLimits limits = {})
        : threads_(1),
          server_(
              threads_.contexts(),
              limits,
              [](Exchange& exchange) { return tell(exchange); },
              TrustedProxies::parse(trusted).value()
          ) {
        threads_.start();
        server_.demand_proxy_line();
        port = server_.listen({"127.0.0.1", 0}).value().port;
    }
    ~ProxiedServer() { server_.stop(Millis(0)); }

    std::uint16_t port = 0;

private:
    static Task<> tell(Exchange& exchange) {
        Response response;
        response.body = exchange.request().peer;
        auto sent = co_await exchange.send(std::move(response));
        static_cast<void>(sent);
    }

    IoThreads threads_;
    Server server_;
};

const std::string kRequest =
    "GET / HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 203.0.113.9\r\nConnection: close\r\n\r\n";

std::string ask(const ProxiedServer& server, const std::vector<std::string>& pieces) {
    test::RawClient client(server.port);
    for (const std::string& piece : pieces) {
        client.send(piece);
    }
    return client.read_all();
}

TEST(ProxyLine, AServerThatDemandsItBelievesItsProxies) {
    const ProxiedServer server({"127.0.0.0/8"});
    const std::string line = "PROXY TCP4 192.0.2.7 10.0.0.1 4660 443\r\n";
    EXPECT_THAT(ask(server, {line + kRequest}), testing::EndsWith("\r\n\r\n192.0.2.7"));
    EXPECT_THAT(ask(server, {kBinary4 + kRequest}), testing::EndsWith("\r\n\r\n192.0.2.7"));
    EXPECT_THAT(ask(server, {kBinary6, kRequest}), testing::EndsWith("\r\n\r\n2001:4860::7"));
    std::vector<std::string> bytes;
    for (const char byte : line + kRequest) {
        bytes.emplace_back(1, byte);
    }
    EXPECT_THAT(ask(server, bytes), testing::EndsWith("\r\n\r\n192.0.2.7"));
    // For itself it speaks as a proxy does, and then by the header that proxies have.
    EXPECT_THAT(ask(server, {"PROXY UNKNOWN\r\n" + kRequest}), testing::EndsWith("203.0.113.9"));
}

TEST(ProxyLine, WithoutItNobodyIsServed) {
    const ProxiedServer server({"127.0.0.0/8"});
    EXPECT_EQ(ask(server, {kRequest}), "");
    EXPECT_EQ(ask(server, {"PROXY TCP4 x y\r\n" + kRequest}), "");
    const ProxiedServer others({"192.0.2.1"});
    EXPECT_EQ(ask(others, {"PROXY TCP4 192.0.2.7 10.0.0.1 1 2\r\n" + kRequest}), "")
        << "it is no proxy of ours";
}

TEST(ProxyLine, WhoeverBeginsAndDoesNotGoOnIsLetGo) {
    ServerLimits limits;
    limits.header_timeout = std::chrono::seconds(0);
    const ProxiedServer server({"127.0.0.0/8"}, limits);
    EXPECT_EQ(ask(server, {"PROXY TCP4 192"}), "");
}

}  // namespace
}  // namespace comfyd::net
