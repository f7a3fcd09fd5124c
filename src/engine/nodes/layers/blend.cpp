#include "engine/nodes/layers/blend.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace comfyd::engine::nodes {
namespace {

constexpr float kEpsilon = 1e-6F;

float safe_divide(float a, float b) {
    return std::abs(b) >= kEpsilon ? a / b : 0.0F;
}

// One channel of what is under (i) and over (l).
using Channel = float (*)(float i, float l);

float normal(float /*i*/, float l) {
    return l;
}
float multiply(float i, float l) {
    return i * l;
}
float screen(float i, float l) {
    return 1.0F - (1.0F - i) * (1.0F - l);
}
float overlay(float i, float l) {
    return i < 0.5F ? 2.0F * i * l : 1.0F - 2.0F * (1.0F - l) * (1.0F - i);
}
float darken(float i, float l) {
    return std::min(i, l);
}
float lighten(float i, float l) {
    return std::max(i, l);
}
float color_dodge(float i, float l) {
    if (i <= 0.0F) {
        return 0.0F;
    }
    return 1.0F - l <= kEpsilon ? 1.0F : std::min(safe_divide(i, 1.0F - l), 1.0F);
}
float color_burn(float i, float l) {
    if (i >= 1.0F) {
        return 1.0F;
    }
    return l <= kEpsilon ? 0.0F : 1.0F - std::min(safe_divide(1.0F - i, l), 1.0F);
}
float hard_light(float i, float l) {
    if (l > 0.5F) {
        return std::min(1.0F - (1.0F - i) * (1.0F - (l - 0.5F) * 2.0F), 1.0F);
    }
    return std::min(i * (l * 2.0F), 1.0F);
}
float soft_light(float i, float l) {
    return (1.0F - i) * (i * l) + i * (1.0F - (1.0F - i) * (1.0F - l));
}
float difference(float i, float l) {
    return std::abs(i - l);
}
float exclusion(float i, float l) {
    return 0.5F - 2.0F * (i - 0.5F) * (l - 0.5F);
}
float linear_dodge(float i, float l) {
    return i + l;
}
float linear_burn(float i, float l) {
    return i + l - 1.0F;
}
float vivid_light(float i, float l) {
    if (l <= 0.5F) {
        if (i >= 1.0F) {
            return 1.0F;
        }
        return 2.0F * l <= kEpsilon ? 0.0F : std::max(1.0F - safe_divide(1.0F - i, 2.0F * l), 0.0F);
    }
    if (i <= 0.0F) {
        return 0.0F;
    }
    return 2.0F * (1.0F - l) <= kEpsilon ? 1.0F : std::min(safe_divide(i, 2.0F * (1.0F - l)), 1.0F);
}
float pin_light(float i, float l) {
    return l > 0.5F ? std::max(i, 2.0F * (l - 0.5F)) : std::min(i, 2.0F * l);
}
float linear_light(float i, float l) {
    return i + 2.0F * l - 1.0F;
}
float hard_mix(float i, float l) {
    return i + l < 1.0F ? 0.0F : 1.0F;
}
float subtract(float i, float l) {
    return std::max(i - l, 0.0F);
}
float divide(float i, float l) {
    return std::clamp(i / std::max(l, kEpsilon), 0.0F, 1.0F);
}
float grain_extract(float i, float l) {
    return i - l + 0.5F;
}
float grain_merge(float i, float l) {
    return i + l - 0.5F;
}

template <Channel channel>
void each(const float* under, const float* over, float* result) {
    for (std::size_t c = 0; c < 3; ++c) {
        result[c] = channel(under[c], over[c]);
    }
}

struct Range {
    float low;
    float high;
    float span() const { return high - low; }
    float saturation() const { return high != 0.0F ? span() / high : 0.0F; }
};
Range range(const float* rgb) {
    return {std::min({rgb[0], rgb[1], rgb[2]}), std::max({rgb[0], rgb[1], rgb[2]})};
}

void hue(const float* under, const float* over, float* result) {
    const Range source = range(over);
    const Range below = range(under);
    if (source.span() <= kEpsilon) {
        std::copy_n(under, 3, result);
        return;
    }
    const float ratio = below.saturation() * below.high / source.span();
    const float offset = below.high - source.high * ratio;
    for (std::size_t c = 0; c < 3; ++c) {
        result[c] = over[c] * ratio + offset;
    }
}

void saturation(const float* under, const float* over, float* result) {
    const Range source = range(over);
    const Range below = range(under);
    if (below.span() <= kEpsilon) {
        std::fill_n(result, 3, below.high);
        return;
    }
    const float ratio = source.saturation() * below.high / below.span();
    const float offset = (1.0F - ratio) * below.high;
    for (std::size_t c = 0; c < 3; ++c) {
        result[c] = under[c] * ratio + offset;
    }
}

void color(const float* under, const float* over, float* result) {
    const Range source = range(over);
    const Range below = range(under);
    const float light = (below.low + below.high) / 2.0F;
    const float source_light = (source.low + source.high) / 2.0F;
    if (std::abs(source_light) <= kEpsilon || std::abs(1.0F - source_light) <= kEpsilon) {
        std::fill_n(result, 3, light);
        return;
    }
    const float room = std::min(light, 1.0F - light);
    const float ratio = room / std::min(source_light, 1.0F - source_light);
    const float offset = (light > 0.5F ? 1.0F - 2.0F * room : 0.0F) +
                         (source_light > 0.5F ? 2.0F * room - ratio : 0.0F);
    for (std::size_t c = 0; c < 3; ++c) {
        result[c] = over[c] * ratio + offset;
    }
}

float luminance(const float* rgb) {
    return rgb[0] * 0.2224884F + rgb[1] * 0.71690369F + rgb[2] * 0.06060791F;
}

void luminosity(const float* under, const float* over, float* result) {
    const float ratio = safe_divide(luminance(over), luminance(under));
    for (std::size_t c = 0; c < 3; ++c) {
        result[c] = under[c] * ratio;
    }
}

struct Entry {
    std::string_view name;
    void (*blend)(const float*, const float*, float*);
    bool perceptual;
};

constexpr std::array<Entry, 26> kModes = {{
    {"normal", &each<&normal>, false},
    {"multiply", &each<&multiply>, false},
    {"screen", &each<&screen>, true},
    {"overlay", &each<&overlay>, true},
    {"darken", &each<&darken>, false},
    {"lighten", &each<&lighten>, false},
    {"color-dodge", &each<&color_dodge>, true},
    {"color-burn", &each<&color_burn>, true},
    {"hard-light", &each<&hard_light>, true},
    {"soft-light", &each<&soft_light>, true},
    {"difference", &each<&difference>, true},
    {"exclusion", &each<&exclusion>, true},
    {"linear-dodge", &each<&linear_dodge>, false},
    {"linear-burn", &each<&linear_burn>, true},
    {"vivid-light", &each<&vivid_light>, true},
    {"pin-light", &each<&pin_light>, true},
    {"linear-light", &each<&linear_light>, true},
    {"hard-mix", &each<&hard_mix>, true},
    {"subtract", &each<&subtract>, false},
    {"divide", &each<&divide>, false},
    {"grain-extract", &each<&grain_extract>, true},
    {"grain-merge", &each<&grain_merge>, true},
    {"hue", &hue, true},
    {"saturation", &saturation, true},
    {"color", &color, true},
    {"luminosity", &luminosity, false},
}};

// Alpha of both adds up.
void cover(float* canvas, const float* layer, const float* mixed, float alpha) {
    const float below = canvas[3];
    const float together = alpha + (1.0F - alpha) * below;
    if (alpha != 0.0F && together != 0.0F) {
        const float ratio = alpha / together;
        for (std::size_t c = 0; c < 3; ++c) {
            const float target = below * (mixed[c] - layer[c]) + layer[c] - canvas[c];
            canvas[c] = below == 0.0F ? layer[c] : ratio * target + canvas[c];
        }
    }
    canvas[3] = together;
}

// Only where the canvas has something.
void stay_inside(float* canvas, const float* mixed, float alpha) {
    if (canvas[3] == 0.0F || alpha == 0.0F) {
        return;
    }
    for (std::size_t c = 0; c < 3; ++c) {
        canvas[c] = mixed[c] * alpha + canvas[c] * (1.0F - alpha);
    }
}

}  // namespace

