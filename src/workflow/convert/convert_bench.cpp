// What converting a workflow of the editor costs.
#include <benchmark/benchmark.h>

#include <map>
#include <memory>
#include <string>

#include "workflow/convert/convert.hpp"

namespace comfyd::workflow {
namespace {

constexpr std::string_view kClasses = R"({
    "Loader": {"input": {"required": {"name": [["a", "b", "c"]]}},
               "output": ["MODEL", "CLIP", "VAE"]},
    "Encode": {"input": {"required": {"text": ["STRING", {"multiline": true,
               "dynamicPrompts": true}], "clip": ["CLIP"]}}, "output": ["CONDITIONING"]},
    "Sampler": {"input": {"required": {"model": ["MODEL"], "seed": ["INT", {}],
               "steps": ["INT", {}], "cfg": ["FLOAT", {}], "sampler": [["euler", "heun"]],
               "positive": ["CONDITIONING"], "negative": ["CONDITIONING"],
               "latent": ["LATENT"], "denoise": ["FLOAT", {}]}}, "output": ["LATENT"]},
    "Save": {"input": {"required": {"images": ["LATENT"], "filename_prefix": ["STRING"]}},
             "output": [], "output_node": true}})";

class Classes : public PromptClasses {
public:
    Classes() {
        const json::object document = *json::parse_object(kClasses);
        for (const auto& entry : document) {
            const std::string name(entry.key());
            classes_[name] = *NodeDefinition::from_object_info(name, entry.value().get_object());
        }
    }
    const NodeDefinition* find(std::string_view class_type) const override {
        const auto found = classes_.find(class_type);
        return found == classes_.end() ? nullptr : found->second.get();
    }

private:
    std::map<std::string, std::shared_ptr<const NodeDefinition>, std::less<>> classes_;
};

class Graph {
public:
    int add(std::string_view type, json::array values) {
        json::object node{
            {"id", ++nodes_},
            {"type", boost::json::string_view(type.data(), type.size())},
            {"pos", json::array{100, 200}},
            {"mode", 0},
            {"inputs", json::array()},
            {"properties", json::object{{"Node name for S&R", "x"}}},
            {"widgets_values", std::move(values)}
        };
        made_["nodes"].get_array().push_back(std::move(node));
        return nodes_;
    }
    void link(int from, int slot, const char* input) {
        made_["links"].get_array().push_back(json::array{++links_, from, slot, nodes_, 0, "*"});
        made_["nodes"].get_array().back().get_object()["inputs"].get_array().push_back(
            json::object{{"name", input}, {"type", "*"}, {"link", links_}}
        );
    }
    const json::object& get() const { return made_; }

private:
    json::object made_{{"version", 0.4}, {"nodes", json::array()}, {"links", json::array()}};
    int nodes_ = 0;
    int links_ = 0;
};

void convert(benchmark::State& state) {
    const Classes classes;
    Graph graph;
    const int loader = graph.add("Loader", {"a"});
    for (int i = 1; i + 5 <= state.range(0); i += 5) {
        const int positive = graph.add("Encode", {"a {red} castle on a hill // evening"});
        graph.link(loader, 1, "clip");
        const int reroute = graph.add("Reroute", {});
        graph.link(loader, 0, "");
        const int negative = graph.add("Encode", {"text, watermark"});
        graph.link(loader, 1, "clip");
        const int sampler = graph.add("Sampler", {5, "randomize", 20, 8.0, "euler", 1});
        graph.link(reroute, 0, "model");
        graph.link(positive, 0, "positive");
        graph.link(negative, 0, "negative");
        graph.add("Save", {"%Loader.name%"});
        graph.link(sampler, 0, "images");
    }
    for (auto _ : state) {
        auto made = convert_ui(graph.get(), classes);
        if (!made) {
            state.SkipWithError(made.error().message.c_str());
        }
        benchmark::DoNotOptimize(made);
    }
    state.counters["nodes"] = static_cast<double>(graph.get().at("nodes").get_array().size());
}
BENCHMARK(convert)->Arg(10)->Arg(300)->Arg(10'000)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace comfyd::workflow
