#include "engine/engine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>
#include <stop_token>
#include <thread>

#include "engine/nodes/call.hpp"
#include "engine/nodes/schema.hpp"
#include "engine/test_support.hpp"

namespace comfyd::engine {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

json::object preview_image(const std::string& from) {
    return {{"class_type", "PreviewImage"}, {"inputs", {{"images", json::array{from, 0}}}}};
}
json::object invert(const std::string& from) {
    return {{"class_type", "ImageInvert"}, {"inputs", {{"image", json::array{from, 0}}}}};
}

class EngineTest : public ::testing::Test {
protected:
    Result<RunResult> run(json::object prompt, json::object extra_data = {}) {
        recorder = Recorder();
        return engine.run(std::move(prompt), std::move(extra_data), recorder, stop.get_token());
    }

    TestFolders folders;
    Engine engine{folders.options()};
    Recorder recorder;
    std::stop_source stop;
};

// Takes out what the instance itself puts in: texts and the names of its files.
json::object without_own(json::object info, const NodeClass& node) {
    info.stable_erase("description");
    for (const FileInput& file : node.files) {
        for (auto& [need, inputs] : info.at("input").as_object()) {
            if (json::value* pair = inputs.as_object().if_contains(file.input)) {
                json::value& first = pair->as_array().at(0);
                (first.is_array() ? first : pair->as_array().at(1).at("options")) = nullptr;
            }
        }
    }
    return info;
}

TEST_F(EngineTest, ObjectInfoCarriesComfyUisFacts) {
    const json::object facts =
        parse_object(slurp(fs::path(COMFYD_TEST_DATA) / "comfyui/object_info.facts.json"));
    const json::object info = engine.object_info();
    const Registry registry = make_registry();
    EXPECT_EQ(info.size(), registry.classes().size());
    for (const auto& [name, registered] : registry.classes()) {
        ASSERT_TRUE(info.contains(name) && facts.contains(name)) << name;
        EXPECT_TRUE(engine.has_class(name));
        EXPECT_FALSE(info.at(name).at("description").as_string().empty()) << name;
        EXPECT_EQ(
            json::serialize(without_own(info.at(name).as_object(), registered.node)),
            json::serialize(without_own(facts.at(name).as_object(), registered.node))
        );
    }
    EXPECT_FALSE(engine.has_class("KSampler"));
}

TEST_F(EngineTest, ObjectInfoOffersNoFilesThatAreNotThere) {
    for (const auto& [name, info] : engine.object_info()) {
        EXPECT_THAT(json::serialize(info), Not(HasSubstr("noise.png"))) << name;
    }
}

TEST_F(EngineTest, TheSchemaHoldsExactlyTheClassesThatRun) {
    std::vector<std::string> without_class;
    for (const auto& [name, info] : node_schema()) {
        if (!engine.has_class(std::string(name))) {
            without_class.emplace_back(name);
        }
    }
    EXPECT_THAT(without_class, IsEmpty());
}

TEST_F(EngineTest, FileChoicesAreThePicturesOfTheMoment) {
    folders.add_input("b.PNG", "");
    folders.add_input("a.jpg", "");
    folders.add_input("notes.txt", "");
    fs::create_directories(folders.folders().input / "folder.png");
    const json::object info = engine.object_info();
    EXPECT_EQ(
        info.at("LoadImage").at("input").at("required").at("image").at(0),
        (json::array{"a.jpg", "b.PNG"})
    );
}

TEST_F(EngineTest, CachedOutputNamesTheFileOfTheFirstRun) {
    const json::object prompt{{"1", empty_image(4)}, {"2", save_image("1", "again")}};
    const auto first = run(prompt);
    const auto second = run(prompt);
    ASSERT_TRUE(first && second);
    EXPECT_EQ(first->outputs, second->outputs);
    EXPECT_THAT(folders.output_names(), ElementsAre("again_00001_.png"));
}

TEST_F(EngineTest, ChangedFileIsLoadedAgain) {
    folders.add_input("x.png", slurp(kGolden / "inputs/one.png"));
    const json::object prompt{
        {"1", {{"class_type", "LoadImage"}, {"inputs", {{"image", "x.png"}}}}},
        {"2", preview_image("1")}
    };
    ASSERT_TRUE(run(prompt));
    ASSERT_TRUE(run(prompt));
    EXPECT_THAT(recorder.executing_ids, IsEmpty());
    folders.add_input("x.png", slurp(kGolden / "inputs/noise.png"));
    ASSERT_TRUE(run(prompt));
    EXPECT_THAT(recorder.executing_ids, ElementsAre("1", "2"));
}

TEST_F(EngineTest, EqualNodesRunOnceAndAllShowTheResult) {
    const auto result = run({
        {"1", empty_image(4)},
        {"2", empty_image(4)},
        {"3", save_image("1", "same")},
        {"4", save_image("2", "same")},
    });
    ASSERT_TRUE(result);
    EXPECT_THAT(recorder.executing_ids, ElementsAre("1", "3"));
    EXPECT_THAT(recorder.executed_ids, ElementsAre("3", "2", "4"));
    EXPECT_EQ(result->outputs.at("3"), result->outputs.at("4"));
    EXPECT_THAT(folders.output_names(), ElementsAre("same_00001_.png"));
}

TEST_F(EngineTest, OnlyWhatOutputsNeedRuns) {
    const auto result = run(
        {{"1", empty_image(4)}, {"2", invert("1")}, {"3", invert("2")}, {"4", preview_image("2")}}
    );
    ASSERT_TRUE(result);
    EXPECT_THAT(recorder.executing_ids, ElementsAre("1", "2", "4"));
}

TEST_F(EngineTest, PartlyValidPromptsRunTheirValidOutputs) {
    const auto result = run(
        {{"1", empty_image(4)},
         {"2", save_image("1", "good")},
         {"3", empty_image(0)},
         {"4", save_image("3", "bad")}}
    );
    ASSERT_TRUE(result);
    EXPECT_THAT(folders.output_names(), ElementsAre("good_00001_.png"));
}

TEST_F(EngineTest, RefusedPromptsCarryTheValidation) {
    const auto result = run({{"1", empty_image(0)}, {"2", save_image("1", "x")}});
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::invalid_workflow);
    EXPECT_EQ(result.error().details.at("error").at("type"), "prompt_outputs_failed_validation");
    EXPECT_TRUE(result.error().details.at("node_errors").as_object().contains("1"));
}

