// What is common to all channels, over one that answers as told.
#include "notify/notifier.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <set>

#include "notify/test_support.hpp"
#include "support/wait.hpp"

namespace comfyd::notify {
namespace {

using support::wait_until;

// A lane is the URL; one that begins with "never" cannot be told anything.
class ScriptedChannel final : public Channel {
public:
    Result<std::string> lane_of(const Target& target) const override {
        const std::string& url = std::get<jobs::Webhook>(target).url;
        if (url.starts_with("never")) {
            return fail(Code::invalid_argument, "nobody lives there");
        }
        return url;
    }
    RetryWish retry_wish(const Target&) const override { return {}; }
    Task<Outcome> deliver(Message message) override {
        Outcome outcome{.kind = Outcome::Kind::delivered};
        if (!outcomes.empty()) {
            outcome = std::move(outcomes.front());
            outcomes.pop_front();
        }
        messages.push_back(std::move(message));
        ++begun;
        if (gate) {
            co_await gate->wait();
        }
        co_return outcome;
    }
    void close() override { is_closed = true; }

    std::deque<Outcome> outcomes;
    std::vector<Message> messages;
    std::atomic<int> begun{0};     // any thread
    std::shared_ptr<Signal> gate;  // whoever is sent waits for it
    bool is_closed = false;
};

Task<> open_gate(std::shared_ptr<Signal>& gate) {
    const auto opened = std::exchange(gate, nullptr);
    opened->notify();
    co_return;
}

Task<> stop_at_due(test::MemoryLedger& ledger, Executor executor) {
    ledger.before_due = std::make_shared<Signal>(executor);
    co_return;
}

class NotifierTest : public test::WebhooksTest {
protected:
    NotifierTest() { make(); }
    void make() {
        webhooks_ = std::make_unique<Notifier>(
            loop_.executor(),
            clock_,
            ledger_,
            ledger_,
            Channels{channel_, channel_, channel_, channel_},
            options_
        );
    }

    void begin_to_tell() { loop_.run(test::start_on_executor(*webhooks_)); }

