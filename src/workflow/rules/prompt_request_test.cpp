#include "workflow/rules/prompt_request.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace comfyd::workflow {
namespace {

tl::expected<PromptRequest, json::object> read(std::string_view text) {
    auto body = read_prompt_body(text);
    if (!body) {
        return tl::unexpected(body.error());
    }
    return parse_prompt_request(std::move(*body));
}

std::string refusal(std::string_view text) {
    const auto request = read(text);
    if (request) {
        return "accepted";
    }
    for (const char* field : {"type", "message", "details", "extra_info"}) {
        EXPECT_TRUE(request.error().contains(field)) << field;
    }
    return std::string(request.error().at("type").as_string());
}

TEST(PromptRequest, ReadsEveryMember) {
    const auto request = read(R"({"prompt": {"1": {}, "2": {}},
        "prompt_id": "0b6f5e0c-8c1d-4b1e-9a5e-0123456789ab", "client_id": "me", "number": "4.5",
        "front": true, "extra_data": {"a": 1}, "partial_execution_targets": ["2", 1, "9"]})");
    ASSERT_TRUE(request);
    EXPECT_EQ(request->prompt.size(), 2U);
    EXPECT_EQ(request->prompt_id, "0b6f5e0c-8c1d-4b1e-9a5e-0123456789ab");
    EXPECT_EQ(request->client_id, "me");
    EXPECT_EQ(request->number, 4.5);
    EXPECT_FALSE(request->front);  // only without a number
    EXPECT_EQ(request->extra_data, (json::object{{"a", 1}, {"client_id", "me"}}));
    EXPECT_EQ(request->targets, std::vector<std::string>{"2"});
}

TEST(PromptRequest, EverythingButThePromptMayBeAbsent) {
    const auto request = read(R"({"prompt": {}, "prompt_id": null,
        "partial_execution_targets": null, "front": 1, "client_id": 5})");
    ASSERT_TRUE(request);
    EXPECT_FALSE(request->prompt_id);
    EXPECT_FALSE(request->targets);
    EXPECT_FALSE(request->number);
    EXPECT_TRUE(request->front);
    EXPECT_EQ(request->client_id, "5");
    EXPECT_EQ(request->extra_data.at("client_id"), 5);
}

TEST(PromptRequest, SaysWhatIsWrong) {
    EXPECT_EQ(refusal(""), "invalid_json");
    EXPECT_EQ(refusal("{NaN"), "invalid_json");
    EXPECT_EQ(refusal("null"), "invalid_request");
    EXPECT_EQ(refusal(R"(["prompt"])"), "invalid_request");
    EXPECT_EQ(refusal("[]"), "no_prompt");
    EXPECT_EQ(refusal("{}"), "no_prompt");
    EXPECT_EQ(refusal(R"({"prompt": null})"), "invalid_request");
    EXPECT_EQ(refusal(R"({"prompt": [1]})"), "invalid_request");
    EXPECT_EQ(refusal(R"({"prompt": {}, "number": null})"), "invalid_request");
    EXPECT_EQ(refusal(R"({"prompt": {}, "number": "inf"})"), "invalid_request");
    EXPECT_EQ(refusal(R"({"prompt": {}, "extra_data": null})"), "invalid_request");
    EXPECT_EQ(refusal(R"({"prompt": {}, "extra_data": []})"), "invalid_request");
    EXPECT_EQ(refusal(R"({"prompt": {}, "partial_execution_targets": 3})"), "invalid_request");
    EXPECT_EQ(refusal(R"({"prompt": {}, "prompt_id": 5})"), "invalid_prompt_id");
    EXPECT_EQ(refusal(R"({"prompt": {}, "prompt_id": "x"})"), "invalid_prompt_id");
}

TEST(PromptRequest, TargetsMayBeATextOrAnObject) {
    EXPECT_EQ(
        read(R"({"prompt": {"1": {}, "12": {}, "3": {}}, "partial_execution_targets": "12"})")
            ->targets,
        (std::vector<std::string>{"1", "12"})
    );
    EXPECT_EQ(
        read(R"({"prompt": {"1": {}, "2": {}}, "partial_execution_targets": {"2": 0, "7": 0}})")
            ->targets,
        std::vector<std::string>{"2"}
    );
}

TEST(PromptRequest, PythonsNumberWordsAreNumbersAtInputsAndNullElsewhere) {
    const auto request = read(R"({"prompt": {"1": {"class_type": "NaN", "inputs": {
        "a": NaN, "b": -Infinity, "c": Infinity, "d": "NaN \" Infinity", "e": {"x": NaN}, "f": -1}}},
        "extra_data": {"x": [NaN]}})");
    ASSERT_TRUE(request);
    const json::object& inputs = request->prompt.at("1").at("inputs").as_object();
    EXPECT_TRUE(std::isnan(inputs.at("a").as_double()));
    EXPECT_LT(inputs.at("b").as_double(), -1e308);
    EXPECT_GT(inputs.at("c").as_double(), 1e308);
    EXPECT_EQ(inputs.at("d"), "NaN \" Infinity");
    EXPECT_TRUE(inputs.at("e").at("x").is_null());
    EXPECT_EQ(inputs.at("f"), -1);
    EXPECT_EQ(request->prompt.at("1").at("class_type"), "NaN");
    EXPECT_EQ(request->extra_data.at("x"), json::array{nullptr});
}

TEST(PromptRequest, NullsThatWouldBreakAWorkersJobListAreTakenOut) {
    EXPECT_TRUE(read(R"({"prompt": {}, "extra_data": {"extra_pnginfo": null}})")->extra_data.empty()
    );
    EXPECT_EQ(
        read(R"({"prompt": {}, "extra_data": {"extra_pnginfo": {"workflow": null, "a": 1}}})")
            ->extra_data,
        (json::object{{"extra_pnginfo", {{"a", 1}}}})
    );
}

TEST(PromptRequest, KnowsACanonicalUuid) {
    EXPECT_TRUE(is_canonical_uuid("0b6f5e0c-8c1d-4b1e-9a5e-0123456789ab"));
    EXPECT_FALSE(is_canonical_uuid("0B6F5E0C-8C1D-4B1E-9A5E-0123456789AB"));
    EXPECT_FALSE(is_canonical_uuid("0b6f5e0c8c1d4b1e9a5e0123456789ab"));
    EXPECT_FALSE(is_canonical_uuid("0b6f5e0c-8c1d-4b1e-9a5e-0123456789ag"));
    EXPECT_FALSE(is_canonical_uuid("0b6f5e0c-8c1d-4b1e-9a5e00123456789ab"));
    EXPECT_FALSE(is_canonical_uuid(""));
}

}  // namespace
}  // namespace comfyd::workflow
