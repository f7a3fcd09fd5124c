#include "net/dialer.hpp"

#include <array>

#include "net/test_support.hpp"
#include "net/tls_test_server.hpp"

namespace comfyd::net {
namespace {

using test::Loop;
using test::RawServer;
using test::TlsServer;

constexpr Millis kLong{20'000};

// Says `words` and hears what comes until there is no more, or until the deadline.
Task<Result<std::string>> talk(
    Dialer& dialer, std::string host, std::uint16_t port, std::string words, Millis patience
) {
    auto connection = co_await dialer.open(std::move(host), port, Deadline::in(kLong));
    if (!connection) {
        co_return fail(std::move(connection.error()));
    }
    auto written = co_await (*connection)->write(std::move(words), Deadline::in(kLong));
    if (!written) {
        co_return fail(std::move(written.error()));
    }
    std::string heard;
    std::array<char, 3> piece;
    while (heard.find("end") == std::string::npos) {
        const auto count = co_await (*connection)->read_some(piece, Deadline::in(patience));
        if (!count) {
            co_return fail(count.error());
        }
        heard.append(piece.data(), *count);
    }
    co_return heard;
}

Task<Code> close_while_reading(Dialer& dialer, std::uint16_t port, Executor executor) {
    auto connection = co_await dialer.open("127.0.0.1", port, Deadline::in(kLong));
    boost::asio::post(executor, [&] { (*connection)->close(); });
    std::array<char, 3> piece;
    const auto count = co_await (*connection)->read_some(piece, Deadline::in(kLong));
    co_return count ? Code::internal : count.error().code;
}

TEST(Dialer, CarriesBytesBothWays) {
    Loop loop;
    Dialer dialer(loop.executor(), {});
    RawServer server;
    auto heard =
        loop.start(talk(dialer, "localhost", server.port(), std::string(100'000, 'x'), kLong));
    const auto peer = server.accept();
    EXPECT_EQ(peer->read_bytes(100'000), std::string(100'000, 'x'));
    peer->send("begin and end");
    EXPECT_EQ(test::get(heard).value(), "begin and end");
    EXPECT_EQ(peer->read_all(), "");  // closed when its owner let go of it
}

TEST(Dialer, SpeaksTlsToWhomItTrusts) {
    Loop loop;
    const TlsServer server("the end");
    const auto port = static_cast<std::uint16_t>(std::stoi(server.url("").substr(9)));
    Dialer trusting(loop.executor(), {.tls = true, .ca_file = server.path});
    EXPECT_EQ(loop.run(talk(trusting, "localhost", port, "\r\n\r\n", kLong)).value(), "the end");
    Dialer careful(loop.executor(), {.tls = true});
    const auto refused = loop.run(talk(careful, "localhost", port, "\r\n\r\n", kLong));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::connection_failed);
}

TEST(Dialer, WaitsNoLongerThanItMay) {
    Loop loop;
    Dialer dialer(loop.executor(), {});
    RawServer server;
    auto heard = loop.start(talk(dialer, "127.0.0.1", server.port(), "hello", Millis(20)));
    const auto peer = server.accept();
    const auto late = test::get(heard);
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code, Code::request_timeout);
    EXPECT_EQ(peer->read_all(), "hello");  // and it is closed
}

TEST(Dialer, IsToldThatThePeerHasGone) {
    Loop loop;
    Dialer dialer(loop.executor(), {});
    std::uint16_t port = 0;
    {
        RawServer server;
        port = server.port();
        auto heard = loop.start(talk(dialer, "127.0.0.1", port, "hello", kLong));
        const auto peer = server.accept();
        peer->read_bytes(5);
        peer->close();
        EXPECT_EQ(test::get(heard).error().code, Code::connection_failed);
    }
    const auto refused = loop.run(talk(dialer, "127.0.0.1", port, "hello", kLong));
    EXPECT_EQ(refused.error().code, Code::connection_failed);
}

TEST(Dialer, MayCloseAtAnyTime) {
    Loop loop;
    Dialer dialer(loop.executor(), {});
    RawServer server;
    EXPECT_EQ(
        loop.run(close_while_reading(dialer, server.port(), loop.executor())), Code::cancelled
    );
}

}  // namespace
}  // namespace comfyd::net
