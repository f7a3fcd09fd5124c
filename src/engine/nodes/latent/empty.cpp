// The makers of empty latents: all zeros, shaped as a family of models wants them.
#include <array>
#include <utility>

#include "engine/nodes/call.hpp"
#include "engine/nodes/latent/latent.hpp"

namespace comfyd::engine::nodes {
namespace {

// Time: none, (length - 1) / by + 1, or the number of layers and one.
enum class Time { none, length, layers };

struct Maker {
    const char* name;
    const char* description;
    std::size_t channels;
    std::size_t pixels;  // of a side that one latent value stands for
    Time time = Time::none;
    std::size_t frames = 1;  // that one latent frame stands for
};

constexpr Maker kMakers[] = {
    {"EmptyLatentImage", "An empty latent for Stable Diffusion 1 to XL.", 4, 8},
    {"EmptySD3LatentImage", "An empty latent for Stable Diffusion 3 and its kin.", 16, 8},
    {"EmptyFlux2LatentImage", "An empty latent for Flux 2.", 128, 16},
    {"EmptyHunyuanImageLatent", "An empty latent for Hunyuan Image.", 64, 32},
    {"EmptyChromaRadianceLatentImage", "An empty latent for Chroma Radiance.", 3, 1},
    {"EmptyHunyuanLatentVideo", "An empty latent for Hunyuan Video.", 16, 8, Time::length, 4},
    {"EmptyHunyuanVideo15Latent", "An empty latent for Hunyuan Video 1.5.", 32, 16, Time::length, 4
    },
    {"EmptyMochiLatentVideo", "An empty latent for Mochi.", 12, 8, Time::length, 6},
    {"EmptyLTXVLatentVideo", "An empty latent for LTX Video.", 128, 32, Time::length, 8},
    {"EmptyCosmosLatentVideo", "An empty latent for Cosmos.", 16, 8, Time::length, 8},
    {"EmptyQwenImageLayeredLatentImage",
     "An empty latent for layered Qwen Image.",
     16,
     8,
     Time::layers},
};

template <std::size_t kIndex>
Result<NodeResult> compute(Call& call) {
    constexpr Maker kMaker = kMakers[kIndex];
    const auto size = [&call](const char* name) { return call.size(name); };
    Dims dims{size("batch_size"), kMaker.channels};
    if (kMaker.time == Time::length) {
        dims.push_back((std::max<std::size_t>(1, size("length")) - 1) / kMaker.frames + 1);
    } else if (kMaker.time == Time::layers) {
        dims.push_back(size("layers") + 1);
    }
    dims.push_back(size("height") / kMaker.pixels);
    dims.push_back(size("width") / kMaker.pixels);
    auto samples = filled(call, std::move(dims), 0.0F);
    if (!samples) {
        return fail(std::move(samples.error()));
    }
    return NodeResult{.outputs = {as_value(Latent(std::move(*samples)))}};
}

template <std::size_t... kIndexes>
std::vector<NodeClass> make_all(std::index_sequence<kIndexes...>) {
    std::vector<NodeClass> made;
    (made.push_back(
         {.name = kMakers[kIndexes].name,
          .description = kMakers[kIndexes].description,
          .execute = &compute<kIndexes>}
     ),
     ...);
    return made;
}

}  // namespace

std::vector<NodeClass> empty_latents() {
    return make_all(std::make_index_sequence<std::size(kMakers)>());
}

}  // namespace comfyd::engine::nodes
