#include "comfy/told_run.hpp"

#include <gtest/gtest.h>

namespace comfyd::comfy {
namespace {

json::value picture(const char* name) {
    return json::object{{"images", json::array{json::object{{"filename", name}}}}};
}

void run(ToldRun& told) {
    told.hear(ExecutionStart{"p", 1'000});
    told.hear(ExecutionCached{"p", {"1"}, 1'000});
    told.hear(Executed{"p", "9", "9", picture("a.png")});
    told.hear(Executed{"p", "1", "1", nullptr});
    told.hear(Executed{"p", "4.0", "4", picture("b.png")});
}

TEST(ToldRun, SaysWhatTheHistoryWouldSay) {
    ToldRun told;
    run(told);
    EXPECT_FALSE(told.take_success()) << "it runs";
    told.hear(ExecutionSuccess{"p", 1'250});
    const auto entry = told.take_success();
    ASSERT_TRUE(entry);
    EXPECT_TRUE(entry->success);
    EXPECT_EQ(entry->run_time, Millis(250));
    EXPECT_EQ(entry->outputs, (json::object{{"9", picture("a.png")}, {"4.0", picture("b.png")}}));
}

TEST(ToldRun, OfWhatWasNotHeardWholeItSaysNothing) {
    ToldRun late;
    late.hear(Executed{"p", "9", "9", picture("a.png")});
    late.hear(ExecutionSuccess{"p", 1});
    EXPECT_FALSE(late.take_success());
    ToldRun torn;
    run(torn);
    torn.miss();
    torn.hear(ExecutionStart{"p", 1});
    torn.hear(ExecutionSuccess{"p", 2});
    EXPECT_FALSE(torn.take_success());
}

TEST(ToldRun, OfOtherEndsItSaysNothing) {
    ToldRun failed;
    run(failed);
    failed.hear(ExecutionError());
    failed.hear(ExecutionSuccess{"p", 2});
    EXPECT_FALSE(failed.take_success()) << "a prompt that grew a cycle says both";
    ToldRun stopped;
    run(stopped);
    stopped.hear(ExecutionInterrupted());
    EXPECT_FALSE(stopped.take_success());
}

TEST(ToldRun, ClocksThatGoBackAndServersWithoutOnesTellNoTime) {
    for (const auto& [start, end] : {std::pair(0, 0), std::pair(5, 4), std::pair(0, 7)}) {
        ToldRun told;
        told.hear(ExecutionStart{"p", start});
        told.hear(ExecutionSuccess{"p", end});
        EXPECT_EQ(told.take_success()->run_time, std::nullopt);
    }
}

TEST(ToldRun, AWorkerThatTellsOfNodesForEverIsNotKept) {
    ToldRun told;
    told.hear(ExecutionStart{"p", 1});
    for (int node = 0; node < 1'000; ++node) {
        told.hear(Executed{"p", std::to_string(node), "", picture("a.png")});
    }
    told.hear(ExecutionSuccess{"p", 2});
    EXPECT_FALSE(told.take_success());
}

}  // namespace
}  // namespace comfyd::comfy
