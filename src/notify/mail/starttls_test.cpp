// A server that has said more than it was asked before TLS began: whoever stands in between could
// have put that there.
#include <gtest/gtest.h>

#include <thread>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>

#include "net/test_support.hpp"
#include "notify/mail/smtp_client.hpp"
#include "support/certificate.hpp"
#include "support/temp_dir.hpp"

namespace comfyd::notify::mail {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

template <class Stream>
std::string hear(Stream& stream) {
    std::string line;
    boost::system::error_code ignored;
    asio::read_until(stream, asio::dynamic_buffer(line), "\n", ignored);
    return line;
}

template <class Stream>
void say(Stream& stream, std::string_view text) {
    boost::system::error_code ignored;
    asio::write(stream, asio::buffer(text), ignored);
}

// Takes one mail, if the client comes so far. `with_go` is what it says, in one piece, when TLS is
// to begin.
class Server {
public:
    Server(const support::Certificate& certificate, std::string with_go)
        : acceptor_(context_, {asio::ip::make_address("127.0.0.1"), 0}) {
        tls_.use_certificate_chain_file(certificate.certificate);
        tls_.use_private_key_file(certificate.key, asio::ssl::context::pem);
        thread_ = std::thread([this, with_go = std::move(with_go)] { serve(with_go); });
    }
    ~Server() { end(); }
    void end() {
        if (thread_.joinable()) {
            thread_.join();
        }
    }
    std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
    const std::vector<std::string>& heard() {
        end();
        return heard_;
    }

private:
    void serve(const std::string& with_go) {
        asio::ssl::stream<tcp::socket> stream(context_, tls_);
        tcp::socket& plain = stream.next_layer();
        acceptor_.accept(plain);
        say(plain, "220 hello\r\n");
        heard_.push_back(hear(plain));
        say(plain, "250-mail.test\r\n250 STARTTLS\r\n");
        heard_.push_back(hear(plain));
        say(plain, with_go);
        boost::system::error_code error;
        stream.handshake(asio::ssl::stream_base::server, error);
        if (error) {
            return;
        }
        for (const char* answer :
             {"250-mail.test\r\n250 AUTH PLAIN\r\n",
              "235 welcome\r\n",
              "250 ok\r\n",
              "250 ok\r\n",
              "354 go\r\n",
              "250 taken\r\n"}) {
            heard_.push_back(hear(stream));
            say(stream, answer);
        }
    }

    asio::io_context context_;
    asio::ssl::context tls_{asio::ssl::context::tls_server};
    tcp::acceptor acceptor_;
    std::vector<std::string> heard_;
    std::thread thread_;
};

Verdict send_by(const Server& server, const std::string& ca_file) {
    net::test::Loop loop;
    SystemClock clock;
    SmtpOptions options;
    options.server.host = "localhost";
    options.server.port = server.port();
    options.user = "u";
    options.password = "p";
    options.ca_file = ca_file;
    SmtpClient client(loop.executor(), clock, options);
    return loop.run(client.send({"a@example.com", "b@example.com", "one line\r\n"}));
}

TEST(StartTls, WhatWasSaidBeforeItDoesNotCount) {
    const support::TempDir folder;
    const auto certificate = support::make_certificate(folder);
    for (const std::string smuggled :
         {"", "250-mail.test\r\n250 AUTH PLAIN LOGIN XOAUTH2\r\n", "535 go away\r\n", "250"}) {
        const Server server(certificate, "220 go\r\n" + smuggled);
        const Verdict verdict = send_by(server, certificate.certificate);
        EXPECT_EQ(verdict.kind, Verdict::Kind::accepted) << smuggled << verdict.reason;
    }
}

TEST(StartTls, TheServerIsAskedAgainUnderTls) {
    const support::TempDir folder;
    const auto certificate = support::make_certificate(folder);
    Server server(certificate, "220 go\r\n250-x\r\n250 AUTH LOGIN\r\n");
    EXPECT_EQ(send_by(server, certificate.certificate).kind, Verdict::Kind::accepted);
    const auto& heard = server.heard();
    ASSERT_GE(heard.size(), 4U);
    EXPECT_EQ(heard[1], "STARTTLS\r\n");
    EXPECT_EQ(heard[2], heard[0]);
    EXPECT_TRUE(heard[3].starts_with("AUTH PLAIN ")) << "as it says under TLS, not before";
}

}  // namespace
}  // namespace comfyd::notify::mail
