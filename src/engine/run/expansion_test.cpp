// Nodes that stop those behind them, nodes that add others to the run, and asynchronous ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/nodes/test_nodes.hpp"

namespace comfyd::engine {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Result<NodeResult> number(Call& call) {
    return NodeResult{.outputs = {call.integer("n")}};
}
Result<NodeResult> show(Call& call) {
    json::array text{std::to_string(call.integer("value"))};
    return NodeResult{.ui = json::object{{"text", std::move(text)}}};
}
// Stops odd numbers.
Result<NodeResult> block_odd(Call& call) {
    const std::int64_t n = call.integer("n");
    if (n % 2 == 0) {
        return NodeResult{.outputs = {n}};
    }
    return NodeResult{.outputs = {Blocker{"odd: " + std::to_string(n)}}};
}
// 1 + 2 + ... + n: adds itself for n - 1.
Result<NodeResult> sum_up(Call& call) {
    const std::int64_t n = call.integer("n");
    if (n <= 0) {
        return NodeResult{.outputs = {std::int64_t{0}}};
    }
    Expansion expansion;
    const std::size_t rest = expansion.add({"SumUp", {{"n", Value(n - 1)}}});
    const std::size_t sum = expansion.add({"Add", {{"a", Value(n)}, {"b", AddedLink{rest, 0}}}});
    expansion.outputs = {AddedLink{sum, 0}};
    return NodeResult{.expansion = std::move(expansion)};
}
// Shows the number beside what it hands on.
Result<NodeResult> show_beside(Call& call) {
    Expansion expansion;
    expansion.add({"Show", {{"value", call.value("n")}}});
    expansion.outputs = {call.value("n")};
    return NodeResult{.expansion = std::move(expansion)};
}
// Adds what cannot be added.
Result<NodeResult> add_nonsense(Call& call) {
    Expansion expansion;
    switch (call.integer("n")) {
        case 0:
            expansion.add({"NoSuchClass", {}});
            break;
        case 1:
            expansion.add({"Add", {{"a", AddedLink{1, 0}}, {"b", Value(std::int64_t{1})}}});
            break;
        case 2:
            expansion.add({"Number", {{"n", Value(std::string("text"))}}});
            break;
        case 3:
            expansion.add({"Number", {}});
            break;
        default:
            expansion.nodes.resize(kAddedNodesMax + 1, {"Number", {}});
    }
    expansion.outputs = {AddedLink{0, call.integer("n") == 3 ? 1U : 0U}};
    return NodeResult{.expansion = std::move(expansion)};
}

Result<NodeResult> fail_always(Call& /*call*/) {
    return node_error("ValueError", "broken");
}

Registry test_registry() {
    Registry registry = make_registry();
    add_test_nodes(registry, "INT");
    const json::object n{{"n", type("INT")}};
    const json::object output{{"output_node", true}};
    registry.add({.name = "Number", .execute = &number}, info(n, {"INT"}));
    registry.add({.name = "Async", .execute = &number, .is_async = true}, info(n, {"INT"}));
    registry.add({.name = "Show", .execute = &show}, info({{"value", type("INT")}}, {}, output));
    registry.add({.name = "BlockOdd", .execute = &block_odd}, info(n, {"INT"}));
    registry.add({.name = "SumUp", .execute = &sum_up}, info(n, {"INT"}));
    registry.add({.name = "ShowBeside", .execute = &show_beside}, info(n, {"INT"}));
    registry.add(
        {.name = "Fails", .execute = &fail_always},
        info({{"n", type("INT")}, {"image", type("IMAGE")}}, {}, output)
    );
    registry.add({.name = "Nonsense", .execute = &add_nonsense}, info(n, {"INT"}));
    return registry;
}

class Growing : public ::testing::Test {
protected:
    Result<RunResult> run(std::string_view prompt) {
        recorder = Recorder();
        return core.run(parse_object(prompt), {}, recorder, {});
    }
    static std::string texts(const Result<RunResult>& result, std::string_view node) {
        return result ? json::serialize(result->outputs.at(node).at("text"))
                      : result.error().message;
    }

