#include "workflow/plan/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "workflow/rules/stages_test_support.hpp"

namespace comfyd::workflow {
namespace {

using test::flux;
using test::input;
using test::parsed;
using test::recorded_catalogue;
using test::text_to_image;
using testing::ElementsAre;

Plan plan(const json::object& workflow, const PlanOptions& options = {}) {
    return make_plan(Graph(workflow), recorded_catalogue(), options);
}

// The same workflow with other ids and the keys the other way round.
json::object disguised(const json::object& workflow) {
    json::object made;
    std::vector<std::pair<std::string, json::object>> nodes;
    for (const auto& entry : workflow) {
        json::object inputs;
        const json::object& from = entry.value().at("inputs").as_object();
        for (auto input = from.end(); input != from.begin();) {
            --input;
            json::value value = input->value();
            if (value.is_array()) {
                value.as_array()[0] = "node " + std::string(value.as_array()[0].as_string());
            }
            inputs[input->key()] = std::move(value);
        }
        nodes.emplace_back(
            "node " + std::string(entry.key()),
            json::object{
                {"_meta", {{"title", "another"}}},
                {"inputs", std::move(inputs)},
                {"class_type", entry.value().at("class_type")}
            }
        );
    }
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
        made[node->first] = std::move(node->second);
    }
    return made;
}

TEST(Fingerprint, DependsOnWhatIsDoneNotOnHowItIsWritten) {
    const Plan first = plan(text_to_image());
    const Plan second = plan(disguised(text_to_image()));
    EXPECT_EQ(first.fingerprint.size(), 64U);
    EXPECT_EQ(first.fingerprint, second.fingerprint);
    EXPECT_EQ(first.batch_key, second.batch_key);
    EXPECT_NE(first.fingerprint, first.batch_key);
}

TEST(Fingerprint, EveryValueAndLinkCounts) {
    const std::string original = plan(text_to_image()).fingerprint;
    const auto changed = [](const char* node, const char* name, json::value value) {
        json::object workflow = text_to_image();
        input(workflow, node, name) = std::move(value);
        return plan(workflow).fingerprint;
    };
    EXPECT_NE(changed("3", "seed", 6), original);
    EXPECT_NE(changed("6", "text", "a dog"), original);
    EXPECT_NE(changed("3", "positive", json::array{"7", 0}), original);
    EXPECT_NE(changed("8", "vae", json::array{"4", 1}), original);
    EXPECT_EQ(changed("3", "cfg", 8), original);  // 8 is 8.0
    EXPECT_NE(changed("3", "cfg", 8.5), original);
    EXPECT_NE(changed("3", "seed", "5"), original);
}

TEST(Fingerprint, InputFilesCountByTheirContent) {
    const auto of = [](const char* name) {
        json::object workflow = parsed(R"({
            "1": {"class_type": "LoadImage", "inputs": {"image": ""}},
            "2": {"class_type": "PreviewImage", "inputs": {"images": ["1", 0]}}})");
        input(workflow, "1", "image") = name;
        PlanOptions options;
        options.input_hashes = [](std::string_view file) -> std::optional<std::string> {
            return file == "c.png" ? std::nullopt : std::optional<std::string>("blake3:1");
        };
        return plan(workflow, options);
    };
    EXPECT_EQ(of("a.png").fingerprint, of("b.png").fingerprint);
    EXPECT_NE(of("a.png").fingerprint, of("c.png").fingerprint);
    EXPECT_EQ(of("a.png").batch_key, of("c.png").batch_key);
}

TEST(Fingerprint, UnneededNodesDoNotCount) {
    json::object workflow = text_to_image();
    workflow["x"] = parsed(R"({"class_type": "CLIPTextEncode",
        "inputs": {"text": "unused", "clip": ["4", 1]}})");
    EXPECT_EQ(plan(workflow).fingerprint, plan(text_to_image()).fingerprint);
}