TEST_F(EngineTest, AnUnknownInputThatLinksNowhereDoesNoHarm) {
    json::object prompt{{"1", empty_image(4)}, {"2", save_image("1", "poison")}};
    prompt.at("1").at("inputs").as_object()["nonsense"] = json::array{"77", 0};
    EXPECT_TRUE(run(prompt));
}

TEST_F(EngineTest, AConstantForAPictureFailsInItsNode) {
    json::object prompt{{"2", save_image("1", "x")}};
    prompt.at("2").at("inputs").as_object()["images"] = "not a picture";
    const auto result = run(prompt);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::node_execution_error);
    const json::object& details = result.error().details;
    EXPECT_EQ(details.at("node_id"), "2");
    EXPECT_EQ(details.at("node_type"), "SaveImage");
    EXPECT_EQ(details.at("exception_type"), "TypeError");
    EXPECT_TRUE(details.at("exception_message").as_string().ends_with("\n"));
    EXPECT_TRUE(details.at("traceback").is_array());
}

TEST_F(EngineTest, FilesThatAreNoPicturesAreAClearNodeError) {
    for (const char* name : {"notes.png", "cut.jpg", "cut.gif", "empty.webp"}) {
        const std::string picture = name == std::string("cut.jpg")   ? "photo420.jpg"
                                    : name == std::string("cut.gif") ? "still.gif"
                                                                     : "";
        const std::string content =
            picture.empty() ? "some text" : slurp(kGolden / "inputs" / picture).substr(0, 12);
        folders.add_input(name, content);
        const auto result = run(
            {{"1", {{"class_type", "LoadImage"}, {"inputs", {{"image", name}}}}},
             {"2", preview_image("1")}}
        );
        ASSERT_FALSE(result);
        EXPECT_EQ(result.error().code, Code::node_execution_error);
        EXPECT_THAT(result.error().message, HasSubstr(name));
    }
}

