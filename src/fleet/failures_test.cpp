// How attempts fail, what is kept of them, and what becomes of the worker.
#include <gmock/gmock.h>

#include "fleet/test_support.hpp"
#include "jobs/cause.hpp"

namespace comfyd::fleet {
namespace {

using testing::HasSubstr;
using BreakerState = CircuitBreaker::State;

// Two savers; the second of them fails as it is told.
std::string two_pictures_with(const std::string& fault) {
    auto prompt = *json::parse_object(kPicture);
    json::value second = prompt.at("3");  // a copy: the object moves its members when it grows
    prompt["4"] = std::move(second);
    prompt.at("4").at("inputs").as_object()["filename_prefix"] = "second";
    prompt.at("2").at("inputs").as_object()["_fault"] = fault;
    return json::serialize(prompt);
}

class FailuresTest : public FleetTest {
protected:
    static std::string cause_in(const RunResult& result) {
        return result ? "none" : std::string(to_string(jobs::cause_of(result.error())));
    }
    void add_worker(const std::string& id) {
        others_.push_back(std::make_unique<support::ComfyDouble>(
            double_thread_.context(), support::DoubleOptions{}
        ));
        others_.back()->start();
        on_core([&] { EXPECT_TRUE(fleet_->add_comfyui({.id = id, .url = others_.back()->url()})); }
        );
    }
    std::vector<std::unique_ptr<support::ComfyDouble>> others_;
};

TEST_F(FailuresTest, OutputsThatWereFinishedBeforeAreKept) {
    start();
    for (const char* fault : {"node_error", "oom", "cuda_fault"}) {
        auto made = begin(assignment(two_pictures_with(fault)));
        EXPECT_FALSE(end(*made)) << fault;
        const auto kept = made->recorder.kept();
        ASSERT_TRUE(kept) << fault;
        ASSERT_EQ(kept->outputs.size(), 1U) << fault;
        EXPECT_EQ(kept->ui_outputs.size(), 1U);
        EXPECT_TRUE(kept->ui_outputs.contains(kept->outputs[0].node_id));
        EXPECT_FALSE(kept->outputs[0].hash.empty());
        EXPECT_EQ(made->recorder.outputs(), 1U);
    }
}

TEST_F(FailuresTest, WhatATooSlowRunHadFinishedIsKept) {
    start();
    auto job = assignment(two_pictures_with("hang_interruptible"));
    job.timeout = Millis(200);
    auto made = begin(std::move(job));
    const auto result = end(*made);
    EXPECT_EQ(result.error().code, Code::execution_timeout);
    EXPECT_EQ(cause_in(result), "timeout");
    ASSERT_TRUE(made->recorder.kept());
    EXPECT_EQ(made->recorder.kept()->outputs.size(), 1U);
}

TEST_F(FailuresTest, MemoryIsFreedAfterItRanOut) {
    start();
    const auto result = run(assignment(picture_with("oom")));
    EXPECT_EQ(result.error().code, Code::out_of_memory);
    EXPECT_TRUE(support::wait_until([&] { return comfy_->executions().frees == 1; }));
    EXPECT_TRUE(run(assignment(kPicture))) << "it goes on";
}

TEST_F(FailuresTest, AWorkerWithoutItsGpuGetsNothingUntilAPromptHasRunThere) {
    options_.probe_wait = Millis(100);
    start();
    const auto result = run(assignment(picture_with("cuda_fault")));
    EXPECT_EQ(result.error().code, Code::worker_lost);
    EXPECT_EQ(cause_in(result), "cuda_fault");
    EXPECT_THAT(result.error().message, HasSubstr("illegal memory access"));
    EXPECT_TRUE(wait_for_status(jobs::WorkerStatus::down));
    // Its HTTP answers, its queue has the prompt that shows it, and no other is added to that.
    EXPECT_TRUE(support::wait_until([&] {
        return worker_info().last_error.find("does not run") != std::string::npos;
    }));
    EXPECT_EQ(worker_info().breaker, BreakerState::open);
    EXPECT_EQ(comfy_->queue_remaining(), 1U);
    comfy_->crash();
    comfy_->start();
    EXPECT_TRUE(wait_for_status(jobs::WorkerStatus::idle)) << "started anew, it is trusted again";
    EXPECT_EQ(worker_info().breaker, BreakerState::closed);
    EXPECT_TRUE(run(assignment(kPicture)));
}

TEST_F(FailuresTest, ARunThatSaysNothingMoreHangs) {
    options_.silent_after = Millis(150);
    start();
    auto made = begin(assignment(two_pictures_with("hang_interruptible")));
    const auto result = end(*made);
    EXPECT_EQ(result.error().code, Code::worker_lost);
    EXPECT_EQ(cause_in(result), "hung");
    EXPECT_EQ(comfy_->queue_remaining(), 0U) << "interrupted";
    EXPECT_EQ(worker_info().status, jobs::WorkerStatus::idle);
    ASSERT_TRUE(made->recorder.kept());
    EXPECT_EQ(made->recorder.kept()->outputs.size(), 1U);
}

TEST_F(FailuresTest, OneThatCannotBeInterruptedTakesItsWorkerAlong) {
    options_.silent_after = Millis(150);
    options_.cancel_grace = Millis(100);
    start();
    const auto result = run(assignment(picture_with("hang")));
    EXPECT_EQ(cause_in(result), "hung");
    EXPECT_EQ(worker_info().status, jobs::WorkerStatus::down);
    EXPECT_THAT(worker_info().last_error, HasSubstr("does not stop"));
}

TEST_F(FailuresTest, ATimeoutThatCannotBeEnforcedIsAHang) {
    options_.cancel_grace = Millis(100);
    start();
    auto job = assignment(picture_with("hang"));
    job.timeout = Millis(50);
    const auto result = run(std::move(job));
    EXPECT_EQ(result.error().code, Code::execution_timeout);
    EXPECT_EQ(cause_in(result), "hung");
}

TEST_F(FailuresTest, AnInterruptByOthersIsToldFromALostWorker) {
    start();
    EXPECT_EQ(cause_in(run(assignment(picture_with("interrupted")))), "interrupted");
    EXPECT_EQ(cause_in(run(assignment(picture_with("lose_prompt")))), "worker_lost");
}

TEST_F(FailuresTest, AWorkerThatFailsTooOftenRestsWhileOthersAreLeft) {
    options_.breaker = {.failures = 3, .open_first = Millis(50), .open_max = Millis(100)};
    start();
    for (int i = 0; i < 4; ++i) {
        EXPECT_FALSE(run(assignment(picture_with("lose_prompt"))));
    }
    EXPECT_EQ(worker_info().breaker, BreakerState::closed) << "the only one of its pool";
    add_worker("other");
    for (int i = 0; i < 3; ++i) {
        EXPECT_FALSE(run(assignment(picture_with("lose_prompt"))));
    }
    // A small prompt of ours runs there before it gets others.
    EXPECT_TRUE(support::wait_until([&] {
        return std::ranges::any_of(comfy_->accepted_prompts(), [](const json::object& sent) {
            return sent.at("prompt").as_object().size() == 2;
        });
    }));
    EXPECT_TRUE(wait_for_status(jobs::WorkerStatus::idle));
    EXPECT_EQ(worker_info().breaker, BreakerState::closed);
}

TEST_F(FailuresTest, FaultsOfWorkflowsDoNotCountAgainstTheWorker) {
    options_.breaker = {.failures = 2, .open_first = Millis(50), .open_max = Millis(100)};
    start();
    add_worker("other");
    for (int i = 0; i < 5; ++i) {
        EXPECT_FALSE(run(assignment(picture_with("node_error"))));
    }
    EXPECT_EQ(worker_info().breaker, BreakerState::closed);
    EXPECT_EQ(comfy_->accepted_prompts().size(), 5U);
}

}  // namespace
}  // namespace comfyd::fleet
