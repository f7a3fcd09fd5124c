// The nodes at 1024 x 1024 through the engine itself, and PNG on its own.
//
// Each round changes an input that the class under test does not know: its source stays cached and
// it runs anew.
#include <benchmark/benchmark.h>

#include <random>

#include "engine/nodes/call.hpp"
#include "engine/pictures/png.hpp"
#include "engine/test_support.hpp"

namespace comfyd::engine {
namespace {

using namespace testing;

constexpr int kSide = 1024;

// Ends a prompt without writing anything.
Result<NodeResult> swallow(Call& /*call*/) {
    return NodeResult{.outputs = {}, .ui = json::object()};
}

Registry bench_registry() {
    Registry registry = make_registry();
    registry.add(
        {.name = "Sink", .execute = &swallow},
        {{"input", {{"required", {{"image", json::array{"IMAGE"}}}}}},
         {"output", json::array()},
         {"output_is_list", json::array()},
         {"output_node", true}}
    );
    return registry;
}

// Smooth with some noise, roughly what photographs are to a PNG encoder.
std::vector<float> photo() {
    std::vector<float> pixels(std::size_t{kSide} * kSide * 3);
    std::mt19937 random(1);
    for (std::size_t i = 0; i < pixels.size(); ++i) {
        const std::size_t x = i / 3 % kSide;
        const std::size_t y = i / 3 / kSide;
        const auto base = static_cast<int>((x / 5 + y / 7 + i % 3 * 40) % 250);
        pixels[i] = static_cast<float>(base + static_cast<int>(random() % 6)) / 255.0F;
    }
    return pixels;
}

std::string encode_photo(const std::vector<float>& pixels, int level) {
    std::string file;
    const FileSink sink = [&file](const void* data, std::size_t size) {
        file.append(static_cast<const char*>(data), size);
        return true;
    };
    (void)encode_png({pixels.data(), kSide, kSide, 3}, level, {}, sink, [] { return false; });
    return file;
}

// "1" is the picture, "2" is made anew each round, the last one is looked at as a whole.
void run_nodes(benchmark::State& state, std::vector<json::object> nodes) {
    const TestFolders folders;
    folders.add_input("photo.png", encode_photo(photo(), 1));
    EngineOptions options = folders.options();
    options.threads = static_cast<unsigned>(state.range(0));
    Core core(bench_registry(), options);
    json::object prompt;
    prompt["1"] = json::object{{"class_type", "LoadImage"}, {"inputs", {{"image", "photo.png"}}}};
    std::string last;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        last = std::to_string(i + 2);
        prompt[last] = std::move(nodes[i]);
    }
    prompt["sink"] =
        json::object{{"class_type", "Sink"}, {"inputs", {{"image", json::array{last, 0}}}}};
    int round = 0;
    Listener listener;
    for (auto _ : state) {
        prompt["2"].at("inputs").as_object()["round"] = ++round;
        const auto result = core.run(prompt, {}, listener, {});
        if (!result) {
            state.SkipWithError(result.error().message.c_str());
            break;
        }
    }
    state.SetItemsProcessed(state.iterations() * kSide * kSide);
}

void run_node(benchmark::State& state, json::object node) {
    run_nodes(state, {std::move(node)});
}

json::object node(const char* class_type, json::object inputs) {
    return {{"class_type", class_type}, {"inputs", std::move(inputs)}};
}
const json::array kFrom{"1", 0};

void invert(benchmark::State& state) {
    run_node(state, node("ImageInvert", {{"image", kFrom}}));
}
void flip(benchmark::State& state) {
    run_node(state, node("ImageFlip", {{"image", kFrom}, {"flip_method", "y-axis: horizontally"}}));
}
void batch(benchmark::State& state) {
    run_node(state, node("ImageBatch", {{"image1", kFrom}, {"image2", kFrom}}));
}
void masks(benchmark::State& state) {
    run_nodes(
        state,
        {node("ImageToMask", {{"image", kFrom}, {"channel", "red"}}),
         node("InvertMask", {{"mask", json::array{"2", 0}}}),
         node("MaskToImage", {{"mask", json::array{"3", 0}}})}
    );
}
void empty(benchmark::State& state) {
    run_node(state, empty_image(kSide));
}
void save(benchmark::State& state) {
    run_node(state, node("SaveImage", {{"images", kFrom}, {"filename_prefix", "bench"}}));
}
void preview(benchmark::State& state) {
    run_node(state, node("PreviewImage", {{"images", kFrom}}));
}
void load(benchmark::State& state) {
    run_node(state, node("LoadImage", {{"image", "photo.png"}}));
}
void blend(benchmark::State& state) {
    run_node(
        state,
        node(
            "ImageBlend",
            {{"image1", kFrom},
             {"image2", kFrom},
             {"blend_factor", 0.5},
             {"blend_mode", "soft_light"}}
        )
    );
}
void scale(benchmark::State& state, const char* method, int side) {
    run_node(
        state,
        node(
            "ImageScale",
            {{"image", kFrom},
             {"upscale_method", method},
             {"width", side},
             {"height", side},
             {"crop", "center"}}
        )
    );
}

BENCHMARK(empty)
    ->Arg(1)
    ->Arg(2)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->MeasureProcessCPUTime();
BENCHMARK(invert)
    ->Arg(1)
    ->Arg(2)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->MeasureProcessCPUTime();
BENCHMARK(flip)
    ->Arg(1)
    ->Arg(2)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->MeasureProcessCPUTime();
BENCHMARK(batch)
    ->Arg(1)
    ->Arg(2)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->MeasureProcessCPUTime();
BENCHMARK(masks)
    ->Arg(1)
    ->Arg(2)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->MeasureProcessCPUTime();
BENCHMARK(blend)
    ->Arg(1)
    ->Arg(2)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(scale, nearest_exact_to_512, "nearest-exact", 512)
    ->Arg(1)
    ->Arg(2)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(scale, bilinear_to_512, "bilinear", 512)
    ->Arg(1)
    ->Arg(2)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(scale, area_to_512, "area", 512)
    ->Arg(1)
    ->Arg(2)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(scale, bicubic_to_512, "bicubic", 512)
    ->Arg(1)
    ->Arg(2)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(scale, lanczos_to_512, "lanczos", 512)
    ->Arg(1)
    ->Arg(2)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(scale, bicubic_to_2048, "bicubic", 2048)
    ->Arg(1)
    ->Arg(2)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(scale, lanczos_to_2048, "lanczos", 2048)
    ->Arg(1)
    ->Arg(2)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->MeasureProcessCPUTime();
BENCHMARK(load)->Arg(1)->Unit(benchmark::kMillisecond)->UseRealTime()->MeasureProcessCPUTime();
BENCHMARK(save)->Arg(1)->Unit(benchmark::kMillisecond)->UseRealTime()->MeasureProcessCPUTime();
BENCHMARK(preview)->Arg(1)->Unit(benchmark::kMillisecond)->UseRealTime()->MeasureProcessCPUTime();

void png_encode(benchmark::State& state) {
    const std::vector<float> pixels = photo();
    std::size_t bytes = 0;
    for (auto _ : state) {
        bytes = encode_photo(pixels, static_cast<int>(state.range(0))).size();
    }
    state.counters["bytes"] = static_cast<double>(bytes);
}
BENCHMARK(png_encode)->Arg(1)->Arg(4)->Unit(benchmark::kMillisecond);

void png_decode(benchmark::State& state) {
    const std::string file = encode_photo(photo(), 4);
    std::vector<float> rgb(std::size_t{kSide} * kSide * 3);
    std::vector<std::uint8_t> scratch(std::size_t{kSide} * 3);
    for (auto _ : state) {
        (void)decode_png(file, scratch.data(), rgb.data(), nullptr, [] { return false; });
        benchmark::DoNotOptimize(rgb.data());
    }
}
BENCHMARK(png_decode)->Unit(benchmark::kMillisecond);

void tiny_prompt(benchmark::State& state) {
    const TestFolders folders;
    Core core(bench_registry(), folders.options());
    Listener listener;
    int round = 0;
    for (auto _ : state) {
        json::object prompt{{"1", empty_image(64)}, {"2", save_image("1", "tiny")}};
        prompt["1"].at("inputs").as_object()["round"] = ++round;
        benchmark::DoNotOptimize(core.run(std::move(prompt), {}, listener, {}));
    }
}
BENCHMARK(tiny_prompt)->Unit(benchmark::kMicrosecond)->UseRealTime()->MeasureProcessCPUTime();

}  // namespace
}  // namespace comfyd::engine
