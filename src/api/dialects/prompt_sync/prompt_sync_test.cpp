// What /prompt_sync reads and answers, without sockets.
#include "api/dialects/prompt_sync/prompt_sync.hpp"

#include <gtest/gtest.h>

#include "api/dialects/shapes_fixture.hpp"

namespace comfyd::api::prompt_sync {
namespace {

using fixture::text;
using jobs::State;

json::object parse(std::string_view from) {
    return json::parse_object(from).value();
}

TEST(PromptSync, ReadsItsOptions) {
    const auto plain = decode_options({}, "");
    ASSERT_TRUE(plain);
    EXPECT_FALSE(plain->return_base64);
    EXPECT_EQ(plain->timeout, std::chrono::seconds(300));
    EXPECT_TRUE(plain->cancel_on_timeout);

    const json::object body =
        parse(R"({"return_image_base64": true, "timeout": 2.5, "on_timeout": "continue"})");
    const auto full = decode_options(body, "");
    ASSERT_TRUE(full);
    EXPECT_TRUE(full->return_base64);
    EXPECT_EQ(full->timeout, Millis(2'500));
    EXPECT_FALSE(full->cancel_on_timeout);
    EXPECT_EQ(decode_options(body, "7")->timeout, Millis(7'000));

    for (const char* bad :
         {R"({"return_image_base64": "yes"})",
          R"({"timeout": 0})",
          R"({"timeout": 86401})",
          R"({"timeout": "5"})",
          R"({"on_timeout": "wait"})",
          R"({"on_timeout": 1})"}) {
        const auto options = decode_options(parse(bad), "");
        ASSERT_FALSE(options) << bad;
        EXPECT_EQ(http_status(options.error().code), 422) << bad;
    }
    EXPECT_FALSE(decode_options({}, "soon"));
    EXPECT_FALSE(decode_options({}, "nan"));
}

TEST(PromptSync, StatusCodes) {
    EXPECT_EQ(http_status(Code::request_timeout), 408);
    EXPECT_EQ(http_status(Code::execution_timeout), 408);
    EXPECT_EQ(http_status(Code::worker_unavailable), 503);
    EXPECT_EQ(http_status(Code::worker_lost), 503);
    EXPECT_EQ(http_status(Code::node_execution_error), 400);
    EXPECT_EQ(http_status(Code::out_of_memory), 400);
    EXPECT_EQ(http_status(Code::invalid_workflow), 422);
    EXPECT_EQ(http_status(Code::worker_rejected), 422);
    EXPECT_EQ(http_status(Code::malformed_json), 422);
    EXPECT_EQ(http_status(Code::unauthorized), 401);
    EXPECT_EQ(http_status(Code::queue_full), 429);
    EXPECT_EQ(http_status(Code::internal), 500);
    EXPECT_EQ(http_status(Code::protocol_error), 500);
}

TEST(PromptSync, AFailedNodeIsNamed) {
    const Trouble trouble = trouble_of(fixture::job(State::failed));
    const json::object body = encode_trouble(trouble, fixture::kCreated);
    EXPECT_EQ(body.at("status"), "error");
    EXPECT_EQ(body.at("error"), "Task execution failed");
    EXPECT_EQ(body.at("code"), "out_of_memory");
    EXPECT_EQ(body.at("detail"), "node 3 (KSampler): the GPU is full");
    EXPECT_EQ(body.at("prompt_id"), json::value(fixture::kJob.to_string()));
    EXPECT_EQ(text(body.at("node_errors")), R"({"3":["the GPU is full"]})");
    EXPECT_EQ(body.at("timestamp"), "2023-11-14T22:13:20.000Z");
    EXPECT_FALSE(body.contains("outputs"));
}

TEST(PromptSync, OtherEnds) {
    EXPECT_EQ(http_status(trouble_of(fixture::job(State::expired)).error.code), 408);
    EXPECT_EQ(http_status(trouble_of(fixture::job(State::cancelled)).error.code), 400);
    jobs::Job refused = fixture::job(State::failed);
    refused.failure->code = Code::worker_rejected;
    refused.failure->details = parse(R"({"node_errors": {
        "5": {"class_type": "KSampler", "errors": [
            {"type": "value_not_in_list", "message": "Value not in list", "details": "sampler_name: 'x'"},
            {"type": "required_input_missing", "message": "Required input is missing", "details": ""}]},
        "6": {"errors": []}}})");
    const Trouble trouble = trouble_of(refused);
    EXPECT_EQ(http_status(trouble.error.code), 422);
    EXPECT_EQ(
        text(encode_trouble(trouble, {}).at("node_errors")),
        R"({"5":["Value not in list: sampler_name: 'x'","Required input is missing"],"6":[]})"
    );
    EXPECT_EQ(encode_trouble({Error(Code::internal, "x")}, {}).at("prompt_id"), nullptr);
}

TEST(PromptSync, ResultsHaveNamesAndLinks) {
    jobs::Job job = fixture::job(State::completed);
    job.ui_outputs = parse(R"({"9": {
        "images": [{"filename": "a.png", "subfolder": "", "type": "output"},
                   {"filename": "unknown.png", "subfolder": "", "type": "output"}],
        "animated": [false], "text": "t"}})");
    const json::object body = encode_result(job, {}, fixture::links());
    EXPECT_EQ(body.at("status"), "success");
    EXPECT_EQ(body.at("execution_time"), 5.5);
    EXPECT_EQ(text(body.at("node_errors")), "{}");
    const json::value& images = body.at("outputs").at("9").at("images");
    EXPECT_EQ(images.at(0).at("url"), json::value("http://here/" + fixture::kAsset.to_string()));
    EXPECT_EQ(images.at(0).at("subfolder"), json::value(fixture::kJob.to_string()));
    EXPECT_FALSE(images.at(1).as_object().contains("url"));
    EXPECT_EQ(body.at("outputs").at("9").at("text"), "t");
}

}  // namespace
}  // namespace comfyd::api::prompt_sync
