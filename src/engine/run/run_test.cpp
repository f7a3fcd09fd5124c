// How a run goes through its graph: lists, lazy inputs, the cache, and the order in which it tells.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "engine/nodes/test_nodes.hpp"

namespace comfyd::engine {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Result<NodeResult> sum(Call& call) {
    std::int64_t total = 0;
    for (const Value& value : call.list("values")) {
        total += std::get<std::int64_t>(value);
    }
    return NodeResult{.outputs = {total}};
}
// Shows what it gets and names itself in the text.
Result<NodeResult> show(Call& call) {
    const Value& value = call.value("value");
    std::string text(kind_of(value));
    if (const auto* number = std::get_if<std::int64_t>(&value)) {
        text = std::to_string(*number);
    } else if (const auto* large = std::get_if<std::uint64_t>(&value)) {
        text += " " + std::to_string(*large);
    } else if (const auto* data = std::get_if<Data>(&value)) {
        text = json::serialize(data->content());
    }
    return NodeResult{.ui = json::object{{"text", json::array{text}}}};
}
Result<NodeResult> join_all(Call& call) {
    std::string text;
    for (const Call::Grown& one : call.grown("parts")) {
        text +=
            std::string(one.name) + "=" + std::to_string(std::get<std::int64_t>(one.value)) + " ";
    }
    return NodeResult{.ui = json::object{{"text", json::array{text}}}};
}
Result<NodeResult> fail_always(Call& call) {
    return node_error("ValueError", "broken " + std::to_string(call.integer("n")));
}
Result<NodeResult> pass_on(Call& call) {
    return NodeResult{.outputs = {call.value("image")}};
}
Result<std::string> never_the_same(const json::object&, const Folders&) {
    return fail(Code::not_found, "no fingerprint");
}

// Speaks, then waits until the test lets it go.
struct Meeting {
    std::mutex mutex;
    std::condition_variable changed;
    int arrived = 0;
    bool over = false;
};
Meeting* meeting = nullptr;
Result<NodeResult> meet(Call& call) {
    const std::int64_t n = call.integer("n");
    call.show_text("hello " + std::to_string(n));
    call.preview(ImageFormat::png, "bytes " + std::to_string(n));
    std::unique_lock lock(meeting->mutex);
    ++meeting->arrived;
    meeting->changed.notify_all();
    meeting->changed.wait(lock, [&] { return meeting->over || call.stopped(); });
    return NodeResult{.outputs = {n}};
}

Registry test_registry() {
    Registry registry = make_registry();
    add_test_nodes(registry, "*");
    registry.add(
        {.name = "Sum", .execute = &sum},
        info({{"values", type("INT")}}, {"INT"}, {{"is_input_list", true}})
    );
    registry.add(
        {.name = "Show", .execute = &show},
        info({{"value", type("*")}}, {}, {{"output_node", true}})
    );
    registry.add(
        {.name = "Join", .execute = &join_all},
        info(
            {{"parts",
              json::array{
                  "COMFY_AUTOGROW_V3",
                  json::object{
                      {"template",
                       {{"input", {{"required", {{"part", type("INT")}}}}},
                        {"prefix", "part"},
                        {"min", 1},
                        {"max", 20}}}
                  }
              }}},
            {},
            {{"output_node", true}}
        )
    );
    registry.add({.name = "Fails", .execute = &fail_always}, info({{"n", type("INT")}}, {"INT"}));
    registry.add({.name = "Meet", .execute = &meet}, info({{"n", type("INT")}}, {"INT"}));
    registry.add(
        {.name = "TestCustomIsChanged", .execute = &pass_on, .fingerprint = &never_the_same},
        info({{"image", type("IMAGE")}}, {"IMAGE"})
    );
    return registry;
}

class Run : public ::testing::Test {
protected:
    Run() { meeting = &own_meeting; }

    Result<RunResult> run(std::string_view prompt, std::vector<std::string> outputs = {}) {
        return run(parse_object(prompt), std::move(outputs));
    }
    Result<RunResult> run(json::object prompt, std::vector<std::string> outputs = {}) {
        recorder = Recorder();
        return core.run(std::move(prompt), {}, recorder, {}, std::move(outputs));
    }
    static std::string texts(const Result<RunResult>& result, std::string_view node) {
        if (!result) {
            return result.error().message;
        }
        std::string all;
        for (const json::value& text : result->outputs.at(node).at("text").as_array()) {
            all += std::string(text.as_string()) + ";";
        }
        return all;
    }

