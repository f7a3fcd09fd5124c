#include "workflow/merge/merge.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workflow/merge/merge_test_support.hpp"

namespace comfyd::workflow {
namespace {

using namespace test;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

// A node a line, without what pictures carry.
std::string shown(const json::object& prompt) {
    std::string text = "\n";
    for (const auto& [id, node] : prompt) {
        json::object inputs = node.at("inputs").as_object();
        for (const char* name : {"prompt", "extra_pnginfo"}) {
            inputs.erase(name);
        }
        text += text_of(id) + " " + text_of(node.at("class_type").as_string());
        for (const auto& [name, value] : inputs) {
            text += " " + text_of(name) + "=" + json::serialize_python(value);
        }
        text += "\n";
    }
    return text;
}

std::vector<json::object> nodes_of(const Merged& merged, const char* class_type) {
    std::vector<json::object> found;
    for (const auto& [id, node] : merged.prompt) {
        if (node.at("class_type") == class_type) {
            found.push_back(node.at("inputs").as_object());
        }
    }
    return found;
}

std::string at(const json::object& inputs, const char* name) {
    return json::serialize(inputs.at(name));
}

void expect_jobs_kept(const Merged& merged, const std::vector<json::object>& workflows) {
    for (std::size_t job = 0; job < workflows.size(); ++job) {
        EXPECT_EQ(content_of(Unmerged(merged, job).workflow()), content_of(workflows[job])) << job;
    }
}

TEST(Merge, WritesOnePromptForAllJobs) {
    json::object first = text_to_image();
    json::object second = text_to_image();
    input(first, "5", "batch_size") = 1;
    input(second, "3", "seed") = 7;
    input(second, "6", "text") = "a dog";
    input(second, "9", "filename_prefix") = "dogs";
    const auto merged = merge_all({first, second});
    ASSERT_TRUE(merged) << merged.error().message;
    EXPECT_EQ(shown(merged->prompt), R"(
1 CheckpointLoaderSimple ckpt_name="sd15/v1-5-pruned.safetensors"
2 EmptyLatentImage width=512 height=768 batch_size=1
3 EmptyLatentImage width=512 height=768 batch_size=2
4 CLIPTextEncode text="a cat" clip=["1", 1]
5 CLIPTextEncode text="blurry" clip=["1", 1]
6 CLIPTextEncode text="a dog" clip=["1", 1]
7 ComfydLatentBatch latent0=["2", 0] latent1=["3", 0] jobs="5:1,7:2"
8 ComfydConditioningBatch conditioning0=["4", 0] conditioning1=["6", 0] counts="1,2"
9 KSampler seed=["7", 1] steps=20 cfg=8.0 sampler_name="euler" scheduler="normal" denoise=1.0 model=["1", 0] positive=["8", 0] negative=["5", 0] latent_image=["7", 0]
10 VAEDecode samples=["9", 0] vae=["1", 2]
11 ImageFromBatch image=["10", 0] batch_index=0 length=1
job0-9 ComfydSaveImage images=["11", 0] filename_prefix="ComfyUI" preview=false
13 ImageFromBatch image=["10", 0] batch_index=1 length=2
job1-9 ComfydSaveImage images=["13", 0] filename_prefix="dogs" preview=false
)");
    EXPECT_THAT(merged->samples, ElementsAre(1U, 2U));
}

TEST(Merge, SaysWhoseEveryNodeIs) {
    json::object second = text_to_image();
    input(second, "6", "text") = "a dog";
    const auto merged = merge_all({text_to_image(), second});
    ASSERT_TRUE(merged);
    const auto origins = [&](const char* class_type) {
        std::vector<std::string> found;
        for (const auto& [id, nodes] : merged->origins) {
            if (merged->prompt.at(id).at("class_type") != class_type) {
                continue;
            }
            for (const JobNode& node : nodes) {
                found.push_back(std::to_string(node.job) + "/" + node.node_id);
            }
        }
        return found;
    };
    EXPECT_THAT(origins("CheckpointLoaderSimple"), ElementsAre("0/4", "1/4"));
    EXPECT_THAT(origins("CLIPTextEncode"), UnorderedElementsAre("0/6", "1/6", "0/7", "1/7"));
    EXPECT_THAT(origins("KSampler"), ElementsAre("0/3", "1/3"));
    EXPECT_THAT(origins("ComfydSaveImage"), UnorderedElementsAre("0/9", "1/9"));
    EXPECT_THAT(origins("ComfydLatentBatch"), IsEmpty());
    EXPECT_THAT(origins("ImageFromBatch"), IsEmpty());
    EXPECT_EQ(merged->origins.size(), merged->prompt.size());
}

TEST(Merge, NodesOfOneJobSayWhoseTheyAre) {
    const json::object workflow = text_to_image();
    const auto merged =
        merge({{&workflow, nullptr, 3}, {&workflow, nullptr, 5}}, recorded_catalogue());
    ASSERT_TRUE(merged);
    EXPECT_THAT(merged->origins.at("job3-9"), ElementsAre(JobNode{3, "9"}));
    EXPECT_THAT(merged->origins.at("job5-9"), ElementsAre(JobNode{5, "9"}));
    EXPECT_EQ(own_node("job5-9"), (JobNode{5, "9"}));
    EXPECT_EQ(own_node(own_node_id({7, "a-b:1"})), (JobNode{7, "a-b:1"}));
    for (const char* other :
         {"", "9", "job", "job5", "job-9", "jobs5-9", "job99999999999999999999-1"}) {
        EXPECT_EQ(own_node(other), std::nullopt) << other;
    }
}

TEST(Merge, PicturesCarryTheirOwnPromptAndWorkflow) {
    const json::object first = text_to_image();
    json::object second = text_to_image();
    input(second, "6", "text") = "caf\u00e9";
    const json::object info{{"workflow", {{"nodes", json::array{1, 2}}}}};
    const auto merged = merge({{&first, nullptr}, {&second, &info}}, recorded_catalogue());
    ASSERT_TRUE(merged);
    const auto saved = nodes_of(*merged, "ComfydSaveImage");
    ASSERT_EQ(saved.size(), 2U);
    EXPECT_EQ(*json::parse(text_of(saved[0].at("prompt").as_string())), json::value(first));
    EXPECT_EQ(saved[0].at("extra_pnginfo"), "{}");
    EXPECT_EQ(*json::parse(text_of(saved[1].at("prompt").as_string())), json::value(second));
    EXPECT_EQ(*json::parse(text_of(saved[1].at("extra_pnginfo").as_string())), json::value(info));
}

TEST(Merge, DifferingNegativesAreJoinedAndEqualTextsEncodedOnce) {
    std::vector<json::object> jobs(3, text_to_image());
    input(jobs[1], "7", "text") = "a cat";  // the positive text of the others
    const auto merged = merge_all(jobs);
    ASSERT_TRUE(merged);
    EXPECT_EQ(nodes_of(*merged, "CLIPTextEncode").size(), 2U);
    const auto joined = nodes_of(*merged, "ComfydConditioningBatch");
    ASSERT_EQ(joined.size(), 1U);
    EXPECT_NE(at(joined[0], "conditioning0"), at(joined[0], "conditioning1"));
    EXPECT_EQ(at(joined[0], "conditioning0"), at(joined[0], "conditioning2"));
    expect_jobs_kept(*merged, jobs);
}

TEST(Merge, SdxlWithLoraAndTheAdvancedSampler) {
    std::vector<json::object> jobs(2, sdxl());
    input(jobs[1], "positive", "text_l") = "ink";
    input(jobs[1], "sample", "noise_seed") = 18446744073709551615U;
    const auto merged = merge_all(jobs);
    ASSERT_TRUE(merged) << merged.error().message;
    EXPECT_EQ(nodes_of(*merged, "LoraLoader").size(), 1U);
    EXPECT_EQ(nodes_of(*merged, "CLIPTextEncodeSDXL").size(), 2U);
    EXPECT_EQ(
        at(nodes_of(*merged, "ComfydLatentBatch").at(0), "jobs"), R"("5:1,18446744073709551615:1")"
    );
    EXPECT_EQ(nodes_of(*merged, "KSamplerAdvanced").size(), 1U);
    expect_jobs_kept(*merged, jobs);
}

TEST(Merge, Sd3WithSamplerCustomAndZeroedNegative) {
    std::vector<json::object> jobs(2, sd3());
    input(jobs[1], "positive", "t5xxl") = "a dog";
    const auto merged = merge_all(jobs);
    ASSERT_TRUE(merged) << merged.error().message;
    EXPECT_EQ(nodes_of(*merged, "ConditioningZeroOut").size(), 2U);
    EXPECT_EQ(nodes_of(*merged, "ComfydConditioningBatch").size(), 2U);
    const auto sampler = nodes_of(*merged, "SamplerCustom").at(0);
    EXPECT_TRUE(sampler.at("noise_seed").is_array());
    EXPECT_EQ(sampler.at("cfg"), 4.5);
    expect_jobs_kept(*merged, jobs);
}

TEST(Merge, FluxWithGuiderAndNoiseNodes) {
    std::vector<json::object> jobs(3, flux());
    input(jobs[1], "text", "text") = "a dog";
    input(jobs[2], "noise", "noise_seed") = 9;
    const auto merged = merge_all(jobs);
    ASSERT_TRUE(merged) << merged.error().message;
    EXPECT_EQ(nodes_of(*merged, "UNETLoader").size(), 1U);
    EXPECT_EQ(nodes_of(*merged, "FluxGuidance").size(), 2U);
    EXPECT_EQ(nodes_of(*merged, "BasicGuider").size(), 1U);
    EXPECT_EQ(nodes_of(*merged, "RandomNoise").size(), 1U);
    EXPECT_EQ(at(nodes_of(*merged, "ComfydLatentBatch").at(0), "jobs"), R"("1:1,1:1,9:1")");
    EXPECT_EQ(nodes_of(*merged, "SamplerCustomAdvanced").size(), 1U);
    expect_jobs_kept(*merged, jobs);
}

TEST(Merge, ALongTextIsSampledByItselfInTheSamePrompt) {
    std::vector<json::object> jobs(4, flux());
    input(jobs[1], "text", "text") = std::string(1000, '7');
    input(jobs[2], "text", "text") = "a dog";
    input(jobs[3], "latent", "batch_size") = 2;
    for (int seed = 1; json::object & job : jobs) {
        input(job, "noise", "noise_seed") = seed++;
    }
    const auto merged = merge_all(jobs);
    ASSERT_TRUE(merged) << merged.error().message;
    EXPECT_EQ(nodes_of(*merged, "UNETLoader").size(), 1U);
    EXPECT_EQ(nodes_of(*merged, "SamplerCustomAdvanced").size(), 2U);
    const auto latents = nodes_of(*merged, "ComfydLatentBatch");
    ASSERT_EQ(latents.size(), 2U);
    EXPECT_EQ(at(latents[0], "jobs"), R"("1:1,3:1,4:2")");
    EXPECT_EQ(at(latents[1], "jobs"), R"("2:1")");
    EXPECT_THAT(merged->samples, ElementsAre(1U, 1U, 1U, 2U));
    EXPECT_EQ(merged->origins.at("job1-save"), (std::vector<JobNode>{{1, "save"}}));
    expect_jobs_kept(*merged, jobs);
}

TEST(Merge, JobsWithTheSameLongNegativeAreSampledTogether) {
    std::vector<json::object> jobs(3, sd3());
    for (json::object& job : jobs) {
        job["negative"] = parsed(R"({"class_type": "CLIPTextEncode",
            "inputs": {"clip": ["clip", 0], "text": ""}})");
    }
    input(jobs[1], "positive", "t5xxl") = "a dog";
    for (json::object& job : jobs) {
        input(job, "negative", "text") = std::string(400, '7');
    }
    auto merged = merge_all(jobs);
    ASSERT_TRUE(merged) << merged.error().message;
    EXPECT_EQ(nodes_of(*merged, "SamplerCustom").size(), 1U);
    input(jobs[2], "negative", "text") = "blurry";
    merged = merge_all(jobs);
    ASSERT_TRUE(merged) << merged.error().message;
    EXPECT_EQ(nodes_of(*merged, "SamplerCustom").size(), 2U);
    expect_jobs_kept(*merged, jobs);
}

TEST(Merge, TextsThatAreLeftOutMakeOtherLengths) {
    std::vector<json::object> jobs(4, sd3());
    input(jobs[0], "positive", "t5xxl") = "";
    input(jobs[1], "positive", "clip_l") = "a dog";
    input(jobs[3], "positive", "t5xxl") = "";
    input(jobs[3], "positive", "clip_g") = "a bird";
    auto merged = merge_all(jobs);
    ASSERT_TRUE(merged) << merged.error().message;
    EXPECT_EQ(nodes_of(*merged, "SamplerCustom").size(), 2U);
    expect_jobs_kept(*merged, jobs);
    for (json::object& job : jobs) {
        input(job, "positive", "empty_padding") = "empty_prompt";
    }
    merged = merge_all(jobs);
    ASSERT_TRUE(merged) << merged.error().message;
    EXPECT_EQ(nodes_of(*merged, "SamplerCustom").size(), 1U);
}

TEST(Merge, ImageToImageEncodesEveryPictureOnce) {
    std::vector<json::object> jobs(3, image_to_image());
    input(jobs[2], "load", "image") = "b.png";
    const auto merged = merge_all(jobs);
    ASSERT_TRUE(merged) << merged.error().message;
    EXPECT_EQ(nodes_of(*merged, "LoadImage").size(), 2U);
    EXPECT_EQ(nodes_of(*merged, "VAEEncode").size(), 2U);
    const auto latents = nodes_of(*merged, "ComfydLatentBatch").at(0);
    EXPECT_EQ(at(latents, "latent0"), at(latents, "latent1"));
    EXPECT_NE(at(latents, "latent0"), at(latents, "latent2"));
    expect_jobs_kept(*merged, jobs);
}

TEST(Merge, RepeatedLatentsCount) {
    std::vector<json::object> jobs(2, image_to_image());
    for (json::object& job : jobs) {
        job["repeat"] = parsed(
            R"({"class_type": "RepeatLatentBatch", "inputs": {"samples": ["5", 0], "amount": 3}})"
        );
        input(job, "3", "latent_image") = json::array{"repeat", 0};
    }
    const auto merged = merge_all(jobs);
    ASSERT_TRUE(merged) << merged.error().message;
    EXPECT_THAT(merged->samples, ElementsAre(3U, 3U));
}

TEST(Merge, SecondSamplingOfTheSameLatentsStaysJoined) {
    std::vector<json::object> jobs(2, high_resolution());
    input(jobs[0], "5", "batch_size") = 1;
    input(jobs[1], "again", "seed") = 8;
    const auto merged = merge_all(jobs);
    ASSERT_TRUE(merged) << merged.error().message;
    EXPECT_EQ(nodes_of(*merged, "KSampler").size(), 2U);
    EXPECT_EQ(nodes_of(*merged, "LatentUpscaleBy").size(), 1U);
    const auto latents = nodes_of(*merged, "ComfydLatentBatch");
    ASSERT_EQ(latents.size(), 2U);
    EXPECT_FALSE(latents[1].contains("latent1"));
    EXPECT_EQ(at(latents[1], "jobs"), R"("5:1,8:2")");
    expect_jobs_kept(*merged, jobs);
}

TEST(Merge, SecondSamplingAfterPicturesJoinsAgain) {
    std::vector<json::object> jobs(2, high_resolution());
    for (json::object& job : jobs) {
        job["look"] = json::value(job.at("8"));
        input(job, "look", "samples") = json::array{"3", 0};
        job["large"] = parsed(R"({"class_type": "ImageScaleBy", "inputs": {"image": ["look", 0],
            "upscale_method": "area", "scale_by": 2.0}})");
        job["larger"] = parsed(
            R"({"class_type": "VAEEncode", "inputs": {"pixels": ["large", 0], "vae": ["4", 2]}})"
        );
    }
    input(jobs[1], "6", "text") = "a dog";
    const auto merged = merge_all(jobs);
    ASSERT_TRUE(merged) << merged.error().message;
    EXPECT_EQ(nodes_of(*merged, "KSampler").size(), 2U);
    EXPECT_TRUE(nodes_of(*merged, "ComfydLatentBatch").at(1).contains("latent1"));
    expect_jobs_kept(*merged, jobs);
}