TEST_F(EngineTest, FinishedNodesStayCachedAfterAFailure) {
    const json::object bad{
        {"1", empty_image(8)}, {"2", invert("1")}, {"3", save_image("2", "../out")}
    };
    ASSERT_FALSE(run(bad));
    ASSERT_TRUE(run({{"1", empty_image(8)}, {"2", invert("1")}, {"3", save_image("2", "in")}}));
    EXPECT_THAT(recorder.cached_ids, UnorderedElementsAre("1", "2"));
}

TEST_F(EngineTest, PicturesCarryGraphAndExtraTexts) {
    json::object prompt{{"1", empty_image(4)}, {"2", save_image("1", "texts")}};
    prompt.at("1").at("inputs").as_object()["width"] = "4";
    const auto result =
        run(prompt, {{"extra_pnginfo", {{"workflow", {{"na\x7fme", "\u00e9"}}}, {"n", 1.0}}}});
    ASSERT_TRUE(result);
    const Rgba picture = read_rgba(folders.folders().output / "texts_00001_.png");
    ASSERT_EQ(picture.texts.size(), 3U);
    prompt.at("1").at("inputs").as_object()["width"] = 4;
    EXPECT_EQ(picture.texts[0].first, "prompt");
    EXPECT_EQ(picture.texts[0].second, json::serialize_python(prompt));
    EXPECT_EQ(
        picture.texts[1],
        (std::pair<std::string, std::string>("workflow", R"({"na\u007fme": "\u00e9"})"))
    );
    EXPECT_EQ(picture.texts[2], (std::pair<std::string, std::string>("n", "1.0")));
}

TEST_F(EngineTest, BadTextNamesAreANodeErrorAndLeaveNoFile) {
    for (const char* name :
         {"",
          "\u4e16",
          " spaces ",
          "01234567890123456789012345678901234567890123456789012345678901234567890123456789"}) {
        const auto result =
            run({{"1", empty_image(4)}, {"2", save_image("1", "x")}},
                {{"extra_pnginfo", {{name, 1}}}});
        ASSERT_FALSE(result) << name;
        EXPECT_EQ(result.error().code, Code::node_execution_error);
    }
    EXPECT_THAT(folders.output_names(), IsEmpty());
}

TEST_F(EngineTest, BatchesReportProgressAndCountOn) {
    const auto result =
        run({{"1", empty_image(4, 0, 3)}, {"2", save_image("1", "b%batch_num%_%width%")}});
    ASSERT_TRUE(result);
    EXPECT_EQ(recorder.progress_texts.size(), 3U);
    EXPECT_THAT(
        folders.output_names(), ElementsAre("b0_4_00001_.png", "b1_4_00002_.png", "b2_4_00003_.png")
    );
}

TEST(EngineMemory, TooLargeAResultIsOutOfMemory) {
    const TestFolders folders;
    EngineOptions options = folders.options();
    options.memory_bytes_max = 64UL * 1024 * 1024;
    Engine engine(options);
    Recorder recorder;
    const auto result = engine.run(
        {{"1", empty_image(16384, 0, 4096)}, {"2", save_image("1", "x")}}, {}, recorder, {}
    );
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::out_of_memory);
    EXPECT_EQ(result.error().details.at("node_id"), "1");
    EXPECT_THAT(result.error().message, HasSubstr("memory limit"));
}