    TestFolders folders;
    Core core{test_registry(), folders.options()};
    Recorder recorder;
};

TEST_F(Growing, ABlockedNodeDoesNotRunAndHandsTheBlockOn) {
    const auto result = run(R"({
        "1": {"class_type": "BlockOdd", "inputs": {"n": 3}},
        "2": {"class_type": "Add", "inputs": {"a": ["1", 0], "b": 1}},
        "3": {"class_type": "Show", "inputs": {"value": ["2", 0]}},
        "4": {"class_type": "Show", "inputs": {"value": 5}}})");
    EXPECT_EQ(texts(result, "4"), R"(["5"])");
    EXPECT_FALSE(result->outputs.contains("3"));
    EXPECT_THAT(
        recorder.told,
        ElementsAre(
            "executing 4",
            "executed 4",
            "finished 4",
            "executing 1",
            "finished 1",
            "executing 2",
            "blocked 2 odd: 3",
            "finished 2",
            "executing 3",
            "finished 3"
        )
    ) << "told where it stops the first node";
}

TEST_F(Growing, OnlyTheCallsWithABlockedElementAreLeftOut) {
    const auto result = run(R"({
        "1": {"class_type": "CountUp", "inputs": {"n": 4}},
        "2": {"class_type": "BlockOdd", "inputs": {"n": ["1", 0]}},
        "3": {"class_type": "Add", "inputs": {"a": ["2", 0], "b": 10}},
        "4": {"class_type": "Show", "inputs": {"value": ["3", 0]}}})");
    EXPECT_EQ(texts(result, "4"), R"(["10","12"])");
}

TEST_F(Growing, ABlockedChoiceAsksForNothing) {
    const auto result = run(R"({
        "1": {"class_type": "BlockOdd", "inputs": {"n": 1}},
        "2": {"class_type": "Choose", "inputs": {"second": true, "a": 1, "b": ["1", 0]}},
        "3": {"class_type": "Show", "inputs": {"value": ["2", 0]}}})");
    ASSERT_TRUE(result);
    EXPECT_THAT(recorder.executed_ids, IsEmpty());
    EXPECT_THAT(recorder.executing_ids, ElementsAre("2", "1", "2", "3"));
}

TEST_F(Growing, AnAddedGraphGivesTheOutputs) {
    const char* const prompt = R"({
        "1": {"class_type": "SumUp", "inputs": {"n": 2}},
        "2": {"class_type": "Show", "inputs": {"value": ["1", 0]}}})";
    const auto result = run(prompt);
    EXPECT_EQ(texts(result, "2"), R"(["3"])");
    EXPECT_THAT(
        recorder.told,
        ElementsAre(
            "executing 1",
            "added 1.0.0.1 to 1",
            "added 1.0.0.2 to 1",
            "executing 1.0.0.1",
            "added 1.0.0.1.0.0.1 to 1.0.0.1",
            "added 1.0.0.1.0.0.2 to 1.0.0.1",
            "executing 1.0.0.1.0.0.1",
            "finished 1.0.0.1.0.0.1",
            "executing 1.0.0.1.0.0.2",
            "finished 1.0.0.1.0.0.2",
            "finished 1.0.0.1",
            "executing 1.0.0.2",
            "finished 1.0.0.2",
            "finished 1",
            "executing 2",
            "executed 2",
            "finished 2"
        )
    );
    EXPECT_EQ(texts(run(prompt), "2"), R"(["3"])");
    EXPECT_THAT(recorder.cached_ids, ElementsAre("1", "2")) << "the whole is kept, not its parts";
}

TEST_F(Growing, EachCallAddsItsOwn) {
    const auto result = run(R"({
        "1": {"class_type": "CountUp", "inputs": {"n": 5}},
        "2": {"class_type": "SumUp", "inputs": {"n": ["1", 0]}},
        "3": {"class_type": "Show", "inputs": {"value": ["2", 0]}}})");
    EXPECT_EQ(texts(result, "3"), R"(["0","1","3","6","10"])");
    EXPECT_THAT(recorder.told, ::testing::Contains("added 2.4.0.2 to 2"));
}

