#include "scheduler/predictor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

namespace comfyd::scheduler {
namespace {

Profile make_profile(const std::string& shape, double units = 100) {
    Profile profile;
    profile.requirement = Requirement::decode(
        "CLIPTextEncode\nCheckpointLoaderSimple\nEmptyLatentImage\nKSampler\nSaveImage\nVAEDecode"
    );
    profile.shape = shape;
    profile.work_units = units;
    profile.heuristic_seconds = units * 0.05;
    profile.vram_bytes = 8'000'000'000;
    profile.models = {{"checkpoint/a.safetensors", 6'000'000'000}};
    return profile;
}

void add(Profile& profile, const std::string& needs) {
    profile.requirement = Requirement::decode(profile.requirement.encoded() + needs);
}

void run(Predictor& predictor, const Profile& profile, const std::string& gpu, double seconds) {
    predictor.learn({profile, gpu, "w1", seconds, {}});
}

TEST(Predictor, KnowsNothingAtFirstAndSaysSo) {
    const Predictor predictor;
    const auto profile = make_profile("s");
    const auto expected = predictor.expect_run(profile, "L40S");
    EXPECT_DOUBLE_EQ(expected.seconds, 5);
    EXPECT_EQ(expected.basis, Basis::heuristic);
    EXPECT_LT(expected.confidence(), 0.5);
    EXPECT_EQ(predictor.vram_bytes(profile, "L40S"), profile.vram_bytes);
    EXPECT_FALSE(predictor.knows_runs(profile, "L40S"));
    EXPECT_NEAR(predictor.load_seconds(profile.models[0], "L40S", "w1"), 4, 1e-9);
}

TEST(Predictor, HistoryOfTheSameShapeAndTypeCountsFirst) {
    Predictor predictor;
    const auto profile = make_profile("s");
    run(predictor, profile, "L40S", 9);
    const double unsure = predictor.expect_run(profile, "L40S").relative_error;
    for (int i = 0; i < 5; ++i) {
        run(predictor, profile, "L40S", 10);
    }
    const auto expected = predictor.expect_run(profile, "L40S");
    EXPECT_NEAR(expected.seconds, 10, 0.01);
    EXPECT_EQ(expected.basis, Basis::history);
    EXPECT_TRUE(predictor.knows_runs(profile, "L40S"));
    EXPECT_FALSE(predictor.knows_runs(make_profile(""), "L40S")) << "nothing to know it again by";
    EXPECT_LT(expected.relative_error, unsure);
    EXPECT_GT(expected.confidence(), 0.8);
}

TEST(Predictor, FourOfNineSamplesMayBeArbitrarilyWrong) {
    Predictor predictor;
    const auto profile = make_profile("s");
    for (const double seconds : {10.0, 4000.0, 10.5, 0.001, 9.8, 600000.0, 10.2, 3000.0, 10.1}) {
        run(predictor, profile, "L40S", seconds);
    }
    EXPECT_NEAR(predictor.run_seconds(profile, "L40S"), 10.2, 0.01);
}

TEST(Predictor, FollowsARealChange) {
    Predictor predictor;
    const auto profile = make_profile("s");
    for (int i = 0; i < 50; ++i) {
        run(predictor, profile, "L40S", 10);
    }
    for (int i = 0; i < 5; ++i) {
        run(predictor, profile, "L40S", 20);
    }
    EXPECT_NEAR(predictor.run_seconds(profile, "L40S"), 20, 0.1);
}

TEST(Predictor, AnotherTypeOfGpuIsScaledByTheLearnedRatio) {
    Predictor predictor;
    const auto known = make_profile("known");
    run(predictor, known, "L40S", 10);
    run(predictor, known, "H200", 4);
    const auto fresh = make_profile("fresh", 30);
    run(predictor, fresh, "L40S", 3);
    const auto expected = predictor.expect_run(fresh, "H200");
    EXPECT_NEAR(expected.seconds, 1.2, 0.01);
    EXPECT_EQ(expected.basis, Basis::other_gpu);
    run(predictor, make_profile("other way", 30), "H200", 2);
    EXPECT_NEAR(predictor.run_seconds(make_profile("other way", 30), "L40S"), 5, 0.05);
}

TEST(Predictor, TypesOfGpuAreAsFastAsTheirRunsOfTheSame) {
    Predictor predictor;
    EXPECT_TRUE(predictor.gpu_speeds().empty());
    const auto known = make_profile("known");
    run(predictor, known, "L40S", 10);
    EXPECT_EQ(predictor.gpu_speeds().size(), 1U);
    run(predictor, known, "H200", 4);
    const auto speeds = predictor.gpu_speeds();
    EXPECT_NEAR(speeds.at("H200") / speeds.at("L40S"), 2.5, 0.01);
}

TEST(Predictor, SimilarWorkflowsAreScaledByTheirWork) {
    Predictor predictor;
    run(predictor, make_profile("a", 100), "L40S", 12);
    auto larger = make_profile("b", 200);
    add(larger, "\nPreviewImage");  // 6 of 7 classes in common
    auto expected = predictor.expect_run(larger, "L40S");
    EXPECT_NEAR(expected.seconds, 24, 0.01);
    EXPECT_EQ(expected.basis, Basis::similar);
    add(larger, "\nA\nB");  // 6 of 9
    expected = predictor.expect_run(larger, "L40S");
    EXPECT_EQ(expected.basis, Basis::heuristic);
    EXPECT_NEAR(expected.seconds, 200 * 0.05 * 12 / 5, 0.01) << "what the type is off by is known";
}

TEST(Predictor, ChoicesInTheRequirementAreNoClasses) {
    Predictor predictor;
    run(predictor, make_profile("a", 100), "L40S", 12);
    auto other = make_profile("b", 100);
    add(other, "\nCheckpointLoaderSimple\tckpt_name\tb.safetensors\nKSampler\tx\ty");
    EXPECT_EQ(predictor.expect_run(other, "L40S").basis, Basis::similar);
}

TEST(Predictor, LoadsAreLearnedByModelAndWorkerThenByTypeThenByBytes) {
    Predictor predictor;
    const auto profile = make_profile("s");
    run(predictor, profile, "L40S", 2);
    predictor.learn({profile, "L40S", "w1", 14, profile.models});
    EXPECT_NEAR(predictor.load_seconds(profile.models[0], "L40S", "w1"), 12, 0.01);
    EXPECT_NEAR(predictor.load_seconds(profile.models[0], "L40S", "w2"), 12, 0.01);
    const Model half{"checkpoint/b.safetensors", 3'000'000'000};
    EXPECT_NEAR(predictor.load_seconds(half, "L40S", "w1"), 6, 0.01);
    EXPECT_NEAR(predictor.load_seconds(half, "L40S", "w9"), 6, 0.01);
    EXPECT_NEAR(predictor.load_seconds(half, "H200", "w9"), 2, 0.01);
    EXPECT_NEAR(predictor.run_seconds(profile, "L40S"), 2, 0.01) << "loading is no part of a run";
}

TEST(Predictor, MeasuredLoadsAreTakenApart) {
    Predictor predictor;
    const auto profile = make_profile("s");
    predictor.learn({profile, "L40S", "w1", 14, profile.models, 11.0});
    EXPECT_NEAR(predictor.load_seconds(profile.models[0], "L40S", "w1"), 11, 0.01);
    EXPECT_NEAR(predictor.run_seconds(profile, "L40S"), 3, 0.01);
}

TEST(Predictor, ACleanRunReplacesWhatWasGuessedFromRunsWithLoads) {
    Predictor predictor;
    const auto profile = make_profile("s");
    for (int i = 0; i < 9; ++i) {
        predictor.learn({profile, "L40S", "w1", 90, profile.models});
    }
    const auto guessed = predictor.expect_run(profile, "L40S");
    EXPECT_LT(guessed.confidence(), 0.8);
    run(predictor, profile, "L40S", 2);
    EXPECT_NEAR(predictor.run_seconds(profile, "L40S"), 2, 0.01);
}

TEST(Predictor, ALoadThatItsNodesDoNotShowIsWhatARunTakesMore) {
    Predictor predictor;
    const auto profile = make_profile("s");
    const Model half{"checkpoint/b.safetensors", 3'000'000'000};
    predictor.learn({profile, "L40S", "w1", 105, profile.models, 2.0});
    EXPECT_GT(predictor.load_seconds(profile.models[0], "L40S", "w1"), 30) << "not two";
    EXPECT_NEAR(predictor.load_seconds(half, "L40S", "w1"), 2, 0.01) << "a guess teaches no others";
    run(predictor, profile, "L40S", 5);
    EXPECT_NEAR(predictor.load_seconds(profile.models[0], "L40S", "w1"), 100, 0.1);
    EXPECT_NEAR(predictor.load_seconds(half, "L40S", "w1"), 50, 0.1);
    for (int i = 0; i < 9; ++i) {
        predictor.learn({profile, "L40S", "w1", 95, profile.models, 0.5});
    }
    EXPECT_NEAR(predictor.load_seconds(profile.models[0], "L40S", "w1"), 90, 0.1);
    EXPECT_NEAR(predictor.run_seconds(profile, "L40S"), 5, 0.01);
}

TEST(Predictor, AShortLoadThatIsMeasuredIsBelieved) {
    Predictor predictor;
    const auto profile = make_profile("s");
    run(predictor, profile, "L40S", 20);
    predictor.learn({profile, "L40S", "w1", 22.5, profile.models, 1.0});
    EXPECT_NEAR(predictor.load_seconds(profile.models[0], "L40S", "w1"), 1, 0.01);
}

TEST(Predictor, WhatAFailureSaysThatItWantedIsBelieved) {
    Predictor predictor;
    const auto profile = make_profile("s");
    predictor.learn_out_of_memory(profile, "L40S", 9'000'000'000);
    EXPECT_EQ(predictor.vram_bytes(profile, "L40S"), 10'000'000'000) << "a quarter more at least";
    predictor.learn_out_of_memory(profile, "L40S", 48'000'000'000);
    EXPECT_EQ(predictor.vram_bytes(profile, "L40S"), 48'000'000'000);
}

TEST(Predictor, MemoryRisesAfterAFailureAndFallsSlowly) {
    Predictor predictor;
    const auto profile = make_profile("s");
    predictor.learn_out_of_memory(profile, "L40S");
    EXPECT_EQ(predictor.vram_bytes(profile, "L40S"), 10'000'000'000);
    EXPECT_EQ(predictor.vram_bytes(profile, "H200"), 10'000'000'000) << "the need is the job's";
    predictor.learn_out_of_memory(profile, "L40S");
    EXPECT_EQ(predictor.vram_bytes(profile, "L40S"), 12'500'000'000);
    RunReport report{profile, "L40S", "w1", 2, {}};
    report.peak_vram_bytes = 9'000'000'000;
    predictor.learn(report);
    EXPECT_LT(predictor.vram_bytes(profile, "L40S"), 12'500'000'000U);
    EXPECT_GT(predictor.vram_bytes(profile, "L40S"), 12'000'000'000U);
    report.peak_vram_bytes = 20'000'000'000;
    predictor.learn(report);
    EXPECT_EQ(predictor.vram_bytes(profile, "L40S"), 21'000'000'000U) << "more is believed at once";
}

TEST(Predictor, TheVersionChangesWithTheAnswers) {
    Predictor predictor;
    const auto profile = make_profile("s");
    const auto first = predictor.version();
    run(predictor, profile, "L40S", 20);
    const auto second = predictor.version();
    EXPECT_NE(second, first);
    run(predictor, profile, "L40S", 20.1);
    EXPECT_EQ(predictor.version(), second) << "hardly anything changed";
}

TEST(Predictor, SmallStepsInOneDirectionAreToldToo) {
    Predictor predictor;
    const auto profile = make_profile("s");
    RunReport report{profile, "L40S", "w1", 2, {}};
    report.peak_vram_bytes = 29'000'000'000;
    predictor.learn(report);
    auto version = predictor.version();
    auto told_bytes = predictor.vram_bytes(profile, "L40S");
    auto told_s = predictor.run_seconds(profile, "L40S");
    report.peak_vram_bytes = 3'000'000'000;
    for (int i = 0; i < 200; ++i) {
        report.seconds *= 1.01;
        predictor.learn(report);
        if (predictor.version() != version) {
            version = predictor.version();
            told_bytes = predictor.vram_bytes(profile, "L40S");
            told_s = predictor.run_seconds(profile, "L40S");
        }
        ASSERT_LT(told_bytes, 1.12 * static_cast<double>(predictor.vram_bytes(profile, "L40S")));
        ASSERT_NEAR(told_s / predictor.run_seconds(profile, "L40S"), 1, 0.12);
    }
    EXPECT_LT(told_bytes, 3'600'000'000U);
}

TEST(Predictor, LearnsWhatJobsTakeTogether) {
    Predictor predictor;
    const auto profile = make_profile("s");
    run(predictor, profile, "L40S", 2);
    EXPECT_EQ(predictor.batch_seconds(profile, "L40S", 1), predictor.run_seconds(profile, "L40S"));
    const double guessed = predictor.batch_seconds(profile, "L40S", 8);
    EXPECT_GT(guessed, 2);
    EXPECT_LT(guessed, 16);
    EXPECT_EQ(predictor.batched_bytes(profile, "L40S"), 2'000'000'000U) << "all but the models";
    RunReport together{profile, "L40S", "w1", 9, {}};
    together.jobs = 5;
    together.peak_vram_bytes = 10'000'000'000;
    const auto before = predictor.version();
    for (int i = 0; i < 100; ++i) {
        predictor.learn(together);
    }
    EXPECT_NE(predictor.version(), before);
    EXPECT_NEAR(predictor.batch_seconds(profile, "L40S", 5), 9, 0.01);
    EXPECT_NEAR(predictor.batch_seconds(profile, "L40S", 3), 5.5, 0.01) << "half of the way";
    EXPECT_NEAR(predictor.batch_seconds(profile, "L40S", 7), 12.5, 0.01) << "goes on like that";
    EXPECT_NEAR(predictor.run_seconds(profile, "L40S"), 2, 0.01) << "alone as before";
    EXPECT_NEAR(static_cast<double>(predictor.batched_bytes(profile, "L40S")), 2.5e9 / 4, 1e7);
    EXPECT_EQ(predictor.vram_bytes(profile, "L40S"), 8'000'000'000U);
    together.peak_vram_bytes = 40'000'000'000;
    predictor.learn(together);
    EXPECT_EQ(predictor.batched_bytes(profile, "L40S"), 34'000'000'000U / 4) << "more at once";
}

TEST(Predictor, MergedRunsTeachSomethingOfOneAlone) {
    Predictor predictor;
    const auto profile = make_profile("s");
    RunReport together{profile, "L40S", "w1", 12, {}};
    together.jobs = 8;
    predictor.learn(together);
    EXPECT_EQ(predictor.gpu_types(), std::vector<std::string>{"L40S"});
    const auto expected = predictor.expect_run(profile, "L40S");
    EXPECT_EQ(expected.basis, Basis::history);
    EXPECT_LT(expected.seconds, 12);
    EXPECT_GT(expected.seconds, 1.5);
    run(predictor, profile, "L40S", 3);
    EXPECT_NEAR(predictor.run_seconds(profile, "L40S"), 3, 0.01);
}

TEST(Predictor, ImpossibleReportsAreIgnored) {
    Predictor predictor;
    const auto profile = make_profile("s");
    for (const double seconds : {0.0, -3.0, std::nan(""), HUGE_VAL, 1e12}) {
        run(predictor, profile, "L40S", seconds);
        predictor.learn({profile, "L40S", "w1", seconds, profile.models});
    }
    EXPECT_EQ(predictor.expect_run(profile, "L40S").basis, Basis::heuristic);
    auto empty = Profile();
    run(predictor, empty, "", 3);
    EXPECT_GT(predictor.run_seconds(empty, ""), 0);
}

TEST(Predictor, ForgetsTheOldestShapes) {
    Predictor::Limits limits;
    limits.shapes = 10;
    Predictor predictor(limits);
    for (int i = 0; i < 100; ++i) {
        auto profile = make_profile("s" + std::to_string(i));
        profile.requirement = {};
        run(predictor, profile, "L40S", 3);
    }
    EXPECT_EQ(predictor.to_json().at("shapes").as_array().size(), 10U);
    EXPECT_EQ(predictor.expect_run(make_profile("s99"), "L40S").basis, Basis::history);
    EXPECT_EQ(predictor.expect_run(make_profile("s1"), "L40S").basis, Basis::heuristic);
}

TEST(Predictor, SurvivesARestart) {
    Predictor predictor;
    const auto profile = make_profile("s");
    run(predictor, profile, "L40S", 7);
    run(predictor, profile, "H200", 3);
    predictor.learn({profile, "L40S", "w1", 19, profile.models});
    predictor.learn_out_of_memory(profile, "H200");
    for (const int jobs : {4, 4, 8, 8}) {
        RunReport together{profile, "L40S", "w1", 7.0 + jobs, {}};
        together.jobs = jobs;
        together.peak_vram_bytes = 30'000'000'000;
        predictor.learn(together);
    }
    Predictor restored;
    ASSERT_TRUE(restored.restore(*json::parse_object(json::serialize(predictor.to_json()))));
    for (const char* gpu : {"L40S", "H200", "unknown"}) {
        EXPECT_NEAR(
            restored.run_seconds(profile, gpu) / predictor.run_seconds(profile, gpu), 1, 1e-3
        );
        EXPECT_EQ(restored.vram_bytes(profile, gpu), predictor.vram_bytes(profile, gpu));
        EXPECT_EQ(restored.batched_bytes(profile, gpu), predictor.batched_bytes(profile, gpu));
        EXPECT_NEAR(
            restored.batch_seconds(profile, gpu, 6) / predictor.batch_seconds(profile, gpu, 6),
            1,
            1e-3
        );
        EXPECT_NEAR(
            restored.load_seconds(profile.models[0], gpu, "w1"),
            predictor.load_seconds(profile.models[0], gpu, "w1"),
            0.01
        );
        const auto other = make_profile("other", 50);
        EXPECT_NEAR(restored.run_seconds(other, gpu) / predictor.run_seconds(other, gpu), 1, 1e-3);
    }
    EXPECT_EQ(json::serialize(restored.to_json()), json::serialize(predictor.to_json()));
}

TEST(Predictor, ADamagedDocumentIsReadAsFarAsItGoes) {
    Predictor predictor;
    EXPECT_FALSE(predictor.restore(json::object()));
    EXPECT_FALSE(predictor.restore({{"version", 99}}));
    const auto damaged = json::parse_object(R"({"version": 1,
        "shapes": [3, [], ["s"], ["s", 4], ["s", [["L40S", 1, "x", [1e300, "a", null, 2]], [4]]]],
        "class_sets": [["k", 5, 6], ["k", [1, "x"], [["L40S", {}]]]],
        "gpu_types": {"a": 1}, "loads": [["a", [1]], ["b"]], "load_rates": null})");
    ASSERT_TRUE(damaged);
    ASSERT_TRUE(predictor.restore(*damaged));
    EXPECT_NEAR(predictor.run_seconds(make_profile("s"), "L40S"), std::exp(2), 0.01);
}

TEST(RemainingTime, TrustsTheExpectationFirstAndTheRunLater) {
    const Expectation whole{100, 0.2, Basis::history};
    EXPECT_NEAR(remaining_time(whole, 0, 0).seconds, 100, 1e-6);
    EXPECT_NEAR(remaining_time(whole, 50, 0.5).seconds, 50, 1);
    EXPECT_NEAR(remaining_time(whole, 160, 0.8).seconds, 40, 6) << "twice as slow as expected";
    EXPECT_GT(remaining_time(whole, 500, 0.3).seconds, 10) << "late, and far from done";
    EXPECT_GE(remaining_time(whole, 1e9, 0.999).seconds, 0);
    EXPECT_GT(remaining_time(whole, std::nan(""), std::nan("")).seconds, 0);
    EXPECT_GT(
        remaining_time(whole, 90, 0.9).confidence(), remaining_time(whole, 10, 0.1).confidence()
    );
}

// A day of a fleet whose true times are known: shapes of several sizes, two types of GPU, noise,
// and one run in twenty far off. The error is that of the estimate made before each run.
TEST(Calibration, OfAReplayedTrace) {
    std::mt19937_64 random(20'260'101);
    std::normal_distribution<double> noise(0, 0.06);
    std::uniform_real_distribution<double> uniform(0, 1);
    const std::map<std::string, double> seconds_per_unit{{"L40S", 0.11}, {"H200", 0.04}};
    Predictor predictor;
    std::vector<double> errors;
    std::vector<double> sure_errors;
    std::size_t within = 0;
    for (int i = 0; i < 4'000; ++i) {
        const auto shape = static_cast<int>(200 * std::pow(uniform(random), 3));
        auto profile = make_profile("s" + std::to_string(shape), 20 + shape * 2);
        // What the heuristic does not see: shapes differ in how far it is off.
        const double own = std::exp(0.5 * std::sin(shape * 1.7));
        const std::string gpu = uniform(random) < 0.7 ? "L40S" : "H200";
        double truth =
            profile.work_units * seconds_per_unit.at(gpu) * own * std::exp(noise(random));
        const auto expected = predictor.expect_run(profile, gpu);
        const double error = std::abs(expected.seconds - truth) / truth;
        errors.push_back(error);
        within += std::abs(std::log(expected.seconds / truth)) < std::log1p(expected.relative_error)
                      ? 1U
                      : 0U;
        if (expected.basis == Basis::history) {
            sure_errors.push_back(error);
        }
        truth *= uniform(random) < 0.05 ? 5 + 20 * uniform(random) : 1;
        run(predictor, profile, gpu, truth);
    }
    const auto median = [](std::vector<double> of) {
        std::nth_element(of.begin(), of.begin() + static_cast<long>(of.size() / 2), of.end());
        return of[of.size() / 2];
    };
    EXPECT_LT(median(errors), 0.07);
    EXPECT_LT(median(sure_errors), 0.06);
    EXPECT_GT(sure_errors.size(), errors.size() * 8 / 10);
    // The stated error holds at least as often as it says.
    EXPECT_GT(static_cast<double>(within) / static_cast<double>(errors.size()), 0.66);
    RecordProperty("median_error_percent", static_cast<int>(1000 * median(errors)));
}

}  // namespace
}  // namespace comfyd::scheduler