    // Only while nothing is sent: the channel belongs to the notifier's executor.
    std::shared_ptr<ScriptedChannel> channel_ = std::make_shared<ScriptedChannel>();
};

TEST_F(NotifierTest, TheChannelGetsTheEventAndTheJobAsItWasThen) {
    const jobs::Job job = complete(begin(accept("here", {"execution.started"})));
    begin_to_tell();
    ledger_.wait_for(1);
    loop_.run(webhooks_->stop());
    ASSERT_EQ(channel_->messages.size(), 1U);
    const Message& message = channel_->messages[0];
    EXPECT_EQ(message.job.id, job.id);
    EXPECT_EQ(message.job.state, jobs::State::running);
    EXPECT_EQ(message.event.type, jobs::EventType::started);
    EXPECT_EQ(std::get<jobs::Webhook>(message.to).url, "here");
    EXPECT_TRUE(channel_->is_closed);
}

TEST_F(NotifierTest, TheReceiversWishToWaitIsHeard) {
    channel_->outcomes.push_back(
        {.kind = Outcome::Kind::retry, .error = "later", .retry_after = std::chrono::minutes(7)}
    );
    completed_job("here");
    begin_to_tell();
    const auto writes = ledger_.wait_for(1);
    EXPECT_EQ(writes[0].kind, "retry");
    EXPECT_EQ(writes[0].at, clock_.now() + std::chrono::minutes(7));
    EXPECT_EQ(writes[0].error, "later");
}

TEST_F(NotifierTest, WhatTheChannelGivesUpIsGivenUp) {
    channel_->outcomes.push_back({.kind = Outcome::Kind::give_up, .error = "gone"});
    completed_job("here");
    begin_to_tell();
    const auto writes = ledger_.wait_for(1);
    EXPECT_EQ(writes[0].kind, "give_up");
    EXPECT_EQ(writes[0].error, "gone");
    EXPECT_EQ(final_counters().dead, 1U);
}

TEST_F(NotifierTest, ATargetThatCanNeverBeToldIsGivenUpUnsent) {
    completed_job("never");
    completed_job("here");
    begin_to_tell();
    std::map<std::string, std::string> kinds;
    for (const auto& write : ledger_.wait_for(2)) {
        kinds[write.kind] = write.error;
    }
    EXPECT_EQ(kinds.at("give_up"), "nobody lives there");
    EXPECT_TRUE(kinds.contains("delivered"));
    loop_.run(webhooks_->stop());
    EXPECT_EQ(channel_->messages.size(), 1U);
}

TEST_F(NotifierTest, AttemptsAreLogged) {
    channel_->outcomes.push_back({.kind = Outcome::Kind::retry, .error = "HTTP 503", .status = 503}
    );
    completed_job("here");
    begin_to_tell();
    const AttemptLog log = ledger_.wait_for(1)[0].delivery.log;
    ASSERT_EQ(log.size(), 1U);
    EXPECT_EQ(log[0].at, clock_.now());
    EXPECT_EQ(log[0].status, 503);
    EXPECT_EQ(log[0].error, "HTTP 503");
    AttemptLog longer(25, log[0]);
    longer.back().error = std::string(1'000, 'x');
    const AttemptLog kept = decode_log(encode_log(longer));
    EXPECT_EQ(kept.size(), kAttemptLogMax);
    EXPECT_LT(kept.back().error.size(), 1'000U);
    EXPECT_TRUE(decode_log("no JSON").empty());
}

TEST_F(NotifierTest, AReceiverThatFailsInARowIsLeftAloneAndNobodyElseIs) {
    options_.failures_before_rest = 3;
    options_.in_flight_per_lane_max = 1;
    make();
    for (int i = 0; i < 3; ++i) {
        channel_->outcomes.push_back({.kind = Outcome::Kind::retry, .error = "down"});
    }
    for (int i = 0; i < 6; ++i) {
        completed_job("dead");
    }
    begin_to_tell();
    ledger_.wait_for(3);
    completed_job("alive");
    webhooks_->wake();
    ledger_.wait_for(4);
    loop_.run(webhooks_->stop());
    std::map<std::string, int> told;
    for (const Message& message : channel_->messages) {
        ++told[std::get<jobs::Webhook>(message.to).url];
    }
    EXPECT_EQ(told["alive"], 1);
    EXPECT_EQ(told["dead"], 3) << "the others wait for better times";
}

TEST_F(NotifierTest, WhatIsHandedOutWhileProgressIsSentFollowsAtOnce) {
    ledger_.hands_out_once = true;
    channel_->gate = std::make_shared<Signal>(loop_.executor());
    begin_to_tell();
    const jobs::Job job = begin(accept("here", {"execution.completed"}));
    jobs::Event progress;
    progress.job = job.id;
    progress.sequence = job.sequence + 1;
    progress.type = jobs::EventType::progress;
    progress.at = clock_.now();
    jobs::Webhook webhook;
    webhook.url = "here";
    webhooks_->tell_progress(job, {std::string(kOwnWebhook), webhook}, progress);
    ASSERT_TRUE(wait_until([&] { return channel_->begun == 1; }));
    complete(job);
    const int reads = ledger_.reads();
    webhooks_->wake();
    ASSERT_TRUE(wait_until([&] { return ledger_.reads() > reads; }));
    loop_.run(open_gate(channel_->gate));
    const auto writes = ledger_.wait_for(1);
    ASSERT_EQ(writes.size(), 1U);
    EXPECT_EQ(writes[0].kind, "delivered");
}

TEST_F(NotifierTest, WhatIsHandedOutWhileTheOneBeforeItEndsFollowsAtOnce) {
    ledger_.hands_out_once = true;
    channel_->gate = std::make_shared<Signal>(loop_.executor());
    begin_to_tell();
    const jobs::Job job = begin(accept("here", {"execution.started", "execution.completed"}));
    webhooks_->wake();
    ASSERT_TRUE(wait_until([&] { return channel_->begun == 1; }));
    complete(job);
    loop_.run(stop_at_due(ledger_, loop_.executor()));
    const int reads = ledger_.reads();
    webhooks_->wake();
    ASSERT_TRUE(wait_until([&] { return ledger_.reads() > reads; }));
    loop_.run(open_gate(channel_->gate));
    ledger_.wait_for(1);
    loop_.run(open_gate(ledger_.before_due));
    const auto writes = ledger_.wait_for(2);
    ASSERT_EQ(writes.size(), 2U);
    EXPECT_EQ(writes[1].delivery.sequence, job.sequence + 1);
}

TEST_F(NotifierTest, AnAttemptThatWasCancelledIsNotWrittenDown) {
    channel_->outcomes.push_back({.kind = Outcome::Kind::cancelled});
    completed_job("here");
    begin_to_tell();
    ledger_.wait_for(1);  // of the second attempt
    loop_.run(webhooks_->stop());
    EXPECT_EQ(channel_->messages.size(), 2U);
    EXPECT_EQ(webhooks_->counters().failed_attempts, 0U);
}

}  // namespace
}  // namespace comfyd::notify
