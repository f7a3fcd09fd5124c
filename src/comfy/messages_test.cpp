#include "comfy/messages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

namespace comfyd::comfy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<json::object> recorded_messages() {
    std::vector<json::object> messages;
    for (const auto& file :
         std::filesystem::directory_iterator(COMFYD_TEST_DATA "/conversations")) {
        std::ifstream stream(file.path());
        const std::string text{std::istreambuf_iterator<char>(stream), {}};
        const auto document = json::parse_object(text);
        EXPECT_TRUE(document) << file.path();
        for (const json::value& event : document->at("events").as_array()) {
            if (event.at("kind") == "ws" && event.as_object().contains("text")) {
                messages.push_back(event.at("text").as_object());
            }
        }
    }
    return messages;
}

// Numbers as doubles, members that only some versions send left out.
json::value normal(const json::value& from) {
    if (from.is_number()) {
        return from.to_number<double>();
    }
    if (const auto* list = from.if_array()) {
        json::array made;
        for (const json::value& element : *list) {
            made.push_back(normal(element));
        }
        return made;
    }
    if (const auto* fields = from.if_object()) {
        json::object made;
        for (const auto& [key, element] : *fields) {
            made[key] = normal(element);
        }
        return made;
    }
    return from;
}

TEST(Messages, RecordedOnesAreAllUnderstood) {
    const auto recorded = recorded_messages();
    ASSERT_GT(recorded.size(), 100U);
    std::set<std::size_t> kinds;
    for (const json::object& message : recorded) {
        const Message decoded = decode_text(json::serialize_python(message));
        EXPECT_FALSE(std::holds_alternative<Unknown>(decoded)) << json::serialize(message);
        EXPECT_FALSE(std::holds_alternative<Malformed>(decoded)) << json::serialize(message);
        kinds.insert(decoded.index());
    }
    EXPECT_EQ(kinds.size(), 11U) << "every kind of text message was recorded";
}

TEST(Messages, EncodingGivesBackWhatWasRecorded) {
    for (const json::object& message : recorded_messages()) {
        const Message decoded = decode_text(json::serialize(message));
        const auto again = json::parse(encode_text(decoded));
        ASSERT_TRUE(again);
        EXPECT_EQ(normal(*again), normal(message));
    }
}

TEST(Messages, ExecutingWithoutANodeIsTheEnd) {
    const auto end = decode_text(R"({"type":"executing","data":{"node":null,"prompt_id":"p"}})");
    ASSERT_TRUE(std::holds_alternative<Executing>(end));
    EXPECT_FALSE(std::get<Executing>(end).node);
    EXPECT_EQ(prompt_id_of(end), "p");
    // An absent node must not end anything.
    const auto absent = decode_text(R"({"type":"executing","data":{"prompt_id":"p"}})");
    EXPECT_TRUE(std::holds_alternative<Malformed>(absent));
    const auto number = decode_text(R"({"type":"executing","data":{"node":5,"prompt_id":"p"}})");
    EXPECT_TRUE(std::holds_alternative<Malformed>(number));
}

TEST(Messages, BlockedNodesDoNotEndThePrompt) {
    const auto message = decode_text(
        R"({"type":"execution_error","data":{"prompt_id":"p","exception_type":"ExecutionBlocked"}})"
    );
    EXPECT_FALSE(std::get<ExecutionError>(message).ends_prompt());
}

TEST(Messages, NumbersThatJsonDoesNotHaveAreNull) {
    const auto message = decode_text(
        R"({"type":"executed","data":{"node":"1","prompt_id":"p","output":{"a":[NaN,-Infinity,"NaN \" Infinity"]}}})"
    );
    const auto& list = std::get<Executed>(message).output.at("a").as_array();
    EXPECT_TRUE(list.at(0).is_null());
    EXPECT_TRUE(list.at(1).is_null());
    EXPECT_EQ(list.at(2), "NaN \" Infinity");
    EXPECT_FALSE(parse_python("{\"a\": Infinit}"));
}

class BadText : public testing::TestWithParam<const char*> {};

TEST_P(BadText, IsMalformed) {
    const Message message = decode_text(GetParam());
    EXPECT_TRUE(std::holds_alternative<Malformed>(message)) << GetParam();
    EXPECT_EQ(prompt_id_of(message), "");
}

INSTANTIATE_TEST_SUITE_P(
    All,
    BadText,
    testing::Values(
        "",
        "{",
        "null",
        "[]",
        "\"status\"",
        "{}",
        R"({"type":5})",
        R"({"type":"status"})",
        R"({"type":"status","data":[]})",
        R"({"type":"status","data":{"status":{}}})",
        R"({"type":"status","data":{"status":{"exec_info":{"queue_remaining":"1"}}}})",
        R"({"type":"execution_start","data":{}})",
        R"({"type":"execution_cached","data":{"nodes":["1"]}})",
        R"({"type":"progress","data":{"value":"1","max":2}})",
        R"({"type":"progress","data":{"value":1}})",
        R"({"type":"progress_state","data":{"prompt_id":"p","nodes":[]}})",
        R"({"type":"executed","data":{"prompt_id":"p"}})",
        R"({"type":"execution_success","data":{"prompt_id":7}})",
        R"({"type":"execution_error","data":{"prompt_id":null}})",
        R"({"type":"execution_interrupted","data":{}})",
        "{\"type\":\"\xff\xfe\"}"
    )
);