    Meeting own_meeting;
    TestFolders folders;
    Core core{test_registry(), folders.options()};
    Recorder recorder;
};

TEST_F(Run, ClassesAreCalledForEachElementAndShorterListsRepeatTheirLast) {
    const auto result = run(R"({
        "1": {"class_type": "CountUp", "inputs": {"n": 3}},
        "2": {"class_type": "CountUp", "inputs": {"n": 2}},
        "3": {"class_type": "Add", "inputs": {"a": ["1", 0], "b": ["2", 0]}},
        "4": {"class_type": "Show", "inputs": {"value": ["3", 0]}},
        "5": {"class_type": "Sum", "inputs": {"values": ["3", 0]}},
        "6": {"class_type": "Show", "inputs": {"value": ["5", 0]}}})");
    EXPECT_EQ(texts(result, "4"), "0;2;3;");
    EXPECT_EQ(texts(result, "6"), "5;");
}

TEST_F(Run, ListsOfListsAreFlattened) {
    const auto result = run(R"({
        "1": {"class_type": "CountUp", "inputs": {"n": 4}},
        "2": {"class_type": "CountUp", "inputs": {"n": ["1", 0]}},
        "3": {"class_type": "Show", "inputs": {"value": ["2", 0]}}})");
    EXPECT_EQ(texts(result, "3"), "0;0;1;0;1;2;");
}

TEST_F(Run, EmptyListsReachOnlyClassesThatTakeLists) {
    const auto summed = run(R"({
        "1": {"class_type": "CountUp", "inputs": {"n": 0}},
        "2": {"class_type": "Sum", "inputs": {"values": ["1", 0]}},
        "3": {"class_type": "Show", "inputs": {"value": ["2", 0]}}})");
    EXPECT_EQ(texts(summed, "3"), "0;");
    const auto added = run(R"({
        "1": {"class_type": "CountUp", "inputs": {"n": 0}},
        "2": {"class_type": "Add", "inputs": {"a": ["1", 0], "b": 1}},
        "3": {"class_type": "Show", "inputs": {"value": ["2", 0]}}})");
    ASSERT_FALSE(added);
    EXPECT_EQ(added.error().details.at("node_id"), "2");
    EXPECT_EQ(added.error().details.at("exception_type"), "IndexError");
    const auto shown = run(R"({
        "1": {"class_type": "CountUp", "inputs": {"n": 0}},
        "3": {"class_type": "Show", "inputs": {"value": ["1", 0]}}})");
    ASSERT_FALSE(shown);
    EXPECT_EQ(shown.error().details.at("exception_type"), "TypeError");
}

TEST_F(Run, ConstantsOfAnyKindAreValues) {
    const auto show = [this](std::string_view value) {
        return texts(
            run(R"({"1": {"class_type": "Show", "inputs": {"value": )" + std::string(value) + "}}}"
            ),
            "1"
        );
    };
    EXPECT_EQ(show("7"), "7;");
    EXPECT_EQ(show("18446744073709551615"), "INT 18446744073709551615;");
    EXPECT_EQ(show("1.5"), "FLOAT;");
    EXPECT_EQ(show("null"), "None;");
    EXPECT_EQ(show("\"a\""), "STRING;");
    EXPECT_EQ(show(R"({"x": 1})"), R"({"x":1};)");
    EXPECT_EQ(show(R"({"__value__": [1, 2]})"), "[1,2];");
}

TEST_F(Run, GrownInputsKeepTheirOrder) {
    json::object inputs;
    for (int i = 11; i >= 0; --i) {
        inputs["parts.part" + std::to_string(i)] = i;
    }
    const auto result = run(json::object{{"1", {{"class_type", "Join"}, {"inputs", inputs}}}});
    EXPECT_THAT(texts(result, "1"), HasSubstr("part0=0 part1=1 part2=2"));
    EXPECT_THAT(texts(result, "1"), HasSubstr("part9=9 part10=10 part11=11"));
}

constexpr std::string_view kChoice = R"({
    "1": {"class_type": "CountUp", "inputs": {"n": 1}},
    "2": {"class_type": "Add", "inputs": {"a": 1, "b": 2}},
    "3": {"class_type": "Choose", "inputs": {"second": true, "a": ["1", 0], "b": ["2", 0]}},
    "4": {"class_type": "Show", "inputs": {"value": ["3", 0]}}})";