TEST(EngineMemory, CachedResultsGiveWay) {
    const TestFolders folders;
    EngineOptions options = folders.options();
    options.memory_bytes_max = 3UL * 256 * 256 * 3 * 4;  // three pictures, and six are made
    Core core(make_registry(), options);
    Recorder recorder;
    json::object prompt{{"0", empty_image(256)}};
    for (int i = 1; i <= 5; ++i) {
        prompt[std::to_string(i)] = invert(std::to_string(i - 1));
    }
    prompt["6"] = preview_image("5");
    const auto result = core.run(prompt, {}, recorder, {});
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_LE(core.memory().used(), options.memory_bytes_max);
    // Whatever was dropped, the same prompt again gives the same answer.
    const auto again = core.run(prompt, {}, recorder, {});
    ASSERT_TRUE(again);
    EXPECT_EQ(again->outputs, result->outputs);
}

// A node that waits until the test lets it go, or until it is stopped.
struct Gate {
    void open() {
        const std::lock_guard lock(mutex);
        is_open = true;
        changed.notify_all();
    }
    void wait_for_visitors(int count) {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return visitors >= count; });
    }
    std::mutex mutex;
    std::condition_variable changed;
    bool is_open = false;
    int visitors = 0;
};
Gate* gate = nullptr;

Result<NodeResult> wait_at_gate(Call& call) {
    {
        std::unique_lock lock(gate->mutex);
        ++gate->visitors;
        gate->changed.notify_all();
        gate->changed.wait(lock, [&] { return gate->is_open || call.stopped(); });
    }
    // A long node: rows are skipped once the run is stopped.
    std::atomic<std::size_t> rows = 0;
    auto done = call.for_rows(1000, 128 * 1024, [&](std::size_t first, std::size_t last) {
        rows += last - first;
    });
    if (!done) {
        EXPECT_LT(rows.load(), 1000U);
        return fail(done.error());
    }
    return NodeResult{.outputs = {call.image("image")}};
}

Result<NodeResult> throw_exception(Call& /*call*/) {
    throw std::runtime_error("broken on purpose");
}

void add_test_node(
    Registry& registry, const std::string& name, Result<NodeResult> (*execute)(Call& call)
) {
    registry.add(
        {.name = name, .execute = execute},
        {{"input",
          {{"required", {{"image", json::array{"IMAGE"}}}},
           {"optional", {{"tag", json::array{"INT", json::object()}}}}}},
         {"output", json::array{"IMAGE"}},
         {"output_is_list", json::array{false}},
         {"output_node", false}}
    );
}
json::object gated(const std::string& from, int tag = 0) {
    return {{"class_type", "Gated"}, {"inputs", {{"image", json::array{from, 0}}, {"tag", tag}}}};
}

class WithTestNodes : public ::testing::Test {
protected:
    WithTestNodes() : core(make_test_registry(), folders.options()) { gate = &own_gate; }
    static Registry make_test_registry() {
        Registry registry = make_registry();
        add_test_node(registry, "Gated", &wait_at_gate);
        add_test_node(registry, "Throws", &throw_exception);
        return registry;
    }

    Gate own_gate;
    TestFolders folders;
    Core core;
};

TEST_F(WithTestNodes, IndependentNodesRunAtTheSameTime) {
    Recorder recorder;
    std::thread opener([this] {
        own_gate.wait_for_visitors(2);  // would never come if they ran one after the other
        own_gate.open();
    });
    const auto result = core.run(
        {{"1", empty_image(4)},
         {"2", gated("1", 1)},
         {"3", gated("1", 2)},
         {"4", preview_image("2")},
         {"5", preview_image("3")}},
        {},
        recorder,
        {}
    );
    opener.join();
    EXPECT_TRUE(result);
}