TEST(Messages, WhatIsKeptOutlivesTheDocument) {
    const Message message = decode_text(
        R"({"type": "progress", "type": "executed", "data": {"prompt_id": "p", "node": "9",)"
        R"( "output": {"text": ["a text that is too long to be kept in place"]}}})"
    );
    const auto* executed = std::get_if<Executed>(&message);
    ASSERT_NE(executed, nullptr);
    EXPECT_EQ(executed->output.at("text").at(0), "a text that is too long to be kept in place");
}

TEST(Messages, UnknownTypesAreNamed) {
    const Message message = decode_text(R"({"type":"crystools.monitor","data":{"cpu":1}})");
    EXPECT_EQ(std::get<Unknown>(message).type, "crystools.monitor");
    EXPECT_EQ(std::get<Unknown>(message).data, (json::object{{"cpu", 1}}));
    const Message named = decode_text(R"({"type":"my.node","data":{"prompt_id":"p"}})");
    EXPECT_EQ(prompt_id_of(named), "p");
    EXPECT_FALSE(std::get<Unknown>(decode_text(R"({"type":"my.node","data":7})")).data);
}

TEST(Messages, StrangeMembersAreLeftOut) {
    const auto cached = decode_text(
        R"({"type":"execution_cached","data":{"prompt_id":"p","nodes":["1",2,null,"3"],"timestamp":1e300}})"
    );
    EXPECT_THAT(std::get<ExecutionCached>(cached).nodes, ElementsAre("1", "3"));
    EXPECT_EQ(std::get<ExecutionCached>(cached).timestamp, 0);
    const auto state = decode_text(
        R"({"type":"progress_state","data":{"prompt_id":"p","nodes":{"1":5,"2":{"state":7}}}})"
    );
    ASSERT_EQ(std::get<ProgressState>(state).nodes.size(), 1U);
    EXPECT_FALSE(std::get<ProgressState>(state).nodes[0].finished);
}

TEST(Messages, PreviewsWithMetadata) {
    const Preview preview{"\x89PNG", "image/png", "p", "3", "3", "", "3"};
    const auto decoded = decode_binary(encode_binary(preview, true));
    ASSERT_TRUE(std::holds_alternative<Preview>(decoded));
    EXPECT_EQ(std::get<Preview>(decoded).bytes, "\x89PNG");
    EXPECT_EQ(std::get<Preview>(decoded).content_type, "image/png");
    EXPECT_EQ(std::get<Preview>(decoded).node_id, "3");
    EXPECT_EQ(prompt_id_of(decoded), "p");
}

TEST(Messages, PreviewsWithoutMetadata) {
    for (const std::string type : {"image/png", "image/jpeg"}) {
        const auto decoded =
            decode_binary(encode_binary(Preview{"bytes", type, "p", "3", "", "", ""}, false));
        ASSERT_TRUE(std::holds_alternative<Preview>(decoded));
        EXPECT_EQ(std::get<Preview>(decoded).content_type, type);
        EXPECT_EQ(prompt_id_of(decoded), "");
    }
}

TEST(Messages, TextFrames) {
    const auto decoded = decode_binary(encode_binary(NodeText{"7", "width: 5"}));
    EXPECT_EQ(std::get<NodeText>(decoded).node_id, "7");
    EXPECT_EQ(std::get<NodeText>(decoded).text, "width: 5");
}

TEST(Messages, BrokenBinaryFrames) {
    const std::string zeros(3, '\0');
    for (const std::string& frame : {
             std::string(),
             zeros,
             zeros + "\x01",                              // no format
             zeros + "\x01" + zeros + "\x09" + "x",       // unknown format
             zeros + "\x04" + zeros + "\x09" + "{}",      // shorter than it says
             zeros + "\x04" + zeros + "\x02" + "{}",      // no picture type
             zeros + "\x04" + zeros + "\x02" + "{x",      // broken metadata
             zeros + "\x04" + "\xff\xff\xff\xff" + "{}",  // huge length
             zeros + "\x03" + zeros + "\x05" + "1",
         }) {
        EXPECT_TRUE(std::holds_alternative<Malformed>(decode_binary(frame)));
    }
    EXPECT_TRUE(std::holds_alternative<Unknown>(decode_binary(zeros + "\x02" + "abc")));
}

}  // namespace
}  // namespace comfyd::comfy
