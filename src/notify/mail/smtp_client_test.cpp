// The client against a real server: Debian's aiosmtpd, in a process of its own.
#include "notify/mail/smtp_client.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include <boost/asio/ip/tcp.hpp>

#include "base/crypto.hpp"
#include "net/test_support.hpp"
#include "notify/mail/mime.hpp"
#include "notify/test_support.hpp"
#include "support/mail_server.hpp"

namespace comfyd::notify::mail {
namespace {

using support::MailServer;
using support::ReceivedMail;
using Kind = Verdict::Kind;

Mail some_mail() {
    Mail mail;
    mail.from = "comfyd@example.com";
    mail.from_name = "comfyd";
    mail.to = "ops@example.com";
    mail.subject = "Job failed: portraits";
    mail.date = from_unix_ms(1'794'966'074'000);
    mail.id = "comfyd.1";
    mail.text = "Hello\n";
    mail.html = "<p>Hello</p>\n";
    return mail;
}

Task<> close(SmtpClient& client) {
    client.close();
    co_return;
}

class SmtpClientTest : public testing::Test {
protected:
    ~SmtpClientTest() override {
        if (client_) {
            loop_.run(close(*client_));
        }
    }
    void open(const MailServer& server, Security security = Security::none) {
        options_.server.host = "localhost";
        options_.server.port = server.port();
        options_.server.security = security;
        options_.ca_file = server.ca_file();
        client_.emplace(loop_.executor(), clock_, options_);
    }
    Verdict send(const Mail& mail) {
        return loop_.run(client_->send({mail.from, mail.to, write_mail(mail)}));
    }
    Verdict send() { return send(some_mail()); }
    std::future<Verdict> begin(const Mail& mail) {
        return loop_.start(client_->send({mail.from, mail.to, write_mail(mail)}));
    }