TEST_F(WithTestNodes, AStopEndsALongNodeAndStartsNoOther) {
    Recorder recorder;
    std::stop_source stop;
    std::thread stopper([&] {
        own_gate.wait_for_visitors(1);
        stop.request_stop();
        own_gate.open();
    });
    const auto result = core.run(
        {{"1", empty_image(4)}, {"2", gated("1")}, {"3", save_image("2", "never")}},
        {},
        recorder,
        stop.get_token()
    );
    stopper.join();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::cancelled);
    EXPECT_THAT(recorder.executing_ids, ElementsAre("1", "2"));
    EXPECT_THAT(folders.output_names(), IsEmpty());
}

TEST_F(WithTestNodes, AStopBeforeTheStartRunsNothing) {
    Recorder recorder;
    std::stop_source stop;
    stop.request_stop();
    const auto result = core.run(
        {{"1", empty_image(4)}, {"3", save_image("1", "never")}}, {}, recorder, stop.get_token()
    );
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::cancelled);
    EXPECT_THAT(recorder.executing_ids, IsEmpty());
}

TEST_F(WithTestNodes, AnExceptionBecomesANodeErrorAndStopsTheRest) {
    Recorder recorder;
    json::object throws = gated("1");
    throws["class_type"] = "Throws";
    std::thread opener([this] {
        own_gate.wait_for_visitors(1);
        own_gate.open();
    });
    const auto result = core.run(
        {{"1", empty_image(4)},
         {"2", gated("1")},
         {"3", throws},
         {"4", preview_image("2")},
         {"5", preview_image("3")}},
        {},
        recorder,
        {}
    );
    own_gate.open();
    {
        // The failing node may have ended the run before the other one began.
        const std::lock_guard lock(own_gate.mutex);
        own_gate.visitors = 1;
        own_gate.changed.notify_all();
    }
    opener.join();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::node_execution_error);
    EXPECT_EQ(result.error().details.at("exception_type"), "RuntimeError");
    EXPECT_EQ(result.error().details.at("exception_message"), "broken on purpose\n");
    EXPECT_EQ(result.error().details.at("node_id"), "3");
}

TEST_F(WithTestNodes, RunsSideBySideNeverShareAFileName) {
    constexpr int kRuns = 4;
    constexpr int kBatch = 5;
    std::vector<std::thread> threads;
    std::mutex mutex;
    std::set<std::string> names;
    for (int i = 0; i < kRuns; ++i) {
        threads.emplace_back([&, i] {
            Recorder recorder;
            const auto result = core.run(
                {{"1", empty_image(8, i, kBatch)}, {"2", save_image("1", "shared/name")}},
                {},
                recorder,
                {}
            );
            ASSERT_TRUE(result) << result.error().message;
            const std::lock_guard lock(mutex);
            for (const json::value& image : result->outputs.at("2").at("images").as_array()) {
                names.emplace(image.at("filename").as_string());
                const Rgba picture = read_rgba(
                    folders.folders().output / "shared" /
                    std::string(image.at("filename").as_string())
                );
                ASSERT_EQ(picture.bytes.size(), 8U * 8 * 4);
                EXPECT_EQ(picture.bytes[2], i);
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(names.size(), std::size_t{kRuns * kBatch});
    EXPECT_EQ(folders.output_names().size(), std::size_t{kRuns * kBatch});
}

TEST_F(WithTestNodes, ARunKeepsItsResultsWhenAnotherBegins) {
    Recorder first_recorder;
    Result<RunResult> first = fail(Code::internal, "not run");
    std::thread runner([&] {
        first = core.run(
            {{"1", empty_image(8, 1)}, {"2", gated("1")}, {"3", save_image("2", "first")}},
            {},
            first_recorder,
            {}
        );
    });
    own_gate.wait_for_visitors(1);
    Recorder second_recorder;
    const auto second = core.run(
        {{"1", empty_image(8, 2)}, {"3", save_image("1", "second")}}, {}, second_recorder, {}
    );
    own_gate.open();
    runner.join();
    EXPECT_TRUE(first);
    EXPECT_TRUE(second);
    EXPECT_THAT(folders.output_names(), ElementsAre("first_00001_.png", "second_00001_.png"));
}

}  // namespace
}  // namespace comfyd::engine
