// What the answer to a submit tells beside the id: what has no effect, and how long it will take.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/dialects/undone_wishes.hpp"
#include "api/test_support.hpp"

namespace comfyd::api {
namespace {

using test::parse;
using test::TestApi;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// With a model: what others take says nothing about it.
constexpr std::string_view kGraph = R"({
    "3": {"class_type": "KSampler", "inputs": {"cfg": 8, "denoise": 1, "latent_image": ["5", 0],
          "model": ["4", 0], "negative": ["7", 0], "positive": ["6", 0], "sampler_name": "euler",
          "scheduler": "normal", "seed": 1, "steps": 20}},
    "4": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "sd15.safetensors"}},
    "5": {"class_type": "EmptyLatentImage", "inputs": {"batch_size": 1, "height": 512, "width": 512}},
    "6": {"class_type": "CLIPTextEncode", "inputs": {"clip": ["4", 1], "text": "a cat"}},
    "7": {"class_type": "CLIPTextEncode", "inputs": {"clip": ["4", 1], "text": ""}},
    "8": {"class_type": "VAEDecode", "inputs": {"samples": ["3", 0], "vae": ["4", 2]}},
    "9": {"class_type": "SaveImage", "inputs": {"filename_prefix": "x", "images": ["8", 0]}}})";

std::string request(std::string_view more) {
    return R"({"workflow": )" + std::string(kGraph) + (more.empty() ? "" : ", ") +
           std::string(more) + "}";
}

std::vector<std::string> fields_of(const json::array& warnings) {
    std::vector<std::string> fields;
    for (const json::value& warning : warnings) {
        fields.emplace_back(warning.at("field").as_string());
        EXPECT_THAT(std::string(warning.at("message").as_string()), HasSubstr(fields.back()));
        EXPECT_EQ(warning.at("code"), "NOT_DONE");
    }
    return fields;
}

TEST(UndoneWishes, EachIsNamed) {
    const auto all = *json::parse_object(R"({
        "output_config": {"format": "png", "quality": 95, "storage": {"provider": "s3"}},
        "execution_config": {"batch_size": 4, "gpu_memory_fraction": 0.5,
                             "gpu_requirements": {"count": 2}},
        "gpu_requirements": {"memory_gb": 8, "gpu_type": "L4", "driver": "570"}})");
    EXPECT_THAT(
        fields_of(execution::undone_wishes(all)),
        ElementsAre(
            "output_config.storage",
            "output_config.quality",
            "execution_config.batch_size",
            "gpu_requirements.driver",
            "gpu_requirements.count"
        )
    );
    for (const char* nothing :
         {"{}",
          R"({"output_config": {}})",
          R"({"output_config": {"format": "webp", "quality": 95}})",
          R"({"output_config": {"max_size": 512, "quality": 95}})",
          R"({"output_config": null, "execution_config": 7})",
          R"({"execution_config": {"batch_size": 1, "timeout": 5}})"}) {
        EXPECT_THAT(execution::undone_wishes(*json::parse_object(nothing)), IsEmpty()) << nothing;
    }
}

TEST(Accepted, WhatHasNoEffectIsToldInTheAnswerAndByAnEvent) {
    TestApi api;
    const std::string body = request(R"("output_config": {"storage": {"bucket": "b"}})");
    for (const char* path :
         {"/v1/workflows/execute", "/v2/workflows/execute", "/comfyui/execute"}) {
        const auto response = api.post(path, body);
        ASSERT_EQ(response.status, 202) << response.body;
        const json::object answer = parse(response.body);
        EXPECT_THAT(
            fields_of(answer.at("warnings").as_array()), ElementsAre("output_config.storage")
        );
        const auto id = JobId::parse(std::string(answer.at("execution_id").as_string()));
        const auto events = api.ledger.stored(*id);
        ASSERT_EQ(events.size(), 2U);
        EXPECT_EQ(events[1].type, jobs::EventType::warning);
        EXPECT_EQ(events[1].data.at("warnings"), answer.at("warnings"));
    }
    const auto task = api.post(
        "/api/v1/tasks",
        R"({"gpu_requirements": {"cores": 1}, "payload": )" + std::string(kGraph) + "}"
    );
    EXPECT_THAT(
        fields_of(parse(task.body).at("warnings").as_array()), ElementsAre("gpu_requirements.cores")
    );
    EXPECT_FALSE(parse(api.post("/v2/workflows/execute", request("")).body).contains("warnings"));
}

TEST(Accepted, CertificatesAreAlwaysVerified) {
    TestApi api;
    const auto with = [&api](std::string_view wish) {
        return api.post(
            "/v2/workflows/execute",
            request(
                R"("webhook_config": {"url": "https://example.com/", )" + std::string(wish) + "}"
            )
        );
    };
    EXPECT_EQ(with(R"("verify_ssl": true)").status, 202);
    const auto refused = with(R"("verify_ssl": false)");
    EXPECT_EQ(refused.status, 400);
    EXPECT_THAT(refused.body, HasSubstr("webhooks.ca_file"));
    const auto kept = with(R"("max_retries": 2, "retry_delay": 0.5, "timeout": 3)");
    ASSERT_EQ(kept.status, 202) << kept.body;
    const auto id = JobId::parse(std::string(parse(kept.body).at("execution_id").as_string()));
    const auto webhook = api.ledger.spec(*id).webhook;
    ASSERT_TRUE(webhook);
    EXPECT_EQ(webhook->max_retries, 2);
    EXPECT_EQ(webhook->retry_delay, Millis(500));
    EXPECT_EQ(webhook->timeout, Millis(3'000));
    EXPECT_EQ(with(R"("max_retries": -1)").status, 400);
    EXPECT_EQ(with(R"("timeout": 1e9)").status, 400);
}

TEST(Accepted, TheFirstAnswerHasAnEstimate) {
    TestApi api;
    const json::object first = parse(api.post("/v2/workflows/execute", request("")).body);
    EXPECT_GT(first.at("estimated_remaining").as_int64(), 0);
    EXPECT_EQ(first.at("queue_position"), 1);
    const json::object second = parse(api.post("/comfyui/execute", request("")).body);
    EXPECT_GE(
        second.at("estimated_duration").as_int64(), first.at("estimated_remaining").as_int64()
    );
    EXPECT_EQ(second.at("queue_position"), 2);
}

TEST(Accepted, WebhooksHearWhereTheJobStandsInTheQueue) {
    TestApi api;
    for (int position = 1; position <= 3; ++position) {
        const auto response =
            api.post("/api/v2/jobs", request(R"("webhook_config": {"url": "https://example.com/",
                       "events": ["execution.queued"]})"));
        ASSERT_EQ(response.status, 201) << response.body;
        const auto id = JobId::parse(std::string(parse(response.body).at("id").as_string()));
        const json::object queued = api.ledger.stored(*id).at(0).data;
        EXPECT_EQ(queued.at("queue_position"), position);
        EXPECT_TRUE(queued.at("estimated_wait_seconds").is_int64());
    }
}

}  // namespace
}  // namespace comfyd::api
