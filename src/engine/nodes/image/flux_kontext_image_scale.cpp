#include <cmath>
#include <limits>
#include <utility>

#include "engine/nodes/image/image.hpp"
#include "engine/pixels/pictures.hpp"

namespace comfyd::engine::nodes {
namespace {

// The sizes that the model was trained with; the same list mirrored serves wide pictures.
constexpr std::pair<int, int> kTall[] = {
    {672, 1568},
    {688, 1504},
    {720, 1456},
    {752, 1392},
    {800, 1328},
    {832, 1248},
    {880, 1184},
    {944, 1104},
    {1024, 1024},
};

Result<NodeResult> compute(Call& call) {
    const Image& image = call.image("image");
    const double aspect =
        static_cast<double>(image.shape().width) / static_cast<double>(image.shape().height);
    std::pair<int, int> best;
    double least = std::numeric_limits<double>::infinity();
    const auto consider = [&](int width, int height) {
        const double distance = std::abs(aspect - static_cast<double>(width) / height);
        if (distance < least || (distance == least && width < best.first)) {
            least = distance;
            best = {width, height};
        }
    };
    for (const auto& [shorter, longer] : kTall) {
        consider(shorter, longer);
        consider(longer, shorter);
    }
    auto scaled = scale(call, image, best.first, best.second, ResizeMethod::lanczos, Crop::center);
    if (!scaled) {
        return fail(std::move(scaled.error()));
    }
    return NodeResult{.outputs = {std::move(*scaled)}};
}

}  // namespace

NodeClass flux_kontext_image_scale() {
    return {
        .name = "FluxKontextImageScale",
        .description = "Scales and cuts to the nearest size that Flux Kontext was trained with.",
        .execute = &compute,
    };
}

}  // namespace comfyd::engine::nodes
