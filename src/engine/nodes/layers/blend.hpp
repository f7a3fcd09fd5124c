// The 26 ways in which a layer meets what is under it, in linear light.
#pragma once

#include <cstddef>
#include <string_view>

namespace comfyd::engine::nodes {

// "normal" for names that are not known.
class BlendMode {
public:
    explicit BlendMode(std::string_view name);

    // Lays `count` RGBA pixels of `layer` over those of `canvas`, in place.
    void apply(float* canvas, const float* layer, std::size_t count, float opacity) const;

private:
    using Blend = void (*)(const float* under, const float* over, float* result);

    Blend blend_;
    bool perceptual_ = false;  // mixed as sRGB instead of linear light
    bool covers_ = false;      // adds to the canvas's alpha; others stay inside what is there
};

float srgb_to_linear(float value);
float linear_to_srgb(float value);

}  // namespace comfyd::engine::nodes
