#include <algorithm>
#include <array>
#include <string>

#include "engine/nodes/image/image.hpp"
#include "engine/nodes/kernel.hpp"
#include "engine/pixels/pictures.hpp"
#include "engine/pixels/values.hpp"

namespace comfyd::engine::nodes {
namespace {

COMFYD_KERNEL void to_yuv(const float* rgb, std::size_t pixels, float* y, float* u, float* v) {
    COMFYD_NO_CONTRACTION
    for (std::size_t i = 0; i < pixels * 3; i += 3) {
        const float light = 0.299F * rgb[i] + 0.587F * rgb[i + 1] + 0.114F * rgb[i + 2];
        const float blue = (rgb[i + 2] - light) * 0.564F + 0.5F;
        const float red = (rgb[i] - light) * 0.713F + 0.5F;
        y[i] = y[i + 1] = y[i + 2] = light;
        u[i] = u[i + 1] = u[i + 2] = blue;
        v[i] = v[i + 1] = v[i + 2] = red;
    }
}

COMFYD_KERNEL void to_rgb(
    const float* y, const float* u, const float* v, std::size_t pixels, float* rgb
) {
    COMFYD_NO_CONTRACTION
    for (std::size_t i = 0; i < pixels; ++i) {
        const float blue = u[i] - 0.5F;
        const float red = v[i] - 0.5F;
        rgb[i * 3] = clamp_unit(y[i] + 1.403F * red);
        rgb[i * 3 + 1] = clamp_unit(y[i] - 0.714F * red - 0.344F * blue);
        rgb[i * 3 + 2] = clamp_unit(y[i] + 1.773F * blue);
    }
}

// The mean of the channels of each pixel.
COMFYD_KERNEL void average(
    const float* from, std::size_t pixels, std::size_t channels, float* into
) {
    COMFYD_NO_CONTRACTION
    for (std::size_t i = 0; i < pixels; ++i) {
        float sum = 0;
        for (std::size_t c = 0; c < channels; ++c) {
            sum += from[i * channels + c];
        }
        into[i] = sum / static_cast<float>(channels);
    }
}

Result<NodeResult> split(Call& call) {
    const Image& image = call.image("image");
    const ImageShape shape = image.shape();
    if (shape.channels != 3) {
        return node_error(
            "ValueError",
            "Input size must have a shape of (*, 3, H, W). Got torch.Size([" +
                std::to_string(shape.batch) + ", " + std::to_string(shape.channels) + ", " +
                std::to_string(shape.height) + ", " + std::to_string(shape.width) + "])"
        );
    }
    auto y = call.new_image(shape);
    auto u = call.new_image(shape);
    auto v = call.new_image(shape);
    if (!y || !u || !v) {
        return fail(std::move((!y ? y : !u ? u : v).error()));
    }
    auto done = call.for_rows(
        shape.rows(),
        shape.row_floats() * 3,
        [&](std::size_t first, std::size_t last) {
            to_yuv(
                image.row(first),
                (last - first) * shape.width,
                y->row(first),
                u->row(first),
                v->row(first)
            );
        }
    );
    if (!done) {
        return fail(std::move(done.error()));
    }
    return NodeResult{
        .outputs = {std::move(*y).finish(), std::move(*u).finish(), std::move(*v).finish()}
    };
}

// The three must agree in all but their channels.
Result<> expect_equal_sizes(const std::array<const Image*, 3>& planes) {
    const ImageShape& first = planes[0]->shape();
    for (std::size_t i = 1; i < planes.size(); ++i) {
        const ImageShape& other = planes[i]->shape();
        for (const auto side : {&ImageShape::batch, &ImageShape::height, &ImageShape::width}) {
            if (first.*side != other.*side) {
                return node_error(
                    "RuntimeError",
                    "Sizes of tensors must match except in dimension 3. Expected size " +
                        std::to_string(first.*side) + " but got size " +
                        std::to_string(other.*side) + " for tensor number " + std::to_string(i) +
                        " in the list."
                );
            }
        }
    }
    return {};
}

Result<NodeResult> merge(Call& call) {
    const std::array<const Image*, 3> planes = {
        &call.image("Y"), &call.image("U"), &call.image("V")
    };
    if (auto equal = expect_equal_sizes(planes); !equal) {
        return fail(std::move(equal.error()));
    }
    ImageShape shape = planes[0]->shape();
    shape.channels = 3;
    auto out = call.new_image(shape);
    if (!out) {
        return fail(std::move(out.error()));
    }
    auto done = call.for_rows(
        shape.rows(),
        shape.row_floats() * 3,
        [&](std::size_t first, std::size_t last) {
            std::vector<float> means(shape.width * 3);
            for (std::size_t row = first; row < last; ++row) {
                for (std::size_t p = 0; p < 3; ++p) {
                    average(
                        planes[p]->row(row),
                        shape.width,
                        planes[p]->shape().channels,
                        &means[p * shape.width]
                    );
                }
                const float* y = means.data();
                to_rgb(y, y + shape.width, y + 2 * shape.width, shape.width, out->row(row));
            }
        }
    );
    if (!done) {
        return fail(std::move(done.error()));
    }
    return NodeResult{.outputs = {std::move(*out).finish()}};
}

}  // namespace

NodeClass image_rgb_to_yuv() {
    return {
        .name = "ImageRGBToYUV",
        .description = "Brightness and the two colour differences, each as a gray picture.",
        .execute = &split,
    };
}

NodeClass image_yuv_to_rgb() {
    return {
        .name = "ImageYUVToRGB",
        .description = "A colour picture from brightness and two colour differences.",
        .execute = &merge,
    };
}

}  // namespace comfyd::engine::nodes
