#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "comfy/client.hpp"

namespace comfyd::comfy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

json::value recorded_history(const std::string& conversation) {
    std::ifstream stream(COMFYD_TEST_DATA "/conversations/" + conversation);
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    const auto document = json::parse_object(text);
    for (const json::value& event : document->at("events").as_array()) {
        if (event.at("kind") == "http" &&
            event.at("request").as_string().starts_with("GET /history/")) {
            return event.at("response").as_object().begin()->value();
        }
    }
    return nullptr;
}

TEST(Answers, SystemStats) {
    const auto stats = read_system_stats(*json::parse(
        R"({"system":{"comfyui_version":"0.33.0","ram_total":90,"ram_free":30},"devices":[{"name":"cuda:0 NVIDIA H200 : cudaMallocAsync","vram_total":150,"vram_free":70,"torch_vram_total":50,"torch_vram_free":20}]})"
    ));
    ASSERT_TRUE(stats);
    EXPECT_EQ(stats->version, "0.33.0");
    EXPECT_EQ(stats->device, "NVIDIA H200");
    EXPECT_EQ(stats->vram_total, 150U);
    EXPECT_EQ(stats->vram_free, 70U);
    EXPECT_EQ(stats->torch_vram_total, 50U);
    EXPECT_EQ(stats->torch_vram_free, 20U);
    EXPECT_EQ(stats->ram_total, 90U);
    EXPECT_EQ(stats->ram_free, 30U);
    EXPECT_TRUE(read_system_stats(*json::parse(R"({"system":{},"devices":[]})")));
    EXPECT_EQ(read_system_stats(*json::parse("[]")).error().code, Code::protocol_error);
    EXPECT_EQ(
        read_system_stats(*json::parse(R"({"devices":7})")).error().code, Code::protocol_error
    );
}

TEST(Answers, Queue) {
    const auto queue = read_queue(*json::parse(
        R"({"queue_running":[[0,"a",{},{},[]]],"queue_pending":[[1,"b"],"odd",[2],[3,4],[5,"c",{}]]})"
    ));
    ASSERT_TRUE(queue);
    EXPECT_THAT(queue->running, ElementsAre("a"));
    EXPECT_THAT(queue->pending, ElementsAre("b", "c"));
    EXPECT_TRUE(queue->is_running("a"));
    EXPECT_FALSE(queue->is_running("b"));
    EXPECT_TRUE(queue->contains("c"));
    // Half an answer must not look like an empty queue.
    EXPECT_EQ(
        read_queue(*json::parse(R"({"queue_running":[]})")).error().code, Code::protocol_error
    );
    EXPECT_EQ(read_queue(*json::parse("7")).error().code, Code::protocol_error);
}

TEST(Answers, HistoryOfASuccess) {
    const auto entry = read_history_entry(recorded_history("01-simple-success.json").as_object());
    EXPECT_TRUE(entry.success);
    EXPECT_FALSE(entry.error);
    EXPECT_EQ(entry.run_time, Millis(32));
    EXPECT_EQ(entry.outputs.at("3").at("images").at(0).at("filename"), "conv_00001_.png");
}

TEST(Answers, HistoryOfANodeError) {
    const auto entry = read_history_entry(recorded_history("04-node-error.json").as_object());
    EXPECT_FALSE(entry.success);
    ASSERT_TRUE(entry.error);
    EXPECT_EQ(entry.error->node_id, "2");
    EXPECT_EQ(entry.error->exception_type, "RuntimeError");
    EXPECT_TRUE(entry.run_time);
    EXPECT_FALSE(entry.interrupted);
}

TEST(Answers, ARunWithoutTimesOrWithAClockThatWasSetBackHasNoLength) {
    for (const char* messages :
         {R"([["execution_start", {}], ["execution_success", {}]])",
          R"([["execution_success", {"timestamp": 5}]])",
          R"([["execution_start", {"timestamp": 9}], ["execution_success", {"timestamp": 5}]])"}) {
        const auto entry = read_history_entry(*json::parse_object(
            R"({"status": {"status_str": "success", "messages": )" + std::string(messages) + "}}"
        ));
        EXPECT_TRUE(entry.success);
        EXPECT_EQ(entry.run_time, std::nullopt) << messages;
    }
}

TEST(Answers, HistoryOfAnInterruption) {
    const auto entry =
        read_history_entry(recorded_history("05-interrupt-running.json").as_object());
    EXPECT_FALSE(entry.success);
    EXPECT_TRUE(entry.interrupted);
    EXPECT_FALSE(entry.error);
}