TEST(Merge, WorkOnPicturesIsDoneForEachJob) {
    std::vector<json::object> jobs(2, text_to_image());
    for (json::object& job : jobs) {
        job["half"] = parsed(R"({"class_type": "ImageBlur", "inputs": {"image": ["8", 0],
            "blur_radius": 1, "sigma": 1.0}})");
        job["look"] =
            parsed(R"({"class_type": "PreviewImage", "inputs": {"images": ["half", 0]}})");
    }
    const auto merged = merge_all(jobs);
    ASSERT_TRUE(merged) << merged.error().message;
    EXPECT_EQ(nodes_of(*merged, "VAEDecode").size(), 1U);
    EXPECT_EQ(nodes_of(*merged, "ImageBlur").size(), 2U);
    const auto saved = nodes_of(*merged, "ComfydSaveImage");
    EXPECT_EQ(saved.size(), 4U);
    EXPECT_EQ(
        std::ranges::count(
            saved,
            json::value(true),
            [](const json::object& inputs) { return inputs.at("preview"); }
        ),
        2
    );
    EXPECT_EQ(nodes_of(*merged, "ImageFromBatch").size(), 2U);
    expect_jobs_kept(*merged, jobs);
}

TEST(Merge, NodesThatNothingNeedsAreLeftOut) {
    json::object job = text_to_image();
    job["spare"] = parsed(R"({"class_type": "VAELoader", "inputs": {"vae_name": "x"}})");
    const auto merged = merge_all({job, job});
    ASSERT_TRUE(merged);
    EXPECT_THAT(nodes_of(*merged, "VAELoader"), IsEmpty());
}

TEST(Merge, NumbersAreEqualHoweverTheyAreWritten) {
    std::vector<json::object> jobs(2, sdxl());
    input(jobs[0], "lora", "strength_model") = 1;
    input(jobs[1], "lora", "strength_model") = 1.0;
    const auto merged = merge_all(jobs);
    ASSERT_TRUE(merged) << merged.error().message;
    EXPECT_EQ(nodes_of(*merged, "LoraLoader").size(), 1U);
}

}  // namespace
}  // namespace comfyd::workflow
