#include "notify/mail/mail_channel.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/crypto.hpp"
#include "net/test_support.hpp"
#include "notify/channels.hpp"
#include "notify/mail/mime.hpp"
#include "notify/test_support.hpp"
#include "support/mail_server.hpp"

namespace comfyd::notify::mail {
namespace {

using support::MailServer;
using support::ReceivedMail;
using testing::HasSubstr;

Task<std::string> some_picture(jobs::Job, jobs::Event) {
    co_return std::string("\xFF\xD8\xFF") + std::string(4000, 'p');
}

MailOptions by(const MailServer& server) {
    MailOptions options;
    options.smtp.server.host = "localhost";
    options.smtp.server.port = server.port();
    options.smtp.server.security = Security::none;
    options.from = "comfyd@example.com";
    options.from_name = "comfyd";
    return options;
}

// Mails by the Notifier, over a ledger in memory and a clock that stands still. A job whose
// "webhook" is mailto:ADDRESS is told by mail.
class MailChannelTest : public test::WebhooksTest {
protected:
    MailChannelTest() {
        ledger_.targets = [](const jobs::Webhook& webhook) {
            return Target(MailTarget{"ops", webhook.url.substr(std::string("mailto:").size())});
        };
    }
    void start(MailOptions options, MailContent content = {}) {
        ChannelOptions channels;
        channels.mail["ops"] = std::move(options);
        channels.mail_content = std::move(content);
        webhooks_ = std::make_unique<Notifier>(
            loop_.executor(),
            clock_,
            ledger_,
            ledger_,
            make_channels(loop_.executor(), clock_, std::move(channels)),
            options_
        );
        loop_.run(test::start_on_executor(*webhooks_));
    }
    jobs::Job failed_job(const std::string& address, const std::string& reason = "boom") {
        const jobs::Job running = begin(accept("mailto:" + address));
        jobs::Failure failure;
        failure.message = reason;
        return commit(jobs::fail_job(running, failure, running.sequence + 1, clock_.now()));
    }
    // How many writes of a kind the outbox has seen.
    static std::size_t count(
        const std::vector<test::MemoryLedger::Write>& writes, std::string kind
    ) {
        return static_cast<std::size_t>(std::ranges::count(writes, kind, [](const auto& write) {
            return write.kind;
        }));
    }
};

TEST_F(MailChannelTest, TellsOfAJobInWordsWithALinkAndAPicture) {
    MailServer server;
    MailContent content;
    content.picture = some_picture;
    content.links = [](const jobs::Job&, const jobs::Event&) {
        return std::vector<Link>{{"a <b>.png", "https://example.com/a?x=1&y=2"}};
    };
    start(by(server), content);
    const jobs::Job job = failed_job("ops@example.com", "<script>alert(1)</script> & more");
    webhooks_->wake();
    ledger_.wait_for(1);
    const auto mails = server.wait_for(1);
    ASSERT_EQ(mails.size(), 1U);
    const ReceivedMail& mail = mails[0];
    EXPECT_TRUE(mail.is_well_formed()) << json::serialize(mail.all);
    EXPECT_EQ(mail.header("Subject"), "[comfyd] Job failed");
    EXPECT_THAT(mail.text("text"), HasSubstr("Job: " + job.id.to_string()));
    EXPECT_THAT(mail.text("text"), HasSubstr("Reason: <script>alert(1)</script> & more"));
    EXPECT_THAT(mail.text("text"), HasSubstr("a <b>.png: https://example.com/a?x=1&y=2"));
    EXPECT_THAT(mail.text("html"), HasSubstr("&lt;script&gt;alert(1)&lt;/script&gt; &amp; more"));
    EXPECT_THAT(mail.text("html"), HasSubstr("href=\"https://example.com/a?x=1&amp;y=2\""));
    EXPECT_THAT(mail.text("html"), HasSubstr("cid:" + std::string(kPictureId)));
    EXPECT_THAT(mail.text("html"), testing::Not(HasSubstr("<script>")));
    EXPECT_FALSE(mail.text("picture").empty());
}

TEST_F(MailChannelTest, ARepeatedMailIsTheSameMail) {
    MailServer server({{"drops", {"end", "mail"}}});
    start(by(server));
    failed_job("ops@example.com");
    webhooks_->wake();
    ledger_.wait_for(1);
    advance(Millis(1000));
    ledger_.wait_for(2);
    advance(Millis(2000));
    EXPECT_EQ(count(ledger_.wait_for(3), "delivered"), 1U);
    const auto mails = server.wait_for(2);
    ASSERT_EQ(mails.size(), 2U);
    EXPECT_EQ(mails[0].header("Message-ID"), mails[1].header("Message-ID"));
    EXPECT_EQ(mails[0].header("Date"), mails[1].header("Date"));
    EXPECT_EQ(mails[0].text("text"), mails[1].text("text"));
}

TEST_F(MailChannelTest, ARecipientThatIsRefusedIsADeadLetterAndNobodyElses) {
    MailServer server({{"answers", {{"rcpt gone@example.com", {"550 5.1.1 unknown", "forever"}}}}});
    start(by(server));
    failed_job("gone@example.com");
    failed_job("here@example.com");
    webhooks_->wake();
    const auto writes = ledger_.wait_for(2);
    EXPECT_EQ(count(writes, "give_up"), 1U);
    EXPECT_EQ(count(writes, "delivered"), 1U);
    ASSERT_EQ(server.wait_for(1).size(), 1U);
    EXPECT_EQ(server.mails()[0].to(), "here@example.com");
}

TEST_F(MailChannelTest, ADomainOfAnotherScriptIsWrittenInAscii) {
    MailServer server;
    MailOptions options = by(server);
    options.from = "comfyd@bücher.example";
    start(std::move(options));
    failed_job("ops@例え.テスト");
    webhooks_->wake();
    EXPECT_EQ(count(ledger_.wait_for(1), "delivered"), 1U);
    ASSERT_EQ(server.wait_for(1).size(), 1U);
    const ReceivedMail mail = server.mails()[0];
    EXPECT_TRUE(mail.is_well_formed()) << json::serialize(mail.all);
    EXPECT_EQ(mail.to(), "ops@xn--r8jz45g.xn--zckzah");
    EXPECT_THAT(mail.header("From"), HasSubstr("comfyd@xn--bcher-kva.example"));
}

TEST_F(MailChannelTest, ANameOfAnotherScriptNeedsAServerThatTakesIt) {
    for (const bool is_offered : {true, false}) {
        MailServer server({{"smtputf8", is_offered}});
        start(by(server));
        const std::size_t before = ledger_.wait_for(0).size();
        failed_job("jürgen@example.com");
        failed_job("here@example.com");
        webhooks_->wake();
        ledger_.wait_for(before + 2);
        const auto mails = server.wait_for(is_offered ? 2 : 1);
        std::set<std::string> told;
        for (const ReceivedMail& mail : mails) {
            told.insert(mail.to());
        }
        EXPECT_TRUE(told.contains("here@example.com"));
        EXPECT_EQ(told.contains("jürgen@example.com"), is_offered);
        EXPECT_EQ(final_counters().dead, is_offered ? 0U : 1U);
    }
}

TEST_F(MailChannelTest, RecipientsThatArePutOffDelayNobodyElse) {
    MailServer server({{"answers", {{"rcpt grey@example.com", {"450 4.2.0 greylisted", "forever"}}}}
    });
    options_.failures_before_rest = 2;
    start(by(server));
    constexpr std::size_t kPutOff = 6;
    for (std::size_t i = 0; i < kPutOff; ++i) {
        failed_job("grey@example.com");
    }
    webhooks_->wake();
    EXPECT_EQ(count(ledger_.wait_for(kPutOff), "retry"), kPutOff);
    failed_job("here@example.com");
    webhooks_->wake();
    EXPECT_EQ(count(ledger_.wait_for(kPutOff + 1), "delivered"), 1U);
}

TEST_F(MailChannelTest, WrongCredentialsPauseTheChannelAndBurnNothing) {
    MailServer server({{"login", {{"user", "u"}, {"password", "right"}}}});
    MailOptions options = by(server);
    options.smtp.user = "u";
    options.smtp.password = "wrong";
    start(std::move(options));
    for (int i = 0; i < 5; ++i) {
        failed_job("ops@example.com");
    }
    webhooks_->wake();
    const auto writes = ledger_.wait_for(5);
    EXPECT_EQ(count(writes, "put_aside"), 5U);
    for (const auto& write : writes) {
        EXPECT_GT(write.at, clock_.now());
        EXPECT_EQ(write.delivery.attempts, 0);
    }
    EXPECT_LE(server.sessions(), 5U);
    const std::size_t before = server.sessions();
    failed_job("ops@example.com");
    webhooks_->wake();
    ledger_.wait_for(6);
    EXPECT_EQ(server.sessions(), before) << "a paused channel asks nobody";
    EXPECT_EQ(final_counters().dead, 0U);
}

TEST_F(MailChannelTest, ATooLargeMailGoesWithoutItsPicture) {
    MailServer server({{"answers", {{"end", {"552 5.3.4 too big"}}}}});
    MailContent content;
    content.picture = some_picture;
    start(by(server), content);
    failed_job("ops@example.com");
    webhooks_->wake();
    ledger_.wait_for(1);
    const auto mails = server.wait_for(1);
    ASSERT_EQ(mails.size(), 1U);
    EXPECT_TRUE(mails[0].text("picture").empty());
    EXPECT_THAT(mails[0].text("html"), testing::Not(HasSubstr("cid:")));
}

TEST_F(MailChannelTest, WhatIsOverTheLimitWaitsAndIsNotLost) {
    MailServer server;
    MailOptions options = by(server);
    options.limits.of_recipient = {2, std::chrono::minutes(60)};
    start(std::move(options));
    for (int i = 0; i < 4; ++i) {
        failed_job("ops@example.com");
    }
    webhooks_->wake();
    auto writes = ledger_.wait_for(4);
    EXPECT_EQ(count(writes, "delivered"), 2U);
    EXPECT_EQ(count(writes, "put_aside"), 2U);
    for (int step = 0; step < 20 && ledger_.pending() > 0; ++step) {
        const std::size_t before = ledger_.wait_for(0).size();
        advance(std::chrono::minutes(30));
        ledger_.wait_for(before + 1);
    }
    EXPECT_EQ(ledger_.pending(), 0U);
    EXPECT_EQ(server.wait_for(4).size(), 4U);
}

TEST_F(MailChannelTest, ADigestTellsOfAllThatHappenedInItsSpan) {
    for (const int jobs : {1, 3, 150}) {
        MailServer server;
        MailOptions options = by(server);
        options.digest = std::chrono::minutes(15);
        const std::size_t before = ledger_.wait_for(0).size();
        start(std::move(options));
        std::set<std::string> ids;
        for (int i = 0; i < jobs; ++i) {
            ids.insert(failed_job("ops@example.com").id.to_string());
        }
        webhooks_->wake();
        const auto writes = ledger_.wait_for(before + static_cast<std::size_t>(jobs));
        EXPECT_TRUE(server.mails().empty()) << "the span is not over";
        // All are due at the same moment.
        EXPECT_EQ(
            std::ranges::count(writes, writes.back().at, &test::MemoryLedger::Write::at), jobs
        );
        advance(writes.back().at - clock_.now());
        ledger_.wait_for(before + 2 * static_cast<std::size_t>(jobs));
        EXPECT_EQ(ledger_.pending(), 0U);
        const std::size_t mails_max = static_cast<std::size_t>(jobs + 99) / 100;
        const auto mails = server.wait_for(mails_max);
        EXPECT_LE(mails.size(), mails_max + 1);
        std::string all;
        for (const ReceivedMail& mail : mails) {
            EXPECT_TRUE(mail.is_well_formed());
            all += mail.text("text");
        }
        for (const std::string& id : ids) {
            EXPECT_THAT(all, HasSubstr(id));
        }
        loop_.run(webhooks_->stop());
        webhooks_.reset();
    }
}

TEST_F(MailChannelTest, ADigestThatFailsComesAgainAsTheSameMail) {
    MailServer server({{"drops", {"end"}}});
    MailOptions options = by(server);
    options.digest = std::chrono::minutes(1);
    options_.failures_before_rest = 1000;  // a server that rests would not be seen to by this clock
    start(std::move(options));
    constexpr std::size_t kJobs = 5;
    for (std::size_t i = 0; i < kJobs; ++i) {
        failed_job("ops@example.com");
    }
    webhooks_->wake();
    auto writes = ledger_.wait_for(kJobs);
    advance(writes.back().at - clock_.now());
    writes = ledger_.wait_for(2 * kJobs);
    EXPECT_EQ(count(writes, "retry"), kJobs);
    advance(writes.back().at - clock_.now());
    writes = ledger_.wait_for(3 * kJobs);
    EXPECT_EQ(count(writes, "delivered"), kJobs);
    const auto mails = server.wait_for(2);
    ASSERT_EQ(mails.size(), 2U);
    EXPECT_EQ(mails[0].header("Message-ID"), mails[1].header("Message-ID"));
    EXPECT_THAT(mails[0].header("Subject"), HasSubstr("5 events"));
}

TEST_F(MailChannelTest, AChannelThatIsGoneGivesUp) {
    MailServer server;
    ledger_.targets = [](const jobs::Webhook&) {
        return Target(MailTarget{"other", "ops@example.com"});
    };
    start(by(server));
    failed_job("ops@example.com");
    webhooks_->wake();
    const auto writes = ledger_.wait_for(1);
    EXPECT_EQ(writes[0].kind, "give_up");
    EXPECT_THAT(writes[0].error, HasSubstr("'other' is no longer configured"));
}

}  // namespace
}  // namespace comfyd::notify::mail