TEST(BatchKey, TextsSeedsAndBatchSizesMayDiffer) {
    json::object workflow = text_to_image();
    input(workflow, "6", "text") = "a dog";
    input(workflow, "3", "seed") = 77;
    input(workflow, "5", "batch_size") = 1;
    input(workflow, "9", "filename_prefix") = "mine";
    EXPECT_EQ(plan(workflow).batch_key, plan(text_to_image()).batch_key);
    for (const auto& [node, name, value] :
         {std::tuple("3", "steps", json::value(21)),
          std::tuple("5", "width", json::value(640)),
          std::tuple("4", "ckpt_name", json::value("sd_xl_base_1.0.safetensors")),
          std::tuple("3", "sampler_name", json::value("heun"))}) {
        json::object other = text_to_image();
        input(other, node, name) = value;
        EXPECT_NE(plan(other).batch_key, plan(text_to_image()).batch_key) << name;
    }
}

TEST(PlanModels, KindsComeFromLoadersAndLists) {
    json::object workflow = flux();
    input(workflow, "text", "text") = "a fox, embedding:easynegative, (embedding:other:1.2)";
    PlanOptions options;
    options.model_sizes = [](ModelKind kind, std::string_view) {
        return kind == ModelKind::vae ? std::optional<std::uint64_t>(335'304'388) : std::nullopt;
    };
    const Plan made = plan(workflow, options);
    std::vector<std::string> models;
    for (const ModelNeed& model : made.models) {
        models.push_back(std::string(to_string(model.kind)) + " " + model.name);
        EXPECT_GT(model.estimated_bytes, 0U);
        EXPECT_EQ(model.size_bytes.has_value(), model.kind == ModelKind::vae);
    }
    EXPECT_THAT(
        models,
        ElementsAre(
            "unet flux1-dev-fp8.safetensors",
            "lora detail.safetensors",
            "embedding easynegative",
            "embedding other",
            "clip t5xxl_fp16.safetensors",
            "clip clip_l.safetensors",
            "vae ae.safetensors"
        )
    );
    EXPECT_EQ(made.family, ModelFamily::flux);
    EXPECT_EQ(model_kind("UpscaleModelLoader", "model_name"), ModelKind::upscale);
    EXPECT_EQ(model_kind("CLIPVisionLoader", "clip_name"), ModelKind::clip_vision);
    EXPECT_EQ(model_kind("ControlNetLoader", "control_net_name"), ModelKind::controlnet);
    EXPECT_FALSE(model_kind("KSampler", "sampler_name"));
}