TEST(Answers, AnErrorAmongTheMessagesDecidesWhateverTheStatusSays) {
    const auto read = [](std::string_view event, std::string_view data) {
        return read_history_entry(*json::parse_object(
            R"({"status": {"status_str": "success", "completed": true, "messages": [
                ["execution_start", {"timestamp": 1}], [")" +
            std::string(event) + "\", " + std::string(data) + R"(], ["other", {}]]}})"
        ));
    };
    const auto failed = read(
        "execution_error",
        R"({"node_id": "3", "exception_type": "graph.DependencyCycleError", "exception_message": "cycle"})"
    );
    EXPECT_FALSE(failed.success);
    ASSERT_TRUE(failed.error);
    EXPECT_EQ(failed.error->node_id, "3");
    const auto interrupted = read("execution_interrupted", R"({"node_id": "3"})");
    EXPECT_FALSE(interrupted.success);
    EXPECT_TRUE(interrupted.interrupted);
    EXPECT_TRUE(read("execution_error", R"({"exception_type": "ExecutionBlocked"})").success)
        << "a blocked node is no end";
}

TEST(Answers, ARejectionIsToldInTheWordsOfAnError) {
    const Error error = rejection(
        "the worker",
        *json::parse_object(R"({
        "error": {"type": "prompt_outputs_failed_validation", "message": "Prompt outputs failed validation"},
        "node_errors": {"4": {"class_type": "LoadImage", "errors": [
            {"type": "custom_validation_failed", "message": "Custom validation failed for node",
             "details": "image - Invalid image file: x.png", "extra_info": {"input_name": "image"}}]}}})"
        )
    );
    EXPECT_EQ(error.code, Code::worker_rejected);
    EXPECT_EQ(error.details.at("node_id"), "4");
    EXPECT_EQ(error.details.at("node_type"), "LoadImage");
    EXPECT_EQ(error.details.at("exception_type"), "custom_validation_failed");
    EXPECT_EQ(
        error.details.at("exception_message"),
        "Custom validation failed for node: image - Invalid image file: x.png"
    );
    EXPECT_TRUE(error.details.contains("node_errors"));
    const Error bare = rejection("it", *json::parse_object(R"({"error": {"type": "no_prompt"}})"));
    EXPECT_EQ(bare.details.at("exception_type"), "no_prompt");
    EXPECT_FALSE(bare.details.contains("node_id"));
    EXPECT_EQ(rejection("it", {}).code, Code::worker_rejected);
}

TEST(Answers, RejectionNamesNodeAndInput) {
    const auto answer = *json::parse_object(R"({
        "error": {"type": "prompt_outputs_failed_validation", "message": "Prompt outputs failed validation"},
        "node_errors": {"4": {"class_type": "LoadImage", "errors": [
            {"type": "custom_validation_failed", "message": "Custom validation failed for node",
             "details": "image - Invalid image file: x.png", "extra_info": {"input_name": "image"}}]}}})"
    );
    const std::string text = describe_rejection(answer);
    EXPECT_THAT(text, HasSubstr("node 4 (LoadImage), input 'image'"));
    EXPECT_THAT(text, HasSubstr("Invalid image file: x.png"));
}

TEST(Answers, RejectionWithoutNodes) {
    EXPECT_EQ(
        describe_rejection(*json::parse_object(
            R"({"error":{"message":"Node 'X' not found.","details":"Node ID '#7'"},"node_errors":{}})"
        )),
        "Node 'X' not found. Node ID '#7'"
    );
    EXPECT_EQ(describe_rejection({}), "the worker gave no reason");
    EXPECT_EQ(
        describe_rejection(*json::parse_object(R"({"error":5,"node_errors":[1]})")),
        "the worker gave no reason"
    );
}

TEST(Answers, RejectionIsShortened) {
    json::array errors;
    for (int i = 0; i < 9; ++i) {
        errors.push_back(json::object{{"message", "bad"}});
    }
    json::object answer;
    answer["node_errors"] = json::object{{"1", json::object{{"errors", errors}}}};
    EXPECT_THAT(describe_rejection(answer), HasSubstr("and 4 more"));
}

TEST(ServerName, IsHostAndPortOrTheSocketsName) {
    EXPECT_EQ(server_name("http://gpu1:8188/prefix").value(), "gpu1:8188");
    EXPECT_EQ(server_name("https://gpu2").value(), "gpu2:443");
    EXPECT_EQ(server_name("unix:/run/comfyd/gpu3.sock").value(), "gpu3");
    for (const char* text : {"ftp://x", "gpu1:8188", "unix:gpu.sock", "unix:/run/", "unix:"}) {
        EXPECT_FALSE(server_name(text)) << text;
    }
}

TEST(Versions, TellWhetherAnInterruptNamesItsPrompt) {
    for (const char* version : {"0.3.57", "0.3.100", "0.7.0", "0.33.0", "1.0.0", "0.4.0rc1"}) {
        EXPECT_TRUE(interrupts_by_id(version)) << version;
    }
    for (const char* version : {"0.3.56", "0.3.9", "0.2.99", "", "unknown", "0.4", "v0.7.0"}) {
        EXPECT_FALSE(interrupts_by_id(version)) << version;
    }
}

}  // namespace
}  // namespace comfyd::comfy