TEST_F(Run, OnlyTheNeededLazyInputRuns) {
    EXPECT_EQ(texts(run(kChoice), "4"), "3;");
    // As in ComfyUI the class is asked first, and told of again when it runs.
    EXPECT_THAT(
        recorder.told,
        ElementsAre(
            "executing 3",
            "executing 2",
            "finished 2",
            "executing 3",
            "finished 3",
            "executing 4",
            "executed 4",
            "finished 4"
        )
    );
    json::object other = parse_object(kChoice);
    other.at("3").at("inputs").as_object()["second"] = false;
    EXPECT_EQ(texts(run(other), "4"), "0;");
    EXPECT_THAT(recorder.cached_ids, ElementsAre("2"));
    EXPECT_THAT(recorder.executing_ids, ElementsAre("3", "1", "3", "4"));
}

TEST_F(Run, AListOfChoicesNeedsBothInputs) {
    const auto result = run(R"({
        "1": {"class_type": "CountUp", "inputs": {"n": 2}},
        "2": {"class_type": "Choose", "inputs": {"second": true, "a": ["1", 0], "b": ["3", 0]}},
        "3": {"class_type": "Choose", "inputs": {"second": false, "a": ["1", 0], "b": 5}},
        "4": {"class_type": "Show", "inputs": {"value": ["2", 0]}}})");
    EXPECT_EQ(texts(result, "4"), "0;1;");
}

TEST_F(Run, AFailureBelowALazyInputIsReported) {
    const auto result = run(R"({
        "1": {"class_type": "Fails", "inputs": {"n": 1}},
        "2": {"class_type": "Choose", "inputs": {"second": false, "a": ["1", 0], "b": 5}},
        "4": {"class_type": "Show", "inputs": {"value": ["2", 0]}}})");
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().details.at("node_id"), "1");
    EXPECT_EQ(result.error().details.at("exception_message"), "broken 1\n");
}

TEST_F(Run, FreedMemoryHoldsNoResults) {
    ASSERT_TRUE(run(kChoice));
    ASSERT_TRUE(run(kChoice));
    EXPECT_THAT(recorder.executing_ids, IsEmpty());
    core.free_memory();
    ASSERT_TRUE(run(kChoice));
    EXPECT_THAT(recorder.cached_ids, IsEmpty());
    EXPECT_EQ(recorder.executing_ids.size(), 4U);
}

TEST_F(Run, OnlyTheNamedOutputsRunAndTheOthersStayCached) {
    const std::string_view prompt = R"({
        "1": {"class_type": "Show", "inputs": {"value": 1}},
        "2": {"class_type": "Show", "inputs": {"value": 2}}})";
    ASSERT_TRUE(run(prompt));
    const auto one = run(prompt, {"2"});
    ASSERT_TRUE(one);
    EXPECT_EQ(one->outputs.size(), 1U);
    EXPECT_THAT(recorder.cached_ids, ElementsAre("1", "2"));
    EXPECT_THAT(recorder.executed_ids, ElementsAre("2"));
    ASSERT_TRUE(run(prompt));
    EXPECT_THAT(recorder.executing_ids, IsEmpty());
    const auto unknown = run(prompt, {"77"});
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().code, Code::invalid_workflow);
}

TEST_F(Run, TheFirstFailureInOrderCountsWhateverHappensFirst) {
    // 2 waits for the meeting to end, which is after 1 has failed, and yet 2's output comes first.
    std::thread opener([this] {
        std::unique_lock lock(own_meeting.mutex);
        own_meeting.changed.wait(lock, [this] { return own_meeting.arrived == 1; });
        own_meeting.over = true;
        own_meeting.changed.notify_all();
    });
    const auto result = run(R"({
        "2": {"class_type": "Meet", "inputs": {"n": 1}},
        "3": {"class_type": "Fails", "inputs": {"n": ["2", 0]}},
        "4": {"class_type": "Show", "inputs": {"value": ["3", 0]}},
        "5": {"class_type": "Fails", "inputs": {"n": 7}},
        "6": {"class_type": "Add", "inputs": {"a": ["5", 0], "b": 1}},
        "7": {"class_type": "Add", "inputs": {"a": ["6", 0], "b": 1}},
        "8": {"class_type": "Show", "inputs": {"value": ["7", 0]}}})");
    opener.join();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().details.at("node_id"), "3");
}

