// What judging a prompt costs, against a catalogue of 2,000 classes.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>

#include "workflow/catalogue/catalogue.hpp"
#include "workflow/rules/check.hpp"

namespace comfyd::workflow {
namespace {

std::string checkpoints(int count, int first) {
    std::string list = "[";
    for (int i = 0; i < count; ++i) {
        list += (i > 0 ? ",\"" : "\"") + std::string("folder/checkpoint-") +
                std::to_string(first + i) + ".safetensors\"";
    }
    return list + "]";
}

// Seven classes of a usual workflow and many others like them.
std::string object_info(int classes, int first_checkpoint) {
    std::string text = R"({"Loader": {"input": {"required": {"ckpt_name": [)" +
                       checkpoints(400, first_checkpoint) +
                       R"(]}}, "output": ["MODEL", "CLIP", "VAE"]},
        "Encode": {"input": {"required": {"text": ["STRING", {"multiline": true}],
                   "clip": ["CLIP"]}}, "output": ["CONDITIONING"]},
        "Latent": {"input": {"required": {"width": ["INT", {"min": 16, "max": 16384}],
                   "height": ["INT", {"min": 16, "max": 16384}],
                   "batch_size": ["INT", {"min": 1, "max": 4096}]}}, "output": ["LATENT"]},
        "Decode": {"input": {"required": {"samples": ["LATENT"], "vae": ["VAE"]}},
                   "output": ["IMAGE"]},
        "Batch": {"input": {"required": {"images": ["COMFY_AUTOGROW_V3", {"template": {
                   "input": {"required": {"image": ["IMAGE", {}]}}, "prefix": "image", "min": 1,
                   "max": 50}}]}}, "output": ["IMAGE"]},
        "Save": {"input": {"required": {"images": ["IMAGE"], "filename_prefix": ["STRING"]}},
                 "output": [], "output_node": true})";
    const std::string sampler = R"({"input": {"required": {"model": ["MODEL"],
        "seed": ["INT", {"min": 0, "max": 18446744073709551615}],
        "steps": ["INT", {"min": 1, "max": 10000}], "cfg": ["FLOAT", {"min": 0.0, "max": 100.0}],
        "sampler_name": [["euler", "heun", "dpm_2", "lms", "ddim", "uni_pc"]],
        "scheduler": [["simple", "karras", "normal"]], "positive": ["CONDITIONING"],
        "negative": ["CONDITIONING"], "latent_image": ["LATENT"],
        "denoise": ["FLOAT", {"min": 0.0, "max": 1.0}]}}, "output": ["LATENT"]})";
    for (int i = 6; i < classes; ++i) {
        text += R"(, "Sampler)" + std::to_string(i) + R"(": )" + sampler;
    }
    return text + "}";
}

Catalogue catalogue(int workers) {
    std::vector<Catalogue::Entry> entries;
    for (int i = 0; i < workers; ++i) {
        auto parsed = json::parse(object_info(2000, i));
        entries.push_back({std::to_string(i), *NodeClasses::from_object_info(*parsed)});
    }
    return Catalogue(std::move(entries));
}

json::array link(const std::string& node, int slot) {
    return json::array{boost::json::string_view(node), slot};
}

void add(json::object& prompt, const std::string& id, std::string class_type, json::object inputs) {
    json::object node;
    node["class_type"] = class_type;
    node["inputs"] = std::move(inputs);
    prompt[id] = std::move(node);
}

// Branches of nine nodes each beside one loader.
json::object prompt(int nodes) {
    json::object made;
    add(made, "loader", "Loader", {{"ckpt_name", "folder/checkpoint-300.safetensors"}});
    for (int i = 0; i * 9 + 1 < nodes; ++i) {
        const std::string n = std::to_string(i);
        for (const char* side : {"p", "n"}) {
            add(made, side + n, "Encode", {{"text", "a cat"}, {"clip", link("loader", 1)}});
        }
        add(made, "l" + n, "Latent", {{"width", 512}, {"height", "512"}, {"batch_size", 1}});
        json::object sampler{
            {"model", link("loader", 0)},
            {"seed", 5},
            {"steps", 20},
            {"cfg", 7},
            {"sampler_name", "uni_pc"},
            {"scheduler", "normal"},
            {"positive", link("p" + n, 0)},
            {"negative", link("n" + n, 0)},
            {"latent_image", link("l" + n, 0)},
            {"denoise", 1}
        };
        add(made, "s" + n, "Sampler" + std::to_string(6 + i), sampler);
        sampler["latent_image"] = link("s" + n, 0);
        add(made, "t" + n, "Sampler" + std::to_string(100 + i), sampler);
        add(made, "d" + n, "Decode", {{"samples", link("t" + n, 0)}, {"vae", link("loader", 2)}});
        add(made, "b" + n, "Batch", {{"images.image0", link("d" + n, 0)}});
        for (const char* source : {"b", "d"}) {
            add(made,
                "o" + (source + n),
                "Save",
                {{"images", link(source + n, 0)}, {"filename_prefix", "x"}});
        }
    }
    return made;
}

void judge(benchmark::State& state) {
    const Catalogue fleet = catalogue(1);
    const json::object original = prompt(static_cast<int>(state.range(0)));
    json::object coerced = original;
    for (auto _ : state) {
        const PromptVerdict verdict = judge_prompt(coerced, fleet);
        if (!verdict.accepted) {
            state.SkipWithError("refused");
        }
        benchmark::DoNotOptimize(&verdict);
    }
    state.counters["nodes"] = static_cast<double>(original.size());
}
BENCHMARK(judge)->Arg(10)->Arg(300)->Unit(benchmark::kMicrosecond);

void check_for_a_fleet(benchmark::State& state) {
    const Catalogue fleet = catalogue(20);
    const json::object original = prompt(static_cast<int>(state.range(0)));
    for (auto _ : state) {
        const auto checked = check(original, fleet);
        if (!checked) {
            state.SkipWithError("refused");
        }
        benchmark::DoNotOptimize(&checked);
    }
}
BENCHMARK(check_for_a_fleet)->Arg(10)->Arg(300)->Unit(benchmark::kMicrosecond);

void has_all(benchmark::State& state) {
    const Catalogue fleet = catalogue(20);
    const Requirement requirement = fleet.requirement_of(prompt(static_cast<int>(state.range(0))));
    for (auto _ : state) {
        benchmark::DoNotOptimize(fleet.workers()[0].classes->has_all(requirement));
    }
}
BENCHMARK(has_all)->Arg(10)->Arg(300)->Unit(benchmark::kMicrosecond);

void read_object_info(benchmark::State& state) {
    const auto document = *json::parse(object_info(2000, 0));
    const bool shared = state.range(0) != 0;
    const auto kept = shared ? *NodeClasses::from_object_info(document) : nullptr;
    for (auto _ : state) {
        benchmark::DoNotOptimize(NodeClasses::from_object_info(document));
    }
}
BENCHMARK(read_object_info)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

void merge_the_fleet(benchmark::State& state) {
    std::vector<Catalogue::Entry> entries = catalogue(20).workers();
    for (auto _ : state) {
        const Catalogue fresh(entries);
        benchmark::DoNotOptimize(fresh.object_info()->text.size());
    }
}
BENCHMARK(merge_the_fleet)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace comfyd::workflow
