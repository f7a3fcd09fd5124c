#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/nodes/call.hpp"
#include "engine/nodes/image/image.hpp"
#include "engine/nodes/kernel.hpp"
#include "engine/pictures/resize.hpp"
#include "engine/pixels/pictures.hpp"

namespace comfyd::engine::nodes {
namespace {

// Each step is rounded on its own, as PyTorch's are.
struct Normal {
    static float mix(float /*a*/, float b) { return b; }
};
struct Multiply {
    static float mix(float a, float b) { return a * b; }
};
struct Screen {
    static float mix(float a, float b) {
        COMFYD_NO_CONTRACTION
        return 1.0F - (1.0F - a) * (1.0F - b);
    }
};
struct Overlay {
    static float mix(float a, float b) {
        COMFYD_NO_CONTRACTION
        const float dark = 2.0F * a * b;
        const float light = 1.0F - 2.0F * (1.0F - a) * (1.0F - b);
        return a <= 0.5F ? dark : light;
    }
};
struct SoftLight {
    static float mix(float a, float b) {
        COMFYD_NO_CONTRACTION
        const float dark = a - (1.0F - 2.0F * b) * a * (1.0F - a);
        const float curve = ((16.0F * a - 12.0F) * a + 4.0F) * a;
        const float bent = a <= 0.25F ? curve : std::sqrt(a);
        const float light = a + (2.0F * b - 1.0F) * (bent - a);
        return b <= 0.5F ? dark : light;
    }
};
struct Difference {
    static float mix(float a, float b) { return a - b; }
};

struct Weights {
    float base;  // 1 - factor
    float mixed;
};

template <class Mode>
void blend(const float* a, const float* b, std::size_t count, Weights weights, float* out) {
    COMFYD_NO_CONTRACTION
    for (std::size_t i = 0; i < count; ++i) {
        const float sum = a[i] * weights.base + Mode::mix(a[i], b[i]) * weights.mixed;
        const float low = sum > 0.0F ? sum : 0.0F;
        out[i] = low < 1.0F ? low : 1.0F;
    }
}

using BlendFunction = void (*)(const float*, const float*, std::size_t, Weights, float*);
constexpr std::pair<const char*, BlendFunction> kModes[] = {
    {"normal", &blend<Normal>},
    {"multiply", &blend<Multiply>},
    {"screen", &blend<Screen>},
    {"overlay", &blend<Overlay>},
    {"soft_light", &blend<SoftLight>},
    {"difference", &blend<Difference>},
};

Result<Image> like_first(const Call& call, const Image& first, const Image& second) {
    auto image = with_channels(call, second, first.shape().channels);
    if (!image || image->shape() == first.shape()) {
        return image;
    }
    return resize(
        call, *image, first.shape().width, first.shape().height, ResizeMethod::bicubic, Crop::center
    );
}

Result<NodeResult> compute(Call& call) {
    const Image& a = call.image("image1");
    const auto b = like_first(call, a, call.image("image2"));
    if (!b) {
        return fail(b.error());
    }
    ImageShape shape = a.shape();
    const std::size_t b_batch = b->shape().batch;
    if (shape.batch != b_batch && shape.batch != 1 && b_batch != 1) {
        return node_error(
            "RuntimeError",
            "The size of tensor a (" + std::to_string(shape.batch) +
                ") must match the size of tensor b (" + std::to_string(b_batch) +
                ") at non-singleton dimension 0"
        );
    }
    shape.batch = std::max(shape.batch, b_batch);
    auto out = call.new_image(shape);
    if (!out) {
        return fail(std::move(out.error()));
    }
    const double factor = call.number("blend_factor");
    const Weights weights{static_cast<float>(1.0 - factor), static_cast<float>(factor)};
    const BlendFunction function = chosen(kModes, call.text("blend_mode"));
    auto done =
        call.for_rows(shape.rows(), shape.row_floats(), [&](std::size_t first, std::size_t last) {
            for (std::size_t row = first; row < last; ++row) {
                // A single picture is blended with each one of a batch.
                const float* a_row = a.row(a.shape().batch == 1 ? row % shape.height : row);
                const float* b_row = b->row(b_batch == 1 ? row % shape.height : row);
                function(a_row, b_row, shape.row_floats(), weights, out->row(row));
            }
        });
    if (!done) {
        return fail(std::move(done.error()));
    }
    return NodeResult{.outputs = {std::move(*out).finish()}};
}

}  // namespace

NodeClass image_blend() {
    return {
        .name = "ImageBlend",
        .description = "Mixes a second picture into the first one.",
        .execute = &compute,
    };
}

}  // namespace comfyd::engine::nodes