TEST(PlanWork, GrowsWithStepsPixelsBatchAndModel) {
    const Plan small = plan(text_to_image());
    ASSERT_EQ(small.sampling.size(), 1U);
    EXPECT_EQ(small.sampling[0].steps, 20);
    EXPECT_EQ(small.sampling[0].width, 512);
    EXPECT_EQ(small.sampling[0].height, 768);
    EXPECT_EQ(small.sampling[0].batch_size, 2);
    EXPECT_DOUBLE_EQ(small.sampling[0].work_units, 20 * 1.5 * 2);
    EXPECT_EQ(small.family, ModelFamily::sd15);
    EXPECT_GT(small.run_seconds, 1);
    EXPECT_GT(small.vram_bytes, 2'000'000'000U);
    const auto more = [&](const char* node, const char* name, json::value value) {
        json::object workflow = text_to_image();
        input(workflow, node, name) = std::move(value);
        const Plan large = plan(workflow);
        EXPECT_GT(large.work_units, small.work_units) << name;
        EXPECT_GT(large.run_seconds, small.run_seconds) << name;
        EXPECT_GT(large.cost_usd, small.cost_usd) << name;
        return large;
    };
    more("3", "steps", 40);
    EXPECT_GT(more("5", "width", 1024).vram_bytes, small.vram_bytes);
    EXPECT_GT(more("5", "batch_size", 8).vram_bytes, small.vram_bytes);
    EXPECT_GT(more("4", "ckpt_name", "sd_xl_base_1.0.safetensors").vram_bytes, small.vram_bytes);
}

TEST(PlanWork, PartsOfASamplingCountAsParts) {
    json::object workflow = text_to_image();
    workflow.at("3").as_object()["class_type"] = "KSamplerAdvanced";
    input(workflow, "3", "start_at_step") = 5;
    input(workflow, "3", "end_at_step") = 10'000;
    EXPECT_EQ(plan(workflow).sampling.at(0).steps, 15);
}

TEST(PlanWork, OddNumbersAreBounded) {
    for (const json::value& odd :
         {json::value(-5),
          json::value(1e300),
          json::value("many"),
          json::value(nullptr),
          json::value(json::array{"3", 0})}) {
        json::object workflow = text_to_image();
        for (const char* name : {"width", "height", "batch_size"}) {
            input(workflow, "5", name) = odd;
        }
        input(workflow, "3", "steps") = odd;
        const Plan made = make_plan(Graph(workflow), Catalogue({}));
        EXPECT_TRUE(std::isfinite(made.work_units));
        EXPECT_GE(made.work_units, 0);
    }
}

TEST(PlanWeights, SumUpToOneAndTheSamplerIsMost) {
    const json::object workflow = text_to_image();
    const Graph graph(workflow);
    const Plan made = plan(workflow);
    EXPECT_NEAR(std::accumulate(made.weights.begin(), made.weights.end(), 0.0), 1, 1e-9);
    EXPECT_GT(made.weights[graph.find("3")], 0.5);
}

TEST(PlanStages, NodesOfAStageNeedOnlyEarlierOnes) {
    EXPECT_THAT(
        plan(text_to_image()).stages,
        ElementsAre(
            testing::UnorderedElementsAre("4", "5"),
            testing::UnorderedElementsAre("6", "7"),
            ElementsAre("3"),
            ElementsAre("8"),
            ElementsAre("9")
        )
    );
}

TEST(PlanTime, HistoryTakesThePlaceOfTheHeuristic) {
    PlanOptions options;
    options.gpu_second_usd = 1;
    std::string asked;
    options.history = [&](const Graph& graph, const Plan& so_far) {
        asked = so_far.batch_key;
        EXPECT_EQ(graph.size(), text_to_image().size());
        EXPECT_GT(so_far.work_units, 0);
        EXPECT_GT(so_far.run_seconds, 0) << "the heuristic's";
        return std::optional(PastDuration{7, "similar", 0.5});
    };
    const Plan made = plan(text_to_image(), options);
    EXPECT_EQ(asked, made.batch_key);
    EXPECT_EQ(made.estimate_basis, "similar");
    EXPECT_EQ(made.confidence, 0.5);
    EXPECT_EQ(made.run_seconds, 7);
    EXPECT_GE(made.cost_usd, 7);
    const json::object workflow = text_to_image();
    EXPECT_EQ(made.to_json(Graph(workflow)).at("estimate_basis"), "similar");
}

TEST(GraphShape, CyclesAndLevels) {
    const json::object workflow = parsed(R"({
        "a": {"class_type": "A", "inputs": {"x": ["b", 0]}},
        "b": {"class_type": "A", "inputs": {"x": ["a", 0]}},
        "c": {"class_type": "A", "inputs": {"x": ["b", 0], "y": ["d", 0], "z": ["gone", 0]}},
        "d": {"class_type": "A", "inputs": {}}
    })");
    const Graph graph(workflow);
    EXPECT_TRUE(graph.has_cycle());
    EXPECT_EQ(graph.order().size(), 1U);
    EXPECT_EQ(graph.links(graph.find("c")).size(), 2U);
    EXPECT_THAT(graph.ends(), ElementsAre(graph.find("c")));
    EXPECT_EQ(graph.find("gone"), Graph::kNone);
    EXPECT_EQ(make_plan(graph, Catalogue({})).fingerprint, "");
}

}  // namespace
}  // namespace comfyd::workflow
