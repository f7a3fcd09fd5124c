// A fleet that acts for the leader of a domain: what it sends while it may, and what it finds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "comfy/members.hpp"
#include "fleet/test_support.hpp"

namespace comfyd::fleet {
namespace {

class LedFleet : public FleetTest {
protected:
    LedFleet() {
        options_.mandate = [this] { return mandate(); };
        lead(3);
    }
    void lead(std::uint64_t epoch, Millis quiet_in = Millis(0)) {
        auto mandate = std::make_shared<Mandate>();
        mandate->domain = "main";
        mandate->epoch = epoch;
        mandate->may_send = [this] { return trusts_.load(); };
        mandate->refused = [this] { refusals_ += 1; };
        mandate->quiet_at = std::chrono::steady_clock::now() + quiet_in;
        set(std::move(mandate));
    }
    void set(MandatePtr mandate) {
        const std::lock_guard lock(mutex_);
        mandate_ = std::move(mandate);
    }
    MandatePtr mandate() {
        const std::lock_guard lock(mutex_);
        return mandate_;
    }
    // Another node leads, as the worker hears it.
    void be_overtaken(std::uint64_t epoch) {
        const auto announced = wait(tell(*http_on_core_, epoch));
        ASSERT_TRUE(announced && *announced);
    }
    void start_with_fence() {
        start({.batch_pack = true});
        on_core([&] {
            http_on_core_ = std::make_unique<net::Client>(core_.executor(), net::ClientOptions{});
        });
    }
    void TearDown() override {
        on_core([&] { http_on_core_.reset(); });
    }
    std::string lead_of_last_prompt() {
        const auto prompts = comfy_->accepted_prompts();
        const json::object* extra =
            prompts.empty() ? nullptr : comfy::object_of(prompts.back(), "extra_data");
        const json::object* lead =
            extra == nullptr ? nullptr : comfy::object_of(*extra, comfy::kLeadKey);
        return lead == nullptr ? "" : json::serialize(*lead);
    }

    std::mutex mutex_;
    MandatePtr mandate_;
    std::atomic<bool> trusts_{true};
    std::atomic<int> refusals_{0};

private:
    Task<Result<bool>> tell(net::Client& http, std::uint64_t epoch) {
        comfy::Client other(http, pool_, comfy_->url(), {});
        auto known = co_await other.announce({"main", epoch});
        co_return known;
    }

    std::unique_ptr<net::Client> http_on_core_;
};

TEST_F(LedFleet, PromptsSayUnderWhoseLeadTheyAreSent) {
    start();
    auto job = assignment(kPicture);
    job.extra_data[comfy::kLeadKey] = "a client's";
    ASSERT_TRUE(run(job));
    EXPECT_EQ(lead_of_last_prompt(), R"({"domain":"main","epoch":3})");
}

TEST_F(LedFleet, WithoutTrustNothingIsSent) {
    start();
    trusts_ = false;
    auto job = assignment(kPicture);
    const auto result = run(job);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::lead_lost);
    EXPECT_EQ(comfy_->executions().total, 0U);
    const auto freed = wait(on_core([&] { return fleet_->find("gpu"); })->free_memory(true, true));
    ASSERT_FALSE(freed);
    EXPECT_EQ(freed.error().code, Code::lead_lost);
}

TEST_F(LedFleet, WithoutAMandateNothingIsSent) {
    start();
    set(nullptr);
    const auto result = run(assignment(kPicture));
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::lead_lost);
}

TEST_F(LedFleet, WithoutTrustAPromptIsNotTakenBack) {
    start();
    auto job = assignment(picture_with("slow=200"));
    auto made = begin(job);
    ASSERT_TRUE(support::wait_until([&] { return executions(job.prompt) == 1; }));
    trusts_ = false;
    stop(*made, Code::cancelled);
    const auto result = end(*made);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::lead_lost) << "nothing is concluded";
    EXPECT_EQ(comfy_->queue_remaining(), 1U);
}

TEST_F(LedFleet, TheEndOfTheLeadLeavesThePrompt) {
    start();
    auto job = assignment(picture_with("slow=200"));
    auto made = begin(job);
    ASSERT_TRUE(support::wait_until([&] { return executions(job.prompt) == 1; }));
    stop(*made, Code::lead_lost);
    EXPECT_EQ(end(*made).error().code, Code::lead_lost);
    EXPECT_EQ(comfy_->queue_remaining(), 1U);
    lead(4);
    job.reattach = true;
    ASSERT_TRUE(run(job));
    EXPECT_EQ(executions(job.prompt), 1U);
}

TEST_F(LedFleet, AnAbsentPromptIsSentAgainWhenNobodyElseCan) {
    start();
    lead(4, Millis(700));
    const auto quiet_at = mandate()->quiet_at;
    auto job = assignment(kPicture);
    job.reattach = true;
    auto made = begin(job);
    // A new job does not wait.
    ASSERT_TRUE(run(assignment(kPicture)));
    ASSERT_TRUE(end(*made));
    EXPECT_GE(std::chrono::steady_clock::now(), quiet_at);
    EXPECT_EQ(executions(job.prompt), 1U);
}

TEST_F(LedFleet, BehindAFenceAnAbsentPromptIsSentAtOnce) {
    start_with_fence();
    lead(4, std::chrono::hours(1));
    auto job = assignment(kPicture);
    job.reattach = true;
    ASSERT_TRUE(run(job));
    EXPECT_EQ(executions(job.prompt), 1U);
}

TEST_F(LedFleet, AFenceThatKnowsAHigherEpochEndsTheLead) {
    start_with_fence();
    be_overtaken(5);
    auto job = assignment(kPicture);
    auto result = run(job);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::lead_lost);
    EXPECT_EQ(refusals_, 1);
    lead(4, std::chrono::hours(1));
    job.reattach = true;
    result = run(job);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::lead_lost);
    EXPECT_EQ(refusals_, 2);
    EXPECT_EQ(comfy_->executions().total, 0U);
}

TEST_F(LedFleet, APromptThatAFenceKnowsIsFollowed) {
    start_with_fence();
    auto job = assignment(picture_with("slow=50"));
    auto first = begin(job);
    ASSERT_TRUE(support::wait_until([&] { return executions(job.prompt) == 1; }));
    stop(*first, Code::lead_lost);
    end(*first);
    lead(4);
    const auto result = run(job);  // as if it were new
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->outputs.size(), 1U);
    EXPECT_EQ(executions(job.prompt), 1U);
}

TEST_F(LedFleet, AWorkerThatComesUpHearsWhoLeads) {
    make_fleet({.batch_pack = true});
    on_core([&] { fleet_->start(); });
    ASSERT_TRUE(wait_for_status(jobs::WorkerStatus::idle));
    lead(2);
    const auto result = run(assignment(kPicture));
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::lead_lost);
}

}  // namespace
}  // namespace comfyd::fleet
