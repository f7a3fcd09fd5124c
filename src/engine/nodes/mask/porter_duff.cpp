// PorterDuffImageComposite: the classic ways to put a picture with alpha onto another.
#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/nodes/kernel.hpp"
#include "engine/nodes/mask/mask.hpp"
#include "engine/nodes/mask/support.hpp"

namespace comfyd::engine::nodes {
namespace {

// NaN wins, as in PyTorch.
float least(float a, float b) {
    return a < b || std::isnan(a) ? a : b;
}
float most(float a, float b) {
    return a > b || std::isnan(a) ? a : b;
}

// s and d are colours already multiplied by their alphas sa and da. Each mode gives the alpha and
// the colour (likewise multiplied) of the result; every step is rounded on its own.
struct Add {
    static float alpha(float sa, float da) { return clamp_unit(sa + da); }
    static float color(float s, float sa, float d, float da) {
        static_cast<void>(sa), static_cast<void>(da);
        return clamp_unit(s + d);
    }
};
struct Clear {
    static float alpha(float /*sa*/, float /*da*/) { return 0.0F; }
    static float color(float /*s*/, float /*sa*/, float /*d*/, float /*da*/) { return 0.0F; }
};
struct Union {
    static float alpha(float sa, float da) {
        COMFYD_NO_CONTRACTION
        return sa + da - sa * da;
    }
};
struct Darken : Union {
    static float color(float s, float sa, float d, float da) {
        COMFYD_NO_CONTRACTION
        return (1.0F - da) * s + (1.0F - sa) * d + least(s, d);
    }
};
struct Lighten : Union {
    static float color(float s, float sa, float d, float da) {
        COMFYD_NO_CONTRACTION
        return (1.0F - da) * s + (1.0F - sa) * d + most(s, d);
    }
};
struct Overlay : Union {
    static float color(float s, float sa, float d, float da) {
        COMFYD_NO_CONTRACTION
        const float dark = 2.0F * s * d;
        const float light = sa * da - 2.0F * (da - s) * (sa - d);
        return 2.0F * d < da ? dark : light;
    }
};
struct Screen : Union {
    static float color(float s, float /*sa*/, float d, float /*da*/) {
        COMFYD_NO_CONTRACTION
        return s + d - s * d;
    }
};
struct Destination {
    static float alpha(float /*sa*/, float da) { return da; }
    static float color(float /*s*/, float /*sa*/, float d, float /*da*/) { return d; }
};
struct DestinationAtop {
    static float alpha(float sa, float /*da*/) { return sa; }
    static float color(float s, float sa, float d, float da) {
        COMFYD_NO_CONTRACTION
        return sa * d + (1.0F - da) * s;
    }
};
struct DestinationIn {
    static float alpha(float sa, float da) { return sa * da; }
    static float color(float /*s*/, float sa, float d, float /*da*/) { return d * sa; }
};
struct DestinationOut {
    static float alpha(float sa, float da) { return (1.0F - sa) * da; }
    static float color(float /*s*/, float sa, float d, float /*da*/) { return (1.0F - sa) * d; }
};
struct DestinationOver {
    static float alpha(float sa, float da) {
        COMFYD_NO_CONTRACTION
        return da + (1.0F - da) * sa;
    }
    static float color(float s, float /*sa*/, float d, float da) {
        COMFYD_NO_CONTRACTION
        return d + (1.0F - da) * s;
    }
};
struct Multiply {
    static float alpha(float sa, float da) { return sa * da; }
    static float color(float s, float /*sa*/, float d, float /*da*/) { return s * d; }
};
struct Source {
    static float alpha(float sa, float /*da*/) { return sa; }
    static float color(float s, float /*sa*/, float /*d*/, float /*da*/) { return s; }
};
struct SourceAtop {
    static float alpha(float /*sa*/, float da) { return da; }
    static float color(float s, float sa, float d, float da) {
        COMFYD_NO_CONTRACTION
        return da * s + (1.0F - sa) * d;
    }
};
struct SourceIn {
    static float alpha(float sa, float da) { return sa * da; }
    static float color(float s, float /*sa*/, float /*d*/, float da) { return s * da; }
};
struct SourceOut {
    static float alpha(float sa, float da) { return (1.0F - da) * sa; }
    static float color(float s, float /*sa*/, float /*d*/, float da) { return (1.0F - da) * s; }
};
struct SourceOver {
    static float alpha(float sa, float da) {
        COMFYD_NO_CONTRACTION
        return sa + (1.0F - sa) * da;
    }
    static float color(float s, float sa, float d, float /*da*/) {
        COMFYD_NO_CONTRACTION
        return s + (1.0F - sa) * d;
    }
};
struct Xor {
    static float alpha(float sa, float da) {
        COMFYD_NO_CONTRACTION
        return (1.0F - da) * sa + (1.0F - sa) * da;
    }
    static float color(float s, float sa, float d, float da) {
        COMFYD_NO_CONTRACTION
        return (1.0F - da) * s + (1.0F - sa) * d;
    }
};

struct Row {
    const float* source;
    const float* source_mask;
    const float* destination;
    const float* destination_mask;
    std::size_t width;
    std::size_t channels;
};

template <class Mode>
void composite(const Row& row, float* image, float* mask) {
    COMFYD_NO_CONTRACTION
    for (std::size_t x = 0; x < row.width; ++x) {
        const float sa = 1.0F - row.source_mask[x];
        const float da = 1.0F - row.destination_mask[x];
        const float alpha = Mode::alpha(sa, da);
        mask[x] = 1.0F - alpha;
        for (std::size_t c = 0; c < row.channels; ++c) {
            const std::size_t at = x * row.channels + c;
            const float s = row.source[at] * sa;
            const float d = row.destination[at] * da;
            const float color = Mode::color(s, sa, d, da);
            image[at] = clamp_unit(alpha > 1e-5F ? color / alpha : 0.0F);
        }
    }
}

using Composite = void (*)(const Row& row, float* image, float* mask);
constexpr std::pair<std::string_view, Composite> kModes[] = {
    {"ADD", &composite<Add>},
    {"CLEAR", &composite<Clear>},
    {"DARKEN", &composite<Darken>},
    {"DST", &composite<Destination>},
    {"DST_ATOP", &composite<DestinationAtop>},
    {"DST_IN", &composite<DestinationIn>},
    {"DST_OUT", &composite<DestinationOut>},
    {"DST_OVER", &composite<DestinationOver>},
    {"LIGHTEN", &composite<Lighten>},
    {"MULTIPLY", &composite<Multiply>},
    {"OVERLAY", &composite<Overlay>},
    {"SCREEN", &composite<Screen>},
    {"SRC", &composite<Source>},
    {"SRC_ATOP", &composite<SourceAtop>},
    {"SRC_IN", &composite<SourceIn>},
    {"SRC_OUT", &composite<SourceOut>},
    {"SRC_OVER", &composite<SourceOver>},
    {"XOR", &composite<Xor>},
};

Result<Image> like(const Call& call, const Image& image, const ImageShape& shape) {
    if (image.shape().width == shape.width && image.shape().height == shape.height) {
        return image;
    }
    return resize(call, image, shape.width, shape.height, ResizeMethod::bicubic, Crop::center);
}

Result<Mask> mask_like(const Call& call, const Mask& mask, const ImageShape& shape) {
    return resize_mask(call, mask, shape.width, shape.height, ResizeMethod::bicubic, Crop::center);
}

Result<NodeResult> compute(Call& call) {
    const Image& onto = call.image("destination");
    ImageShape shape = onto.shape();
    if (call.image("source").shape().channels != shape.channels) {
        return node_error("AssertionError", "");
    }
    const auto source = like(call, call.image("source"), shape);
    if (!source) {
        return fail(source.error());
    }
    const auto source_mask = mask_like(call, call.mask("source_alpha"), shape);
    if (!source_mask) {
        return fail(source_mask.error());
    }
    const auto onto_mask = mask_like(call, call.mask("destination_alpha"), shape);
    if (!onto_mask) {
        return fail(onto_mask.error());
    }
    shape.batch = std::min(
        {shape.batch, source->shape().batch, source_mask->shape().batch, onto_mask->shape().batch}
    );
    auto mask = call.new_mask(shape.batch, shape.height, shape.width);
    if (!mask) {
        return fail(std::move(mask.error()));
    }
    const Composite function = chosen(kModes, call.text("mode"));
    auto image = make_image(call, shape, [&](std::size_t row, float* into) {
        const Row rows{
            .source = source->row(row),
            .source_mask = source_mask->row(row),
            .destination = onto.row(row),
            .destination_mask = onto_mask->row(row),
            .width = shape.width,
            .channels = shape.channels,
        };
        function(rows, into, mask->row(row));
    });
    if (!image) {
        return fail(std::move(image.error()));
    }
    return NodeResult{.outputs = {std::move(*image), std::move(*mask).finish()}};
}

}  // namespace

NodeClass porter_duff_image_composite() {
    return {
        .name = "PorterDuffImageComposite",
        .description = "Puts a picture with alpha onto another in one of the Porter-Duff ways.",
        .execute = &compute
    };
}

}  // namespace comfyd::engine::nodes