TEST_F(Growing, EqualNodesShareWhatOneOfThemAdded) {
    const auto result = run(R"({
        "1": {"class_type": "SumUp", "inputs": {"n": 4}},
        "2": {"class_type": "SumUp", "inputs": {"n": 4}},
        "3": {"class_type": "Add", "inputs": {"a": ["1", 0], "b": ["2", 0]}},
        "4": {"class_type": "Show", "inputs": {"value": ["3", 0]}}})");
    EXPECT_EQ(texts(result, "4"), R"(["20"])");
}

TEST_F(Growing, AddedOutputsAreShown) {
    const auto result = run(R"({
        "1": {"class_type": "ShowBeside", "inputs": {"n": 7}},
        "2": {"class_type": "Show", "inputs": {"value": ["1", 0]}}})");
    EXPECT_EQ(texts(result, "1.0.0.1"), R"(["7"])");
    EXPECT_EQ(texts(result, "2"), R"(["7"])");
}

TEST_F(Growing, WhatCannotBeAddedFailsTheNode) {
    for (const auto& [n, exception] : std::vector<std::pair<int, std::string>>{
             {0, "KeyError"},
             {1, "IndexError"},
             {2, "TypeError"},
             {3, "IndexError"},
             {4, "RuntimeError"}
         }) {
        const auto result =
            run(R"({"1": {"class_type": "Nonsense", "inputs": {"n": )" + std::to_string(n) +
                R"(}}, "2": {"class_type": "Show", "inputs": {"value": ["1", 0]}}})");
        ASSERT_FALSE(result) << n;
        EXPECT_EQ(result.error().details.at("node_id"), "1") << n;
        EXPECT_EQ(result.error().details.at("node_type"), "Nonsense") << n;
        EXPECT_EQ(result.error().details.at("exception_type"), json::value(exception)) << n;
    }
}

TEST_F(Growing, ARunThatNeverStopsAddingFails) {
    const auto result = run(R"({
        "1": {"class_type": "SumUp", "inputs": {"n": 1000000}},
        "2": {"class_type": "Show", "inputs": {"value": ["1", 0]}}})");
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().details.at("exception_type"), "RecursionError");
    EXPECT_EQ(result.error().details.at("node_id"), "1");
}

TEST_F(Growing, AsynchronousNodesBeginTogetherAndEndInTheOrderOfTheirBeginning) {
    for (int i = 0; i < 20; ++i) {
        const auto result = run(R"({
            "1": {"class_type": "Async", "inputs": {"n": 1}},
            "2": {"class_type": "Async", "inputs": {"n": 2}},
            "3": {"class_type": "Add", "inputs": {"a": ["1", 0], "b": ["2", 0]}},
            "4": {"class_type": "Show", "inputs": {"value": ["3", 0]}}})");
        EXPECT_EQ(texts(result, "4"), R"(["3"])");
        EXPECT_THAT(
            recorder.told,
            ElementsAre(
                "executing 2",
                "executing 1",
                "finished 2",
                "finished 1",
                "executing 3",
                "finished 3",
                "executing 4",
                "executed 4",
                "finished 4"
            )
        );
        core.free_memory();
    }
}

TEST_F(Growing, AFailureShowsWhatTheNodeWasGiven) {
    const auto result = run(R"({
        "1": {"class_type": "EmptyImage", "inputs": {"width": 1, "height": 1, "batch_size": 1, "color": 255}},
        "2": {"class_type": "Fails", "inputs": {"image": ["1", 0], "n": 4}}})");
    ASSERT_FALSE(result);
    EXPECT_EQ(
        json::serialize_canonical(result.error().details.at("current_inputs")),
        R"~({"image":["tensor([[[[0., 0., 1.]]]])"],"n":[4]})~"
    );
}

}  // namespace
}  // namespace comfyd::engine
