#include "notify/story.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace comfyd::notify {
namespace {

std::string fact(const Story& story, std::string_view name) {
    for (const auto& [known, value] : story.facts) {
        if (known == name) {
            return value;
        }
    }
    return "(none)";
}

jobs::Change made(const std::string& workflow_id = "portraits") {
    jobs::Spec spec;
    spec.dialect = "test";
    spec.tenant = "acme";
    spec.workflow_id = workflow_id;
    const Time now = from_unix_ms(1'700'000'000'000);
    return jobs::make_job(JobId::make(now), spec, now);
}

TEST(Story, OfAFailureSaysWhatAndWhereAndWhatToDo) {
    const jobs::Change accepted = made();
    const Time start = accepted.event.at + Millis(1000);
    const auto running = jobs::start(accepted.job, "gpu-1", 2, start);
    jobs::Failure failure;
    failure.code = Code::out_of_memory;
    failure.message = "CUDA out of memory";
    failure.node_id = "3";
    failure.class_type = "KSampler";
    const auto failed = jobs::fail_job(running->job, failure, 3, start + Millis(125'400));
    const Story story = tell(failed->job, failed->event);
    EXPECT_EQ(story.title, "Job failed: portraits");
    EXPECT_EQ(fact(story, "Job"), accepted.job.id.to_string());
    EXPECT_EQ(fact(story, "Tenant"), "acme");
    EXPECT_EQ(fact(story, "Reason"), "CUDA out of memory");
    EXPECT_EQ(fact(story, "Error code"), "out_of_memory");
    EXPECT_EQ(fact(story, "Node"), "3 (KSampler)");
    EXPECT_EQ(fact(story, "Ran for"), "2 min 5 s");
    EXPECT_EQ(fact(story, "When"), "2023-11-14 22:15:26 UTC");
    EXPECT_NE(fact(story, "What to do"), "(none)");
}

TEST(Story, LongReasonsAreCutBetweenCharacters) {
    const jobs::Change accepted = made("");
    for (std::size_t length = 590; length < 610; ++length) {
        jobs::Failure failure;
        failure.message = std::string(length, 'x') + "äöü€😀äöü€😀";
        const auto failed = jobs::fail_job(accepted.job, failure, 2, accepted.event.at + Millis(1));
        if (!failed) {
            continue;  // a queued job may not fail so
        }
        const std::string reason = fact(tell(failed->job, failed->event), "Reason");
        EXPECT_LE(reason.size(), 610U);
        EXPECT_TRUE(reason.ends_with("…") || reason.size() <= 600);
    }
    EXPECT_EQ(tell(accepted.job, accepted.event).title, "Job queued");
}

TEST(Story, TellsWarnings) {
    jobs::Change accepted = made();
    jobs::Spec spec;
    spec.warnings = {"seed was left out", json::object{{"field", "x"}}};
    const auto warning = jobs::warn(accepted, spec);
    ASSERT_TRUE(warning);
    const Story story = tell(accepted.job, *warning);
    EXPECT_EQ(fact(story, "Warning"), "seed was left out");
}

TEST(Story, OnlySoManyLinks) {
    const jobs::Change accepted = made();
    std::vector<Link> links(500, {"a.png", "https://example.com/a"});
    EXPECT_EQ(tell(accepted.job, accepted.event, links).links.size(), 20U);
}

TEST(Story, Durations) {
    EXPECT_EQ(show_duration(Millis(0)), "0 ms");
    EXPECT_EQ(show_duration(Millis(999)), "999 ms");
    EXPECT_EQ(show_duration(Millis(12'340)), "12.3 s");
    EXPECT_EQ(show_duration(Millis(59'999)), "59.9 s");
    EXPECT_EQ(show_duration(Millis(3'600'000 + 240'000)), "1 h 4 min");
}

}  // namespace
}  // namespace comfyd::notify
