#include "fleet/progress.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace comfyd::fleet {
namespace {

const char* const kThreeNodes =
    R"({"1":{"class_type":"EmptyImage"},"2":{"class_type":"ImageInvert"},"3":{"class_type":"SaveImage"}})";

ProgressTracker make_tracker(const char* prompt) {
    return ProgressTracker(*json::parse_object(prompt));
}

struct Replay {
    std::vector<jobs::Progress> snapshots;
    int nodes_total = 0;
};

// The first prompt of a recorded conversation, with the messages about it. `states`: false leaves
// out what workers before 0.3.45 do not send.
Replay replay(const std::string& conversation, bool states) {
    std::ifstream stream(COMFYD_TEST_DATA "/conversations/" + conversation);
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    const auto document = json::parse_object(text);
    std::optional<ProgressTracker> tracker;
    std::string prompt_id;
    Replay result;
    for (const json::value& event : document->at("events").as_array()) {
        const bool is_http = event.at("kind") == "http";
        if (!tracker && is_http && event.at("request") == "POST /prompt") {
            tracker.emplace(event.at("body").at("prompt").as_object());
            prompt_id = std::string(event.at("response").at("prompt_id").as_string());
            result.nodes_total = tracker->snapshot().nodes_total;
        }
        if (!tracker || event.at("kind") != "ws" || !event.as_object().contains("text")) {
            continue;
        }
        const auto message = comfy::decode_text(json::serialize(event.at("text")));
        if (!states && std::holds_alternative<comfy::ProgressState>(message)) {
            continue;
        }
        if (comfy::prompt_id_of(message) == prompt_id && tracker->apply(message)) {
            result.snapshots.push_back(tracker->snapshot());
        }
    }
    return result;
}

class Recorded : public testing::TestWithParam<std::tuple<const char*, bool>> {};

TEST_P(Recorded, NeverGoesBackAndStaysBelowOne) {
    const auto result = replay(std::get<0>(GetParam()), std::get<1>(GetParam()));
    ASSERT_FALSE(result.snapshots.empty());
    double value = 0;
    int done = 0;
    for (const auto& snapshot : result.snapshots) {
        EXPECT_GE(snapshot.value, value);
        EXPECT_LT(snapshot.value, 1);
        EXPECT_GE(snapshot.nodes_done, done);
        EXPECT_EQ(snapshot.nodes_total, result.nodes_total);
        EXPECT_TRUE(snapshot.current_node.empty() || !snapshot.current_node_class.empty())
            << snapshot.current_node;
        value = snapshot.value;
        done = snapshot.nodes_done;
    }
}

INSTANTIATE_TEST_SUITE_P(
    All,
    Recorded,
    testing::Combine(
        testing::Values(
            "01-simple-success.json",
            "02-cached-rerun.json",
            "03-partly-cached.json",
            "05-interrupt-running.json",
            "12-progress.json",
            "18-lazy-and-blocked.json",
            "19-node-expansion-loop.json"
        ),
        testing::Bool()
    )
);

TEST(Progress, EndsWithEveryNodeDone) {
    for (const bool states : {true, false}) {
        const auto last = replay("01-simple-success.json", states).snapshots.back();
        EXPECT_EQ(last.nodes_done, 3);
        EXPECT_EQ(last.nodes_total, 3);
        EXPECT_GT(last.value, 0.99);
        EXPECT_EQ(last.current_node_class, "SaveImage");
    }
}

TEST(Progress, CachedNodesAreDoneAndTakeNoTime) {
    auto tracker = make_tracker(kThreeNodes);
    EXPECT_TRUE(tracker.cached({"1", "77"}));
    EXPECT_EQ(tracker.snapshot().nodes_done, 1);
    EXPECT_EQ(tracker.snapshot().value, 0);
    EXPECT_FALSE(tracker.cached({"1"})) << "nothing new";
    tracker.finished("2");
    EXPECT_NEAR(tracker.snapshot().value, 1.0 / 2, 1e-9);
    tracker.cached({"3"});
    EXPECT_GT(tracker.snapshot().value, 0.99);
}

TEST(Progress, NodesCountByWhatTheyCost) {
    ProgressTracker tracker(*json::parse_object(kThreeNodes), {{"1", 1}, {"2", 8}, {"3", 1}});
    tracker.executing("1");
    tracker.executing("2");
    EXPECT_NEAR(tracker.snapshot().value, 0.1, 1e-9);
    tracker.stepped("2", 10, 20);
    EXPECT_NEAR(tracker.snapshot().value, 0.5, 1e-9);
    tracker.executing("3");
    EXPECT_NEAR(tracker.snapshot().value, 0.9, 1e-9);
    tracker.finished("3");
    EXPECT_LT(tracker.snapshot().value, 1);
}

TEST(Progress, AbsurdCostsAreContained) {
    ProgressTracker tracker(
        *json::parse_object(kThreeNodes), {{"1", -1}, {"2", std::nan("")}, {"x", 5}}
    );
    for (const char* node : {"1", "2", "3"}) {
        tracker.executing(node);
        tracker.finished(node);
        EXPECT_GE(tracker.snapshot().value, 0);
        EXPECT_LT(tracker.snapshot().value, 1);
    }
}

TEST(Progress, StepsCountWithinTheNode) {
    auto tracker = make_tracker(kThreeNodes);
    tracker.executing("1");
    tracker.finished("1");
    tracker.executing("2");
    EXPECT_TRUE(tracker.stepped("2", 5, 20));
    EXPECT_EQ(tracker.snapshot().step, 5);
    EXPECT_EQ(tracker.snapshot().steps, 20);
    EXPECT_EQ(tracker.snapshot().current_node, "2");
    EXPECT_EQ(tracker.snapshot().current_node_class, "ImageInvert");
    EXPECT_NEAR(tracker.snapshot().value, 1.25 / 3, 1e-9);
    EXPECT_FALSE(tracker.stepped("2", 5, 20)) << "a duplicate says nothing";
    tracker.executing("3");
    EXPECT_EQ(tracker.snapshot().steps, 0) << "steps belong to their node";
    EXPECT_EQ(tracker.snapshot().nodes_done, 2) << "the node before has finished";
}

TEST(Progress, AbsurdNumbersAreContained) {
    auto tracker = make_tracker(kThreeNodes);
    tracker.executing("1");
    for (const double value : {-1e308, 1e308, 0.0}) {
        for (const double max : {-5.0, 0.0, 1e308, 1e-308}) {
            tracker.stepped("1", value, max);
            EXPECT_GE(tracker.snapshot().value, 0);
            EXPECT_LT(tracker.snapshot().value, 1);
            EXPECT_GE(tracker.snapshot().step, 0);
        }
    }
}

TEST(Progress, AnEmptyWorkflowHasNone) {
    auto tracker = make_tracker("{}");
    tracker.executing("1");
    tracker.finished("1");
    EXPECT_EQ(tracker.snapshot().value, 0);
    EXPECT_EQ(tracker.snapshot().nodes_total, 0);
}

TEST(Progress, UnrelatedMessagesChangeNothing) {
    auto tracker = make_tracker(kThreeNodes);
    EXPECT_FALSE(tracker.apply(comfy::Status{3, ""}));
    EXPECT_FALSE(tracker.apply(comfy::Executing{"p", std::nullopt, ""}));
    EXPECT_FALSE(tracker.apply(comfy::Malformed{"x"}));
}

}  // namespace
}  // namespace comfyd::fleet
