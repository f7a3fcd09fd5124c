// What looking at a workflow costs from its text to its plan, against a catalogue of 2,000 classes.
#include <benchmark/benchmark.h>

#include <string>

#include "workflow/catalogue/catalogue.hpp"
#include "workflow/parameters/parameters.hpp"
#include "workflow/rules/stages.hpp"

namespace comfyd::workflow {
namespace {

std::string object_info(int classes) {
    std::string files;
    for (int i = 0; i < 400; ++i) {
        files += (i > 0 ? ",\"" : "\"") + std::string("folder/model-") + std::to_string(i) +
                 ".safetensors\"";
    }
    std::string text = R"({
        "CheckpointLoaderSimple": {"input": {"required": {"ckpt_name": [[)" +
                       files + R"(]]}},
            "output": ["MODEL", "CLIP", "VAE"]},
        "LoraLoader": {"input": {"required": {"model": ["MODEL"], "clip": ["CLIP"],
            "lora_name": [[)" +
                       files + R"(]], "strength_model": ["FLOAT", {"min": -9, "max": 9}],
            "strength_clip": ["FLOAT", {"min": -9, "max": 9}]}}, "output": ["MODEL", "CLIP"]},
        "CLIPTextEncode": {"input": {"required": {"text": ["STRING", {"multiline": true}],
            "clip": ["CLIP"]}}, "output": ["CONDITIONING"]},
        "EmptyLatentImage": {"input": {"required": {"width": ["INT", {"min": 16, "max": 16384}],
            "height": ["INT", {"min": 16, "max": 16384}],
            "batch_size": ["INT", {"min": 1, "max": 4096}]}}, "output": ["LATENT"]},
        "VAEDecode": {"input": {"required": {"samples": ["LATENT"], "vae": ["VAE"]}},
            "output": ["IMAGE"]},
        "ImageScaleBy": {"input": {"required": {"image": ["IMAGE"],
            "upscale_method": [["nearest", "bilinear", "lanczos"]],
            "scale_by": ["FLOAT", {"min": 0.01, "max": 8.0}]}}, "output": ["IMAGE"]},
        "SaveImage": {"input": {"required": {"images": ["IMAGE"], "filename_prefix": ["STRING"]}},
            "output": [], "output_node": true})";
    const std::string sampler = R"({"input": {"required": {"model": ["MODEL"],
        "seed": ["INT", {"min": 0, "max": 18446744073709551615}],
        "steps": ["INT", {"min": 1, "max": 10000}], "cfg": ["FLOAT", {"min": 0.0, "max": 100.0}],
        "sampler_name": [["euler", "heun", "dpm_2", "lms", "ddim", "uni_pc"]],
        "scheduler": [["simple", "karras", "normal"]], "positive": ["CONDITIONING"],
        "negative": ["CONDITIONING"], "latent_image": ["LATENT"],
        "denoise": ["FLOAT", {"min": 0.0, "max": 1.0}]}}, "output": ["LATENT"]})";
    text += R"(, "KSampler": )" + sampler;
    for (int i = 8; i < classes; ++i) {
        text += R"(, "Other)" + std::to_string(i) + R"(": )" + sampler;
    }
    return text + "}";
}

std::string node(const std::string& id, const std::string& class_type, const std::string& inputs) {
    return "\"" + id + R"(": {"class_type": ")" + class_type + R"(", "inputs": {)" + inputs + "}}";
}

// Branches of nine nodes each behind one loader.
std::string workflow(int nodes) {
    std::string text =
        "{" + node("c", "CheckpointLoaderSimple", R"("ckpt_name": "folder/model-300.safetensors")");
    for (int i = 0; i * 9 + 1 < nodes; ++i) {
        const std::string n = std::to_string(i);
        const auto add = [&](const std::string& id, const char* type, const std::string& inputs) {
            text += ", " + node(id + n, type, inputs);
        };
        add("l", "LoraLoader", R"("model": ["c", 0], "clip": ["c", 1], "strength_model": 1,
            "strength_clip": 1, "lora_name": "folder/model-7.safetensors")");
        add("p", "CLIPTextEncode", R"("text": "a lighthouse at dawn", "clip": ["l)" + n + R"(", 1])"
        );
        add("n", "CLIPTextEncode", R"("text": "blurry", "clip": ["l)" + n + R"(", 1])");
        add("e", "EmptyLatentImage", R"("width": 512, "height": 512, "batch_size": 1)");
        const std::string settings =
            R"("seed": )" + n + R"(, "steps": 20, "cfg": 7, "sampler_name": "euler",
            "scheduler": "normal", "denoise": 1, "model": ["l)" +
            n + R"(", 0], "positive": ["p)" + n + R"(", 0], "negative": ["n)" + n +
            R"(", 0], "latent_image": [")";
        add("s", "KSampler", settings + "e" + n + R"(", 0])");
        add("d", "VAEDecode", R"("samples": ["s)" + n + R"(", 0], "vae": ["c", 2])");
        add("u",
            "ImageScaleBy",
            R"("image": ["d)" + n + R"(", 0], "upscale_method": "lanczos", "scale_by": 2)");
        add("o", "SaveImage", R"("images": ["d)" + n + R"(", 0], "filename_prefix": "x")");
        add("q", "SaveImage", R"("images": ["u)" + n + R"(", 0], "filename_prefix": "x")");
    }
    return text + "}";
}

const Catalogue& catalogue() {
    static const Catalogue made = [] {
        return Catalogue(
            {{"worker", *NodeClasses::from_object_info(*json::parse(object_info(2000)))}}
        );
    }();
    return made;
}

void parse_validate_and_plan(benchmark::State& state) {
    const std::string text = workflow(static_cast<int>(state.range(0)));
    const ValidationOptions options;
    int nodes = 0;
    for (auto _ : state) {
        const auto graph = json::parse_object(text);
        const Validation validation = validate(*graph, catalogue(), options);
        if (!validation.valid() || !validation.plan) {
            state.SkipWithError("not valid");
        }
        nodes = validation.node_count;
        benchmark::DoNotOptimize(&validation);
    }
    state.counters["nodes"] = nodes;
}
BENCHMARK(parse_validate_and_plan)->Arg(10)->Arg(300)->Unit(benchmark::kMicrosecond);

void plan_alone(benchmark::State& state) {
    const auto document = *json::parse_object(workflow(static_cast<int>(state.range(0))));
    for (auto _ : state) {
        const Graph graph(document);
        benchmark::DoNotOptimize(make_plan(graph, catalogue()));
    }
}
BENCHMARK(plan_alone)->Arg(10)->Arg(300)->Unit(benchmark::kMicrosecond);

void bind(benchmark::State& state) {
    const auto document = *json::parse_object(workflow(10));
    const json::object parameters{{"prompt", "a cat"}, {"seed", 7}, {"width", 640}, {"s0.cfg", 5}};
    json::object graph = document;
    for (auto _ : state) {
        benchmark::DoNotOptimize(bind_parameters(graph, parameters));
    }
}
BENCHMARK(bind)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace comfyd::workflow