float srgb_to_linear(float value) {
    if (value <= 0.04045F) {
        return value / 12.92F;
    }
    const float base = (std::max(value, 0.0F) + 0.055F) / 1.055F;
    return static_cast<float>(std::pow(double{base}, double{2.4F}));
}

float linear_to_srgb(float value) {
    if (value <= 0.0031308F) {
        return 12.92F * value;
    }
    constexpr auto kExponent = static_cast<float>(1.0 / 2.4);
    const auto power =
        static_cast<float>(std::pow(double{std::max(value, 0.0F)}, double{kExponent}));
    return 1.055F * power - 0.055F;
}

BlendMode::BlendMode(std::string_view name) {
    const auto found = std::ranges::find(kModes, name, &Entry::name);
    const Entry& entry = found != kModes.end() ? *found : kModes[0];
    blend_ = entry.blend;
    perceptual_ = entry.perceptual;
    covers_ = &entry == kModes.data();
}

void BlendMode::apply(float* canvas, const float* layer, std::size_t count, float opacity) const {
    for (std::size_t i = 0; i < count; ++i, canvas += 4, layer += 4) {
        std::array<float, 3> under{canvas[0], canvas[1], canvas[2]};
        std::array<float, 3> over{layer[0], layer[1], layer[2]};
        std::array<float, 3> mixed{};
        if (perceptual_) {
            std::ranges::transform(under, under.begin(), &linear_to_srgb);
            std::ranges::transform(over, over.begin(), &linear_to_srgb);
        }
        blend_(under.data(), over.data(), mixed.data());
        if (perceptual_) {
            std::ranges::transform(mixed, mixed.begin(), &srgb_to_linear);
        }
        const float alpha = layer[3] * opacity;
        if (covers_) {
            cover(canvas, layer, mixed.data(), alpha);
        } else {
            stay_inside(canvas, mixed.data(), alpha);
        }
    }
}

}  // namespace comfyd::engine::nodes
