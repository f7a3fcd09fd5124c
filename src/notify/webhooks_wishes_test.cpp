// What a client may wish of the delivery: progress, how often it is tried again and when.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "notify/test_support.hpp"
#include "notify/webhook_message.hpp"

namespace comfyd::notify {
namespace {

using test::Received;
using testing::ElementsAre;

class WebhookWishes : public test::WebhooksTest {
protected:
    void tell(const jobs::Job& job, std::uint64_t sequence, double value) {
        jobs::Progress progress;
        progress.value = value;
        jobs::Event event;
        event.job = job.id;
        event.sequence = sequence;
        event.type = jobs::EventType::progress;
        event.state = jobs::State::running;
        event.at = clock_.now();
        event.data = progress.to_json();
        webhooks_->tell_progress(job, {std::string(kOwnWebhook), webhook()}, event);
    }
    jobs::Webhook webhook() {
        jobs::Webhook made;
        made.url = receiver_.url("/");
        made.secret = "secret";
        return made;
    }
    static double percent(const Received& received) {
        return json::parse(received.body)->at("data").at("progress_percent").to_number<double>();
    }
    jobs::Job completed_with(const std::function<void(jobs::Webhook&)>& wish) {
        jobs::Spec spec;
        spec.webhook = webhook();
        wish(*spec.webhook);
        const auto change = jobs::make_job(JobId::make(clock_.now()), spec, clock_.now());
        ledger_.save(change, spec);
        return complete(begin(change.job));
    }
};

TEST_F(WebhookWishes, TheNewestProgressIsSentOnceASecond) {
    start();
    const auto job = begin(accept(receiver_.url("/"), {"execution.progress"}));
    tell(job, 3, 0.1);
    receiver_.wait_for(1);
    tell(job, 4, 0.2);
    tell(job, 5, 0.3);
    advance(Millis(1'000));
    const auto received = receiver_.wait_for(2);
    EXPECT_THAT(events_of(received), ElementsAre("execution.progress", "execution.progress"));
    EXPECT_EQ(percent(received[0]), 10);
    EXPECT_EQ(percent(received[1]), 30);
    EXPECT_TRUE(received[1].headers.contains("X-Signature"));
    EXPECT_EQ(received[1].headers.get("webhook-id"), "msg_" + job.id.to_string() + "_5");
}

TEST_F(WebhookWishes, NoProgressIsSentAfterTheEnd) {
    start();
    const auto job =
        begin(accept(receiver_.url("/"), {"execution.progress", "execution.completed"}));
    tell(job, 3, 0.1);
    receiver_.wait_for(1);
    tell(job, 4, 0.2);
    auto ended = jobs::complete(job, {}, {}, 5, clock_.now());
    ledger_.save(*ended);
    webhooks_->tell_change(ended->job, ended->event);
    ledger_.wait_for(1);
    advance(Millis(5'000));
    complete(begin(accept(receiver_.url("/next"))));
    webhooks_->wake();
    const auto received = receiver_.wait_for(3);
    EXPECT_THAT(
        events_of(received),
        ElementsAre("execution.progress", "execution.completed", "execution.completed")
    );
}

// Changes on the way are looked for a moment later than ends, and found all the same.
TEST_F(WebhookWishes, TheStartIsToldWithoutTheEnd) {
    start();
    const auto job = accept(receiver_.url("/"), {"execution.started"});
    for (std::uint64_t sequence = 2; sequence < 5; ++sequence) {
        const auto started = jobs::start(job, "worker", sequence, clock_.now());
        ledger_.save(*started);
        webhooks_->tell_change(started->job, started->event);
        receiver_.wait_for(sequence - 1);
    }
    EXPECT_THAT(
        events_of(receiver_.received()),
        ElementsAre("execution.started", "execution.started", "execution.started")
    );
}

// The first time from what was just told, then from the ledger.
TEST_F(WebhookWishes, ARepeatedMessageIsTheFirstOne) {
    receiver_.answer_next(500);
    start();
    const auto job = begin(accept(receiver_.url("/"), {"execution.completed"}));
    jobs::Output output;
    output.asset = AssetId::make(clock_.now());
    output.name = "a.png";
    output.bytes = std::make_shared<const std::string>("bytes");
    auto ended =
        jobs::complete(job, {output}, {{"9", json::object{{"text", "x"}}}}, 5, clock_.now());
    ledger_.save(*ended);
    webhooks_->tell_change(ended->job, ended->event);
    ledger_.wait_for(1);
    advance(Millis(60'000));
    const auto received = receiver_.wait_for(2);
    EXPECT_EQ(received[0].body, received[1].body);
    EXPECT_NE(received[0].body.find("a.png"), std::string::npos);
}

TEST_F(WebhookWishes, ProgressThatIsNotTakenIsNotSentAgain) {
    receiver_.answer_next(500);
    start();
    const auto job = begin(accept(receiver_.url("/"), {"execution.progress"}));
    tell(job, 3, 0.1);
    receiver_.wait_for(1);
    advance(Millis(60'000));
    tell(job, 4, 0.2);
    const auto received = receiver_.wait_for(2);
    EXPECT_EQ(percent(received[1]), 20);
}

TEST_F(WebhookWishes, ItIsTriedAgainAsOftenAsWished) {
    options_.failures_before_rest = 1000;  // a rest may begin after the clock was set
    start();
    for (const int wished : {0, 1, 3}) {
        const std::size_t before = receiver_.received().size();
        const std::size_t writes = ledger_.wait_for(0).size();
        for (int i = 0; i <= wished; ++i) {
            receiver_.answer_next(500);
        }
        completed_with([wished](jobs::Webhook& made) { made.max_retries = wished; });
        webhooks_->wake();
        for (int i = 1; i <= wished + 1; ++i) {
            const auto all = ledger_.wait_for(writes + static_cast<std::size_t>(i));
            EXPECT_EQ(all.back().kind, i <= wished ? "retry" : "give_up") << wished;
            advance(std::chrono::hours(1));
        }
        EXPECT_EQ(receiver_.received().size() - before, static_cast<std::size_t>(wished) + 1);
    }
}

TEST_F(WebhookWishes, TheFirstRetryComesWhenWished) {
    receiver_.answer_next(500);
    const Time at = clock_.now();
    completed_with([](jobs::Webhook& made) { made.retry_delay = Millis(40'000); });
    start();
    const auto write = ledger_.wait_for(1).front();
    EXPECT_EQ(write.kind, "retry");
    EXPECT_GE(write.at, at + Millis(20'000));
    EXPECT_LE(write.at, at + Millis(40'000));
}

TEST_F(WebhookWishes, AnAttemptEndsWhenWished) {
    webhook_options_.attempt_timeout = std::chrono::hours(1);
    completed_with([this](jobs::Webhook& made) {
        made.url = receiver_.url("/hold");
        made.timeout = Millis(100);
    });
    start();
    EXPECT_EQ(ledger_.wait_for(1).front().kind, "retry");
}

TEST(Webhook, WishesAreKeptAndBounded) {
    const json::object given{
        {"url", "https://example.com/"}, {"max_retries", 3}, {"retry_delay", 1.5}, {"timeout", 30}
    };
    const auto webhook = jobs::Webhook::from_json(given);
    ASSERT_TRUE(webhook);
    const auto again = jobs::Webhook::from_json(webhook->to_json());
    ASSERT_TRUE(again);
    EXPECT_EQ(again->max_retries, 3);
    EXPECT_EQ(again->retry_delay, Millis(1'500));
    EXPECT_EQ(again->timeout, Millis(30'000));
    const std::vector<std::pair<std::string, json::value>> kWrong{
        {"max_retries", -1},
        {"max_retries", 101},
        {"retry_delay", 0},
        {"retry_delay", 3'601},
        {"timeout", 0.05},
        {"timeout", "30"},
    };
    for (const auto& [key, value] : kWrong) {
        json::object wrong = given;
        wrong[key] = value;
        const auto refused = jobs::Webhook::from_json(wrong);
        ASSERT_FALSE(refused) << key;
        EXPECT_EQ(refused.error().code, Code::invalid_argument);
        EXPECT_NE(refused.error().message.find(key), std::string::npos);
    }
}

}  // namespace
}  // namespace comfyd::notify
