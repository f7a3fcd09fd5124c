#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <set>
#include <thread>

#include "base/crypto.hpp"
#include "net/test_support.hpp"
#include "notify/test_support.hpp"
#include "notify/webhook_message.hpp"

namespace comfyd::notify {
namespace {

using test::Received;
using test::Receiver;
using test::start_on_executor;
using test::WebhooksTest;
using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<std::string> kAllEvents = {
    "execution.queued",
    "execution.started",
    "execution.completed",
    "execution.failed",
};

TEST_F(WebhooksTest, DeliversASignedMessage) {
    start();
    const auto job = complete(begin(accept(receiver_.url("/hook?x=1"), {}, "secret")));
    webhooks_->wake();
    ledger_.wait_for(1);
    const auto received = receiver_.received();
    ASSERT_EQ(received.size(), 1U);
    EXPECT_EQ(received[0].path, "/hook");
    unsigned char digest[32];
    unsigned int length = sizeof digest;
    HMAC(
        EVP_sha256(),
        "secret",
        6,
        reinterpret_cast<const unsigned char*>(received[0].body.data()),
        received[0].body.size(),
        digest,
        &length
    );
    EXPECT_EQ(received[0].headers.get("X-Signature"), "sha256=" + to_hex(digest, length));
    const auto body = json::parse_object(received[0].body);
    ASSERT_TRUE(body);
    EXPECT_EQ(body->at("execution_id").as_string(), job.id.to_string());
    EXPECT_EQ(body->at("event"), "execution.completed");
    EXPECT_EQ(ledger_.pending(), 0U);
    EXPECT_EQ(final_counters().delivered, 1U);
}

Task<std::optional<std::string>> body_of_one(JobId id, jobs::Job job, jobs::Event event) {
    if (job.id != id) {
        co_return std::nullopt;
    }
    co_return std::string(to_string(event.type)) + " in its own words";
}

TEST_F(WebhooksTest, ADialectMayHaveItsOwnBody) {
    const jobs::Job own = completed_job(receiver_.url("/own"));
    webhook_options_.own_body = [id = own.id](jobs::Job job, jobs::Event event) {
        return body_of_one(id, std::move(job), std::move(event));
    };
    start();
    completed_job(receiver_.url("/usual"));
    webhooks_->wake();
    ledger_.wait_for(2);
    for (const Received& received : receiver_.received()) {
        if (received.path == "/own") {
            EXPECT_EQ(received.body, "completed in its own words");
        } else {
            EXPECT_TRUE(json::parse_object(received.body)) << received.body;
        }
    }
}

TEST_F(WebhooksTest, DeliversWhatWasLeftFromBefore) {
    completed_job(receiver_.url("/"));
    start();
    ledger_.wait_for(1);
    EXPECT_EQ(ledger_.pending(), 0U);
}

TEST_F(WebhooksTest, AJobsEventsComeInOrderAlsoWhenOneFails) {
    receiver_.answer_next(503);
    receiver_.answer_next(204);
    receiver_.answer_next(500);
    complete(begin(accept(receiver_.url("/"), kAllEvents)));
    start();
    ledger_.wait_for(1);
    EXPECT_EQ(receiver_.received().size(), 1U) << "a later event overtook";
    advance(Millis(1000));
    ledger_.wait_for(3);
    advance(Millis(1000));
    ledger_.wait_for(5);
    EXPECT_THAT(
        events_of(receiver_.received()),
        ElementsAre(
            "execution.queued",
            "execution.queued",
            "execution.started",
            "execution.started",
            "execution.completed"
        )
    );
    EXPECT_EQ(final_counters().delivered, 3U);
    EXPECT_EQ(final_counters().failed_attempts, 2U);
}

TEST_F(WebhooksTest, ARepeatedDeliveryIsTheSameMessage) {
    receiver_.answer_next(503);
    const auto job = begin(accept(receiver_.url("/"), {}, "secret"));
    clock_.advance(Millis(2500));
    const auto failed =
        commit(jobs::fail_job(job, jobs::Failure{}, job.sequence + 1, clock_.now()));
    start();
    ledger_.wait_for(1);
    clock_.advance(Millis(5000));
    const auto revived = commit(jobs::revive(failed, failed.sequence + 1, clock_.now()));
    begin(revived);
    webhooks_->wake();
    ledger_.wait_for(2);
    const auto received = receiver_.received();
    ASSERT_EQ(received.size(), 2U);
    EXPECT_EQ(received[0].body, received[1].body);
    EXPECT_EQ(received[0].headers.get("webhook-id"), received[1].headers.get("webhook-id"));
    EXPECT_NE(
        received[0].headers.get("webhook-timestamp"), received[1].headers.get("webhook-timestamp")
    );
    EXPECT_EQ(json::parse_object(received[0].body)->at("execution_time").to_number<double>(), 2.5);
}

TEST_F(WebhooksTest, ASlowReceiverDoesNotDelayAnother) {
    options_.in_flight_per_lane_max = 2;
    options_.in_flight_max = 4;
    Receiver slow;
    for (int i = 0; i < 20; ++i) {
        completed_job(slow.url("/hold"));
    }
    for (int i = 0; i < 10; ++i) {
        completed_job(receiver_.url("/"));
    }
    start();
    ledger_.wait_for(10);
    EXPECT_EQ(receiver_.received().size(), 10U);
    slow.wait_for(2);
    EXPECT_EQ(slow.received().size(), 2U);
    EXPECT_LE(receiver_.most_at_once(), 2U);
}

TEST_F(WebhooksTest, DeliversEachOnce) {
    options_.in_flight_per_lane_max = 4;
    start();
    std::set<std::string> expected;
    for (int i = 0; i < 100; ++i) {
        expected.insert(completed_job(receiver_.url("/")).id.to_string());
        webhooks_->wake();
    }
    ledger_.wait_for(100);
    std::multiset<std::string> came;
    for (const Received& one : receiver_.received()) {
        came.emplace(one.headers.get("X-Execution-ID"));
    }
    EXPECT_EQ(came.size(), 100U);
    EXPECT_EQ(std::set<std::string>(came.begin(), came.end()), expected);
    EXPECT_LE(receiver_.most_at_once(), 4U);
}

TEST_F(WebhooksTest, WaitsLongerAfterEveryFailure) {
    for (int i = 0; i < 4; ++i) {
        receiver_.answer_next(500);
    }
    completed_job(receiver_.url("/"));
    start();
    for (std::size_t i = 0; i < 4; ++i) {
        const auto writes = ledger_.wait_for(i + 1);
        ASSERT_EQ(writes[i].kind, "retry");
        EXPECT_THAT(writes[i].error, HasSubstr("HTTP 500"));
        const Millis wait = writes[i].at - clock_.now();
        EXPECT_GE(wait, Millis(500) * (1 << i));
        EXPECT_LE(wait, Millis(1000) * (1 << i));
        advance(wait);
    }
    EXPECT_EQ(ledger_.wait_for(5)[4].kind, "delivered");
}

TEST_F(WebhooksTest, AClockThatIsSetBackDelaysNothing) {
    constexpr Millis kBack{300'000};
    options_.pace = &pace_;
    start();
    completed_job(receiver_.url("/"));
    clock_.advance(-kBack);
    webhooks_->wake();
    EXPECT_EQ(ledger_.wait_for(1)[0].kind, "delivered") << "what is of the future by now";

    receiver_.answer_next(503);
    completed_job(receiver_.url("/"));
    webhooks_->wake();
    const auto failed = ledger_.wait_for(2)[1];
    ASSERT_EQ(failed.kind, "retry");
    const Millis wait = failed.at - clock_.now();
    clock_.advance(-kBack);
    pace_.advance(wait);
    advance(wait);
    EXPECT_EQ(ledger_.wait_for(3)[2].kind, "delivered") << "after its pause, and no later";
}

TEST_F(WebhooksTest, HonoursRetryAfterWithinReason) {
    net::Response busy;
    busy.status = 429;
    busy.headers.set("Retry-After", "120");
    receiver_.answer_next(busy);
    busy.headers.set("Retry-After", "31536000");
    receiver_.answer_next(busy);
    completed_job(receiver_.url("/"));
    start();
    EXPECT_EQ(ledger_.wait_for(1)[0].at, clock_.now() + Millis(120'000));
    advance(Millis(120'000));
    EXPECT_EQ(ledger_.wait_for(2)[1].at, clock_.now() + options_.retry_max);
}

TEST_F(WebhooksTest, GivesUpInTheEnd) {
    options_.give_up_after = std::chrono::minutes(10);
    for (int i = 0; i < 3; ++i) {
        receiver_.answer_next(500);
    }
    const auto job =
        complete(begin(accept(receiver_.url("/"), {"execution.started", "execution.completed"})));
    const Time deadline = clock_.now() + options_.give_up_after;
    start();
    ledger_.wait_for(1);
    advance(std::chrono::minutes(10) - Millis(100));
    EXPECT_EQ(ledger_.wait_for(2)[1].at, deadline)
        << "the last attempt is made at the end of the time";
    advance(Millis(100));
    const auto writes = ledger_.wait_for(4);
    EXPECT_EQ(writes[2].kind, "give_up");
    EXPECT_THAT(writes[2].error, HasSubstr("HTTP 500"));
    EXPECT_EQ(writes[3].kind, "delivered") << "the job's next event goes on";
    EXPECT_EQ(ledger_.pending(), 0U);
    EXPECT_EQ(final_counters().dead, 1U);
}

TEST_F(WebhooksTest, AReceiverThatIsGoneForGoodIsLeftAlone) {
    receiver_.answer_next(410);
    completed_job(receiver_.url("/"));
    start();
    EXPECT_EQ(ledger_.wait_for(1)[0].kind, "give_up");
    EXPECT_EQ(receiver_.received().size(), 1U);
}

TEST_F(WebhooksTest, RedirectsAreNotFollowed) {
    net::Response elsewhere;
    elsewhere.status = 307;
    elsewhere.headers.set("Location", receiver_.url("/other"));
    receiver_.answer_next(elsewhere);
    completed_job(receiver_.url("/"));
    start();
    const auto writes = ledger_.wait_for(1);
    EXPECT_EQ(writes[0].kind, "retry");
    EXPECT_THAT(writes[0].error, HasSubstr("307"));
    EXPECT_EQ(receiver_.received().size(), 1U);
}

TEST_F(WebhooksTest, PrivateAddressesAreNotCalled) {
    webhook_options_.allow_private_addresses = false;
    completed_job(receiver_.url("/"));
    start();
    const auto writes = ledger_.wait_for(1);
    EXPECT_EQ(writes[0].kind, "give_up");
    EXPECT_THAT(writes[0].error, HasSubstr("private"));
    EXPECT_TRUE(receiver_.received().empty());
}

TEST_F(WebhooksTest, WhoCannotBeReachedIsTriedAgain) {
    std::string url;
    {
        const net::test::RawServer closed;
        url = closed.url("/");
    }
    completed_job(url);
    start();
    const auto writes = ledger_.wait_for(1);
    EXPECT_EQ(writes[0].kind, "retry");
    EXPECT_NE(writes[0].error, "");
}

TEST_F(WebhooksTest, AReceiverThatDoesNotAnswerIsTriedAgain) {
    webhook_options_.attempt_timeout = Millis(50);
    completed_job(receiver_.url("/hold"));
    start();
    EXPECT_EQ(ledger_.wait_for(1)[0].kind, "retry");
    EXPECT_EQ(final_counters().failed_attempts, 1U);
}

TEST_F(WebhooksTest, ALongAnswerIsStillAnAnswer) {
    net::Response chatty;
    chatty.status = 200;
    chatty.headers.set("Content-Type", "image/png");
    chatty.body = std::string(3'000'000, 'x');
    receiver_.answer_next(chatty);
    completed_job(receiver_.url("/"));
    start();
    EXPECT_EQ(ledger_.wait_for(1)[0].kind, "delivered");
}

TEST_F(WebhooksTest, SurvivesAStorageThatCannotBeRead) {
    ledger_.fail_reads(2);
    completed_job(receiver_.url("/"));
    start();
    EXPECT_EQ(ledger_.wait_for(1)[0].kind, "delivered");
    EXPECT_LT(ledger_.reads(), 10) << "it span";
}

TEST_F(WebhooksTest, WhatWasDeliveredIsNotSentAgainBecauseTheStorageFailed) {
    ledger_.fail_writes(2);
    completed_job(receiver_.url("/"));
    start();
    EXPECT_EQ(ledger_.wait_for(1)[0].kind, "delivered");
    EXPECT_EQ(receiver_.received().size(), 1U);
    EXPECT_EQ(ledger_.pending(), 0U);
}

TEST_F(WebhooksTest, SurvivesAStorageThatLosesAJobForAMoment) {
    completed_job(receiver_.url("/"));
    ledger_.fail_job_reads(2);
    start();
    EXPECT_EQ(ledger_.wait_for(1)[0].kind, "delivered");
    EXPECT_EQ(receiver_.received().size(), 1U);
}

TEST_F(WebhooksTest, AJobThatIsGoneIsGivenUp) {
    ledger_.forget(completed_job(receiver_.url("/")).id);
    start();
    EXPECT_EQ(ledger_.wait_for(1)[0].kind, "give_up");
    EXPECT_EQ(final_counters().dead, 1U);
}

TEST_F(WebhooksTest, AVeryLongQueueForOneDoesNotHideTheOthers) {
    options_.in_flight_per_lane_max = 1;
    Receiver stuck;
    for (int i = 0; i < 1500; ++i) {
        completed_job(stuck.url("/hold"));
    }
    clock_.advance(Millis(1));
    completed_job(receiver_.url("/"));
    start();
    receiver_.wait_for(1);
    const auto writes = ledger_.wait_for(400);
    EXPECT_THAT(writes[0].error, HasSubstr("waits for earlier deliveries"));
}

TEST_F(WebhooksTest, StopEndsAttemptsAndStartRepeatsThem) {
    completed_job(receiver_.url("/hold"));
    start();
    receiver_.wait_for(1);
    loop_.run(webhooks_->stop());
    EXPECT_EQ(ledger_.pending(), 1U);
    EXPECT_EQ(final_counters().failed_attempts, 0U);
    loop_.run(start_on_executor(*webhooks_));
    receiver_.wait_for(2);
    loop_.run(webhooks_->stop());
    loop_.run(webhooks_->stop());
}

TEST_F(WebhooksTest, MayBeWokenFromAnyThread) {
    start();
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([this] {
            for (int j = 0; j < 1000; ++j) {
                webhooks_->wake();
            }
        });
    }
    for (int i = 0; i < 10; ++i) {
        completed_job(receiver_.url("/"));
    }
    for (auto& thread : threads) {
        thread.join();
    }
    webhooks_->wake();
    ledger_.wait_for(10);
    EXPECT_EQ(receiver_.received().size(), 10U);
}

}  // namespace
}  // namespace comfyd::notify
