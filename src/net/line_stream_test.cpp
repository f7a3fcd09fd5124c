#include "net/line_stream.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>

#include "net/test_support.hpp"
#include "net/tls_test_server.hpp"

namespace comfyd::net {
namespace {

using Peer = boost::asio::ip::tcp::socket;

// Talks to one client as a test says.
class Host {
public:
    explicit Host(std::function<void(Peer&)> talk)
        : acceptor_(context_, {boost::asio::ip::make_address("127.0.0.1"), 0}),
          thread_([this, talk = std::move(talk)] {
              Peer peer(context_);
              acceptor_.accept(peer);
              talk(peer);
          }) {}
    ~Host() { thread_.join(); }
    std::uint16_t port() const { return acceptor_.local_endpoint().port(); }

private:
    boost::asio::io_context context_;
    boost::asio::ip::tcp::acceptor acceptor_;
    std::thread thread_;
};

void say(Peer& peer, std::string_view text) {
    boost::system::error_code ignored;
    boost::asio::write(peer, boost::asio::buffer(text), ignored);
}

std::string hear_line(Peer& peer) {
    std::string line;
    boost::system::error_code ignored;
    boost::asio::read_until(peer, boost::asio::dynamic_buffer(line), "\n", ignored);
    return line;
}

Deadline soon() {
    return Deadline::in(test::kPatience);
}

// Until the stream ends; the last word is why.
Task<std::vector<std::string>> all_lines(
    LineClient& client, std::uint16_t port, std::string first, Deadline deadline
) {
    std::vector<std::string> lines;
    auto opened = co_await client.connect("127.0.0.1", port, false, deadline);
    if (!opened) {
        lines.push_back(std::string(to_string(opened.error().code)));
        co_return lines;
    }
    auto written = co_await (*opened)->write(first, deadline);
    static_cast<void>(written);
    for (;;) {
        auto line = co_await (*opened)->read_line(deadline);
        if (!line) {
            lines.push_back(std::string(to_string(line.error().code)));
            co_return lines;
        }
        lines.push_back(std::move(*line));
    }
}

class LineStreamTest : public testing::Test {
protected:
    std::vector<std::string> lines(
        const Host& host, const std::string& first = "hello\r\n", Deadline deadline = soon()
    ) {
        return loop_.run(all_lines(client_, host.port(), first, deadline));
    }

    test::Loop loop_;
    LineClient client_{loop_.executor(), {.line_bytes_max = 100}};
};

using Lines = std::vector<std::string>;

TEST_F(LineStreamTest, LinesComeWholeHoweverTheyWereSent) {
    std::string heard;
    const auto talk = [&heard](Peer& peer) {
        heard = hear_line(peer);
        say(peer, "one\r\ntw");
        say(peer, "o\nthree\r");
        say(peer, "\n\r\n");
        say(peer, std::string(99, 'x') + "\r\n");
    };
    Lines said;
    {
        const Host host(talk);
        said = lines(host);
    }
    EXPECT_EQ(heard, "hello\r\n");
    EXPECT_EQ(said, (Lines{"one", "two", "three", "", std::string(99, 'x'), "connection_failed"}));
}

TEST_F(LineStreamTest, ALineWithoutEndIsNotReadForEver) {
    const Host host([](Peer& peer) {
        const std::string block(8192, 'x');
        boost::system::error_code error;
        while (!error) {
            boost::asio::write(peer, boost::asio::buffer(block), error);
        }
    });
    EXPECT_EQ(lines(host), Lines{"protocol_error"});
}

TEST_F(LineStreamTest, ASilentServerIsNotWaitedForLongerThanAllowed) {
    std::promise<void> done;
    const Host host([&done](Peer&) { done.get_future().wait(); });
    EXPECT_EQ(lines(host, "x\r\n", Deadline::in(Millis(50))), Lines{"request_timeout"});
    done.set_value();
}

TEST_F(LineStreamTest, WhereOnlyPublicAddressesAreAllowedPrivateOnesAreNotCalled) {
    LineClient guarded(loop_.executor(), {.policy = AddressPolicy::public_only});
    const auto opened = loop_.run(guarded.connect("127.0.0.1", 9, false, soon()));
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, Code::address_refused);
}

Task<Result<>> begin_tls(LineClient& client, std::uint16_t port, std::string host) {
    auto opened = co_await client.connect(host, port, false, soon());
    if (!opened) {
        co_return fail(std::move(opened.error()));
    }
    auto begun = co_await (*opened)->start_tls(soon());
    co_return begun;
}

TEST_F(LineStreamTest, TlsThatBeginsLaterIsVerified) {
    const test::TlsServer server;
    const std::string url = server.url("localhost");
    const auto port = Url::parse(url)->port;
    LineClient trusting(loop_.executor(), {.ca_file = server.path});
    EXPECT_TRUE(loop_.run(begin_tls(trusting, port, "localhost")));
    EXPECT_FALSE(loop_.run(begin_tls(trusting, port, "127.0.0.1"))) << "it is not its name";
    EXPECT_FALSE(loop_.run(begin_tls(client_, port, "localhost"))) << "nobody vouches for it";
}

}  // namespace
}  // namespace comfyd::net
