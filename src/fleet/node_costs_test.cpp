#include "fleet/node_costs.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "fleet/progress.hpp"

namespace comfyd::fleet {
namespace {

json::object text_to_image(int steps, int side) {
    auto prompt = json::parse_object(R"({
        "4": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "sd15.safetensors"}},
        "5": {"class_type": "EmptyLatentImage", "inputs": {"batch_size": 1}},
        "6": {"class_type": "CLIPTextEncode", "inputs": {"text": "a cat", "clip": ["4", 1]}},
        "7": {"class_type": "CLIPTextEncode", "inputs": {"text": "bad", "clip": ["4", 1]}},
        "3": {"class_type": "KSampler", "inputs": {"seed": 1, "cfg": 8, "sampler_name": "euler",
            "scheduler": "normal", "denoise": 1, "model": ["4", 0], "positive": ["6", 0],
            "negative": ["7", 0], "latent_image": ["5", 0]}},
        "8": {"class_type": "VAEDecode", "inputs": {"samples": ["3", 0], "vae": ["4", 2]}},
        "9": {"class_type": "SaveImage", "inputs": {"images": ["8", 0], "filename_prefix": "x"}}
    })");
    (*prompt)["3"].as_object()["inputs"].as_object()["steps"] = steps;
    (*prompt)["5"].as_object()["inputs"].as_object()["width"] = side;
    (*prompt)["5"].as_object()["inputs"].as_object()["height"] = side;
    return *prompt;
}

TEST(NodeCosts, LearnsByClassSizeAndTypeOfGpu) {
    NodeCosts costs;
    EXPECT_NEAR(costs.seconds("KSampler", 20, "L40S"), 1, 1e-9) << "nothing learned";
    for (int i = 0; i < 3; ++i) {
        costs.learn("KSampler", 20, "L40S", 4);
        costs.learn("KSampler", 20, "H200", 2);
        costs.learn("VAEDecode", 2, "L40S", 0.1);
    }
    EXPECT_NEAR(costs.seconds("KSampler", 20, "L40S"), 4, 0.01);
    EXPECT_NEAR(costs.seconds("KSampler", 20, "H200"), 2, 0.01);
    EXPECT_NEAR(costs.seconds("KSampler", 40, "L40S"), 8, 0.01) << "by work from another size";
    EXPECT_NEAR(costs.seconds("VAEDecode", 2, "L40S"), 0.1, 0.001);
    costs.learn("KSampler", 160, "L40S", 64);
    EXPECT_NEAR(costs.seconds("KSampler", 160, "L40S"), 64, 0.1) << "large ones on their own";
    EXPECT_NEAR(costs.seconds("KSampler", 20, "L40S"), 4, 0.01);
}

TEST(NodeCosts, OutliersDoNotCountAndNonsenseIsIgnored) {
    NodeCosts costs;
    for (const double seconds : {1.0, 1.0, 500.0, 1.0, std::nan(""), -4.0, HUGE_VAL, 1.0}) {
        costs.learn("KSampler", 20, "L40S", seconds);
    }
    costs.learn("KSampler", std::nan(""), "L40S", 1);
    EXPECT_NEAR(costs.seconds("KSampler", 20, "L40S"), 1, 0.01);
    EXPECT_GT(costs.seconds("KSampler", 0, "L40S"), 0);
}

TEST(NodeCosts, SurvivesARestart) {
    NodeCosts costs;
    costs.learn("KSampler", 20, "L40S", 4);
    costs.learn("VAEDecode", 2, "H200", 1);
    NodeCosts restored;
    ASSERT_TRUE(restored.restore(costs.to_json()));
    EXPECT_EQ(json::serialize(restored.to_json()), json::serialize(costs.to_json()));
    EXPECT_NEAR(restored.seconds("KSampler", 20, "L40S"), 4, 0.01);
    EXPECT_FALSE(restored.restore(json::object()));
    ASSERT_TRUE(restored.restore(*json::parse_object(
        R"({"version": 1, "classes": [1, ["a"], ["g\tKSampler", [[4, [1e9, "x"]], [900, [1]], 3]]],
            "gpu_types": {}})"
    )));
    EXPECT_NEAR(restored.seconds("KSampler", 20, "g"), 1, 1e-9);
}

// Runs of prompts whose true times are known. Progress is judged against the part of the time that
// has really passed, at every message.
TEST(Calibration, ProgressIsLinearInTime) {
    std::mt19937_64 random(7);
    std::normal_distribution<double> noise(0, 0.05);
    NodeCosts costs;
    // Far from what the plan assumes: decoding is dear, sampling cheap.
    const std::map<std::string, double, std::less<>> truth{
        {"CheckpointLoaderSimple", 0.2},
        {"EmptyLatentImage", 0.01},
        {"CLIPTextEncode", 0.1},
        {"VAEDecode", 3.0},
        {"SaveImage", 0.8}
    };
    double worst_first = 0;
    double worst = 0;
    for (int run = 0; run < 40; ++run) {
        const int steps = run % 2 == 0 ? 20 : 30;
        const auto prompt = text_to_image(steps, 512);
        NodeTimes times(costs, prompt, "L40S");
        ProgressTracker tracker(prompt, times.expected());
        std::vector<std::pair<double, double>> points;  // seconds, progress
        double now = 1'000;
        for (const char* node : {"4", "5", "6", "7", "3", "8", "9"}) {
            tracker.executing(node);
            times.at(node, now);
            points.emplace_back(now - 1'000, tracker.snapshot().value);
            if (std::string_view(node) == "3") {
                for (int step = 1; step <= steps; ++step) {
                    now += 0.1 * std::exp(noise(random));
                    tracker.stepped(node, step, steps);
                    points.emplace_back(now - 1'000, tracker.snapshot().value);
                }
            } else {
                now += truth.at(tracker.class_of(node)) * std::exp(noise(random));
            }
        }
        times.at("", now);
        double furthest = 0;
        for (const auto& [seconds, value] : points) {
            furthest = std::max(furthest, std::abs(value - seconds / (now - 1'000)));
        }
        worst_first = run == 0 ? furthest : worst_first;
        worst = run >= 4 ? std::max(worst, furthest) : worst;
    }
    EXPECT_GT(worst_first, 0.2) << "the assumption was meant to be wrong";
    EXPECT_LT(worst, 0.05);
}

}  // namespace
}  // namespace comfyd::fleet