    SystemClock clock_;
    net::test::Loop loop_;
    SmtpOptions options_;
    std::optional<SmtpClient> client_;
};

TEST_F(SmtpClientTest, AMailArrivesAsItWasMeant) {
    MailServer server;
    open(server);
    Mail mail = some_mail();
    mail.from_name = "comfyd – Nachrichten";
    mail.subject =
        "Fertig: Bücher für 😀, eine lange Zeile, die gefaltet werden muss, weil sie lang ist";
    mail.text =
        "Zeile mit Umlaut ä\n.Punkt am Anfang\n..\n.\nEnde " + std::string(2000, 'x') + "\n";
    mail.html = "<p>ä &amp; " + std::string(500, 'y') + "</p>\n";
    mail.jpeg = "\xFF\xD8\xFF" + std::string(5000, '\x01');
    mail.unsubscribe = "https://example.com/unsubscribe?u=1";
    const Verdict verdict = send(mail);
    ASSERT_EQ(verdict.kind, Kind::accepted) << verdict.reason;
    const auto received = server.wait_for(1);
    ASSERT_EQ(received.size(), 1U);
    const ReceivedMail& got = received[0];
    EXPECT_TRUE(got.is_well_formed()) << json::serialize(got.all);
    EXPECT_EQ(got.text("from"), mail.from);
    EXPECT_EQ(got.to(), mail.to);
    EXPECT_EQ(got.header("Subject"), mail.subject);
    EXPECT_THAT(got.header("From"), testing::HasSubstr("comfyd@example.com"));
    EXPECT_THAT(got.header("From"), testing::HasSubstr("Nachrichten"));
    EXPECT_EQ(got.header("To"), "ops@example.com");
    EXPECT_EQ(got.header("Message-ID"), "<comfyd.1@example.com>");
    EXPECT_EQ(got.header("Date"), "Wed, 18 Nov 2026 01:41:14 +0000");
    EXPECT_EQ(got.header("Auto-Submitted"), "auto-generated");
    EXPECT_EQ(got.header("MIME-Version"), "1.0");
    EXPECT_EQ(got.header("List-Unsubscribe"), "<" + mail.unsubscribe + ">");
    EXPECT_EQ(got.header("List-Unsubscribe-Post"), "List-Unsubscribe=One-Click");
    EXPECT_EQ(
        json::serialize(got.all.at("shape")),
        R"(["multipart/related","multipart/alternative","text/plain","text/html","image/jpeg"])"
    );
    EXPECT_EQ(got.text("text"), mail.text);
    EXPECT_EQ(got.text("html"), mail.html);
    EXPECT_EQ(got.text("picture"), to_base64(mail.jpeg));
    EXPECT_EQ(got.text("picture_id"), "<" + std::string(kPictureId) + ">");
}

TEST_F(SmtpClientTest, HostileTextsChangeNothingButThemselves) {
    MailServer server;
    open(server);
    std::mt19937 random(11);
    const std::vector<std::string> pieces{
        "a",
        " ",
        "\r\n",
        "\n",
        "\r",
        "\r\n.\r\n",
        "\r\nBcc: x@y.z\r\n\r\nbody",
        "=?UTF-8?Q?x?=",
        "ä",
        "😀",
        "--=_text_",
        ".",
        "\t",
        "\xff",
        std::string("\0", 1),
        std::string(1200, 'w'),
        "Content-Type: text/evil",
        "QUIT\r\n",
        "\"<>,;:@"
    };
    constexpr int kMails = 60;
    for (int i = 0; i < kMails; ++i) {
        const auto text = [&] {
            std::string made;
            for (std::size_t n = random() % 12; n > 0; --n) {
                made += pieces[random() % pieces.size()];
            }
            return made;
        };
        Mail mail = some_mail();
        mail.id = "comfyd." + std::to_string(i);
        mail.subject = text();
        mail.from_name = text();
        mail.text = text();
        mail.html = "<p>" + escape_html(text()) + "</p>";
        mail.jpeg = i % 2 == 0 ? "" : text() + "x";
        ASSERT_EQ(send(mail).kind, Kind::accepted);
    }
    const auto received = server.wait_for(kMails);
    ASSERT_EQ(received.size(), static_cast<std::size_t>(kMails));
    for (int i = 0; i < kMails; ++i) {
        const ReceivedMail& got = received[static_cast<std::size_t>(i)];
        EXPECT_TRUE(got.is_well_formed()) << json::serialize(got.all);
        EXPECT_EQ(got.header("Message-ID"), "<comfyd." + std::to_string(i) + "@example.com>");
        EXPECT_EQ(got.header("Bcc"), "");
        EXPECT_EQ(got.all.at("to").as_array().size(), 1U);
        EXPECT_EQ(got.all.at("shape").as_array().size(), i % 2 == 0 ? 3U : 5U);
        EXPECT_EQ(got.all.at("headers").as_array().size(), 8U);
    }
}

TEST_F(SmtpClientTest, TlsFromTheStart) {
    MailServer server({{"security", "tls"}, {"login", {{"user", "u"}, {"password", "p"}}}});
    options_.user = "u";
    options_.password = "p";
    open(server, Security::tls);
    const Verdict verdict = send();
    EXPECT_EQ(verdict.kind, Kind::accepted) << verdict.reason;
}

TEST_F(SmtpClientTest, StartTlsAndEveryWayToLogIn) {
    for (const char* mechanism : {"PLAIN", "LOGIN"}) {
        MailServer server(
            {{"security", "starttls"},
             {"login", {{"user", "ü@example.com"}, {"password", "pass wörd"}}},
             {"mechanisms", {mechanism}}}
        );
        options_.user = "ü@example.com";
        options_.password = "pass wörd";
        open(server, Security::starttls);
        const Verdict verdict = send();
        EXPECT_EQ(verdict.kind, Kind::accepted) << mechanism << ": " << verdict.reason;
        options_.password = "wrong";
        open(server, Security::starttls);
        EXPECT_EQ(send().kind, Kind::not_admitted) << mechanism;
        EXPECT_EQ(server.mails().size(), 1U);
    }
}

TEST_F(SmtpClientTest, NothingIsSaidWithoutTlsWhereItIsRequired) {
    MailServer server({{"login", {{"user", "u"}, {"password", "p"}}}});
    options_.user = "u";
    options_.password = "p";
    open(server, Security::starttls);
    const Verdict verdict = send();
    EXPECT_EQ(verdict.kind, Kind::not_admitted);
    EXPECT_THAT(verdict.reason, testing::HasSubstr("STARTTLS"));
    EXPECT_TRUE(server.mails().empty());
}

TEST_F(SmtpClientTest, ACertificateThatNobodyVouchesForIsNotTrusted) {
    for (const Security security : {Security::tls, Security::starttls}) {
        MailServer server({{"security", security == Security::tls ? "tls" : "starttls"}});
        open(server, security);
        options_.ca_file.clear();
        client_.emplace(loop_.executor(), clock_, options_);
        const Verdict verdict = send();
        EXPECT_EQ(verdict.kind, Kind::later) << verdict.reason;
        EXPECT_TRUE(server.mails().empty());
    }
}

class SmtpTokensTest : public SmtpClientTest {
protected:
    void use_tokens() {
        options_.user = "me@example.com";
        options_.tokens = TokenOptions{
            .url = tokens_.url("/token"),
            .client_id = "client&",
            .client_secret = "secret",
            .refresh_token = "refresh/1",
            .scope = "mail",
        };
    }
    void answer(int status, std::string body) {
        net::Response response;
        response.status = status;
        response.body = std::move(body);
        tokens_.answer_next(std::move(response));
    }
    json::object told_{
        {"security", "starttls"},
        {"login", {{"user", "me@example.com"}, {"token", "good"}}},
        {"mechanisms", {"XOAUTH2"}}
    };
    test::Receiver tokens_;
};

TEST_F(SmtpTokensTest, ARefreshTokenGivesAccessForManyMails) {
    MailServer server(told_);
    use_tokens();
    open(server, Security::starttls);
    answer(200, R"({"access_token":"good","expires_in":3600,"token_type":"Bearer"})");
    for (int i = 0; i < 3; ++i) {
        const Verdict verdict = send();
        EXPECT_EQ(verdict.kind, Kind::accepted) << verdict.reason;
    }
    const auto asked = tokens_.received();
    ASSERT_EQ(asked.size(), 1U);
    EXPECT_EQ(
        asked[0].body,
        "grant_type=refresh_token&refresh_token=refresh%2F1&client_id=client%26&client_secret="
        "secret&scope=mail"
    );
}

TEST_F(SmtpTokensTest, ATokenThatWasRevokedIsReplacedOnce) {
    MailServer server(told_);
    use_tokens();
    open(server, Security::starttls);
    answer(200, R"({"access_token":"revoked","expires_in":3600})");
    EXPECT_EQ(send().kind, Kind::not_admitted) << "a new one that is refused is no use";
    EXPECT_EQ(tokens_.received().size(), 1U);
    answer(200, R"({"access_token":"good","expires_in":3600})");
    EXPECT_EQ(send().kind, Kind::accepted);
    EXPECT_EQ(tokens_.received().size(), 2U);
}

TEST_F(SmtpTokensTest, WhatTheTokenEndpointSaysDecides) {
    MailServer server(told_);
    use_tokens();
    open(server, Security::starttls);
    answer(400, R"({"error":"invalid_grant","error_description":"secret things"})");
    const Verdict refused = send();
    EXPECT_EQ(refused.kind, Kind::not_admitted);
    EXPECT_EQ(refused.reason, "the token endpoint answered HTTP 400 (invalid_grant)");
    for (const auto& [status, body] : std::vector<std::pair<int, std::string>>{
             {503, ""},
             {200, "<html>"},
             {200, "{}"},
             {200, R"({"access_token":"with\r\nbreak"})"},
             {200, R"({"access_token":7})"}
         }) {
        answer(status, body);
        EXPECT_EQ(send().kind, Kind::later) << status << body;
    }
    EXPECT_EQ(server.sessions(), 0U);
}

TEST_F(SmtpClientTest, EachRecipientHasItsOwnOutcome) {
    MailServer server(
        {{"answers",
          {{"rcpt gone@example.com", {"550 5.1.1 no such user", "forever"}},
           {"rcpt busy@example.com", {"451 4.2.1 try later"}}}}}
    );
    open(server);
    Mail mail = some_mail();
    mail.to = "gone@example.com";
    const Verdict gone = send(mail);
    EXPECT_EQ(gone.kind, Kind::refused);
    EXPECT_THAT(gone.reason, testing::HasSubstr("550 5.1.1 no such user"));
    mail.to = "busy@example.com";
    EXPECT_EQ(send(mail).kind, Kind::later);
    EXPECT_EQ(send(mail).kind, Kind::accepted);
    EXPECT_EQ(send().kind, Kind::accepted);
    EXPECT_EQ(server.wait_for(2).size(), 2U);
}

TEST_F(SmtpClientTest, WhatTheServerSaysDecides) {
    struct Case {
        const char* step;
        const char* line;
        Kind kind;
    };
    for (const Case& one : std::vector<Case>{
             {"mail", "451 4.3.0 busy", Kind::later},
             {"mail", "550 5.7.30 basic auth is switched off", Kind::not_admitted},
             {"mail", "530 5.7.0 authenticate first", Kind::not_admitted},
             {"mail", "553 sender unknown", Kind::not_admitted},
             {"mail", "552 5.3.4 too big", Kind::too_big},
             {"mail", "421 closing", Kind::later},
             {"rcpt ops@example.com", "552 5.2.2 mailbox full", Kind::refused},
             {"rcpt ops@example.com", "450 greylisted", Kind::later},
             {"end", "552 5.3.4 too big", Kind::too_big},
             {"end", "552 too big", Kind::too_big},
             {"end", "554 5.7.1 spam", Kind::refused},
             {"end", "452 no space", Kind::later},
         }) {
        MailServer server({{"answers", {{one.step, {one.line}}}}});
        open(server);
        const Verdict verdict = send();
        EXPECT_EQ(verdict.kind, one.kind) << one.step << " " << one.line << ": " << verdict.reason;
        EXPECT_THAT(verdict.reason, testing::HasSubstr(one.line));
        EXPECT_EQ(send().kind, Kind::accepted) << "the next one is another matter";
    }
}

TEST_F(SmtpClientTest, AMailThatIsTooBigIsNotEvenSent) {
    MailServer server({{"size", 2000}});
    open(server);
    Mail mail = some_mail();
    mail.jpeg = std::string(5000, 'x');
    EXPECT_EQ(send(mail).kind, Kind::too_big);
    EXPECT_EQ(send().kind, Kind::accepted);
}

TEST_F(SmtpClientTest, AConnectionThatEndsAnywhereIsTriedAgain) {
    for (const Security security : {Security::none, Security::starttls}) {
        const bool is_secured = security == Security::starttls;
        for (const std::string step :
             {"connect", "ehlo", "starttls", "auth", "mail", "rcpt", "data", "end"}) {
            if (step == "starttls" && !is_secured) {
                continue;
            }
            json::object told{{"drops", {step}}, {"login", {{"user", "u"}, {"password", "p"}}}};
            if (is_secured) {
                told["security"] = "starttls";
            }
            MailServer server(told);
            options_.user = "u";
            options_.password = "p";
            open(server, security);
            const Verdict first = send();
            EXPECT_EQ(first.kind, Kind::later) << step << ": " << first.reason;
            const Verdict second = send();
            EXPECT_EQ(second.kind, Kind::accepted) << step << ": " << second.reason;
            // An answer that was lost after the last dot: both are the same mail.
            const auto mails = server.wait_for(step == "end" ? 2 : 1);
            ASSERT_EQ(mails.size(), step == "end" ? 2U : 1U) << step;
            EXPECT_EQ(mails.front().header("Message-ID"), mails.back().header("Message-ID"));
        }
    }
}

TEST_F(SmtpClientTest, ManyMailsGoOverFewConnections) {
    MailServer server;
    open(server);
    std::vector<std::future<Verdict>> verdicts;
    constexpr int kMails = 40;
    for (int i = 0; i < kMails; ++i) {
        Mail mail = some_mail();
        mail.id = "comfyd." + std::to_string(i);
        verdicts.push_back(begin(mail));
    }
    for (auto& verdict : verdicts) {
        EXPECT_EQ(net::test::get(verdict).kind, Kind::accepted);
    }
    EXPECT_EQ(server.wait_for(kMails).size(), static_cast<std::size_t>(kMails));
    EXPECT_LE(server.sessions(), 4U);
}

// A connection that the server ended between two mails is no fault of the second.
TEST_F(SmtpClientTest, AConnectionThatIsUsedAgainMayBeGone) {
    MailServer server({{"answers", {{"mail", {"421 enough", "421 enough", "421 enough"}}}}});
    options_.connections_max = 1;
    open(server);
    std::vector<std::future<Verdict>> verdicts;
    for (int i = 0; i < 8; ++i) {
        verdicts.push_back(begin(some_mail()));
    }
    int accepted = 0;
    for (auto& verdict : verdicts) {
        accepted += net::test::get(verdict).kind == Kind::accepted ? 1 : 0;
    }
    EXPECT_GE(accepted, 5);
}

TEST_F(SmtpClientTest, NobodyThereIsTriedLater) {
    std::uint16_t port = 0;
    {
        const MailServer gone;
        port = gone.port();
    }
    options_.server.host = "localhost";
    options_.server.port = port;
    options_.server.security = Security::none;
    client_.emplace(loop_.executor(), clock_, options_);
    EXPECT_EQ(send().kind, Kind::later);
}

TEST_F(SmtpClientTest, WhoeverEndsIsNotKeptWaiting) {
    // Says nothing, ever.
    boost::asio::io_context context;
    const boost::asio::ip::tcp::acceptor silent(
        context, {boost::asio::ip::make_address("127.0.0.1"), 0}
    );
    options_.server.host = "127.0.0.1";
    options_.server.port = silent.local_endpoint().port();
    options_.server.security = Security::none;
    client_.emplace(loop_.executor(), clock_, options_);
    auto verdict = begin(some_mail());
    loop_.cancel();
    EXPECT_EQ(net::test::get(verdict).kind, Kind::cancelled);
    client_.reset();
}

}  // namespace
}  // namespace comfyd::notify::mail