TEST_F(Run, WhatRunsAtTheSameTimeIsToldOneAfterTheOther) {
    std::thread opener([this] {
        std::unique_lock lock(own_meeting.mutex);
        own_meeting.changed.wait(lock, [this] { return own_meeting.arrived == 2; });
        own_meeting.over = true;
        own_meeting.changed.notify_all();
    });
    const auto result = run(R"({
        "1": {"class_type": "Meet", "inputs": {"n": 1}},
        "2": {"class_type": "Meet", "inputs": {"n": 2}},
        "3": {"class_type": "Show", "inputs": {"value": ["1", 0]}},
        "4": {"class_type": "Show", "inputs": {"value": ["2", 0]}}})");
    opener.join();
    ASSERT_TRUE(result);
    EXPECT_THAT(
        recorder.told,
        ElementsAre(
            "executing 1",
            "text 1 hello 1",
            "preview 1 bytes 1",
            "finished 1",
            "executing 3",
            "executed 3",
            "finished 3",
            "executing 2",
            "text 2 hello 2",
            "preview 2 bytes 2",
            "finished 2",
            "executing 4",
            "executed 4",
            "finished 4"
        )
    );
}

TEST_F(Run, AChainAsLongAsThePromptRuns) {
    json::object prompt{{"0", {{"class_type", "CountUp"}, {"inputs", {{"n", 1}}}}}};
    constexpr int kLength = 9'000;
    for (int i = 1; i <= kLength; ++i) {
        prompt[std::to_string(i)] = json::object{
            {"class_type", "Add"},
            {"inputs", {{"a", json::array{std::to_string(i - 1), 0}}, {"b", 1}}}
        };
    }
    prompt["out"] = json::object{
        {"class_type", "Show"}, {"inputs", {{"value", json::array{std::to_string(kLength), 0}}}}
    };
    EXPECT_EQ(texts(run(std::move(prompt)), "out"), "9000;");
}

TEST_F(Run, PicturesThatFitOnlyOneAtATimeStillRun) {
    EngineOptions options = folders.options();
    options.memory_bytes_max = 3UL * 256 * 256 * 3 * 4;
    Core small(test_registry(), options);
    json::object prompt;
    for (int i = 0; i < 6; ++i) {
        const std::string id = std::to_string(i);
        prompt["a" + id] = empty_image(256, i);
        prompt["b" + id] = json::object{
            {"class_type", "ImageInvert"}, {"inputs", {{"image", json::array{"a" + id, 0}}}}
        };
        prompt["c" + id] = save_image("b" + id, "x");
    }
    const auto result = small.run(prompt, {}, recorder, {});
    EXPECT_TRUE(result) << result.error().message;
}

std::vector<std::string> strings(const json::value& list) {
    std::vector<std::string> all;
    for (const json::value& item : list.as_array()) {
        all.emplace_back(item.as_string());
    }
    return all;
}

std::vector<std::string> recorded_steps() {
    const Registry registry = test_registry();
    std::vector<std::string> cases;
    for (const auto& entry : fs::directory_iterator(kGolden / "_caching")) {
        const json::object recorded = parse_object(slurp(entry.path()));
        bool known = true;
        for (const json::value& step : recorded.at("steps").as_array()) {
            for (const auto& [id, node] : step.at("prompt").as_object()) {
                const std::string name(node.at("class_type").as_string());
                known = known && registry.find(name) != nullptr;
            }
        }
        if (known) {
            cases.push_back(entry.path().stem().string());
        }
    }
    std::ranges::sort(cases);
    return cases;
}

class Caching : public Run, public ::testing::WithParamInterface<std::string> {};

TEST_P(Caching, ReusesAndTellsLikeComfyUi) {
    const json::object recorded =
        parse_object(slurp(kGolden / "_caching" / (GetParam() + ".json")));
    for (const json::value& step : recorded.at("steps").as_array()) {
        const auto result = run(step.at("prompt").as_object());
        ASSERT_TRUE(result) << result.error().message;
        EXPECT_EQ(recorder.cached_calls, 1);
        std::ranges::sort(recorder.cached_ids);
        EXPECT_EQ(recorder.cached_ids, strings(step.at("cached")));
        EXPECT_EQ(recorder.executing_ids, strings(step.at("executing")));
        EXPECT_EQ(recorder.executed_ids, strings(step.at("executed")));
        std::vector<std::string> outputs;
        for (const auto& [id, ui] : result->outputs) {
            outputs.emplace_back(id);
        }
        EXPECT_EQ(outputs, strings(step.at("history_outputs")));
    }
}

INSTANTIATE_TEST_SUITE_P(
    Recorded,
    Caching,
    ::testing::ValuesIn(recorded_steps()),
    [](const auto& param) { return param.param; }
);

}  // namespace
}  // namespace comfyd::engine
