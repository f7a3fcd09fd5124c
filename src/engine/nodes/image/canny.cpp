#include <array>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "engine/nodes/image/image.hpp"
#include "engine/nodes/kernel.hpp"
#include "engine/pixels/convolve.hpp"
#include "engine/pixels/torch_math.hpp"
#include "workflow/graph/python_text.hpp"

namespace comfyd::engine::nodes {
namespace {

COMFYD_KERNEL void to_gray(const float* rgb, std::size_t pixels, float* out) {
    COMFYD_NO_CONTRACTION
    for (std::size_t i = 0; i < pixels; ++i) {
        const float* pixel = rgb + i * 3;
        const float red_green = std::fma(pixel[1], 0.587F, pixel[0] * 0.299F);
        out[i] = std::fma(pixel[2], 0.114F, red_green);
    }
}

Result<Image> gray(const Call& call, const Image& image) {
    const ImageShape& shape = image.shape();
    auto out = call.new_image({shape.batch, shape.height, shape.width, 1});
    if (!out) {
        return fail(std::move(out.error()));
    }
    auto done =
        call.for_rows(shape.rows(), shape.row_floats(), [&](std::size_t first, std::size_t last) {
            to_gray(image.row(first), (last - first) * shape.width, out->row(first));
        });
    if (!done) {
        return fail(std::move(done.error()));
    }
    return std::move(*out).finish();
}

// Five weights of a bell with the standard deviation 1, as rounded by PyTorch.
std::vector<float> bell() {
    COMFYD_NO_CONTRACTION
    std::vector<float> weights;
    for (int x = -2; x <= 2; ++x) {
        weights.push_back(std::exp(-static_cast<float>(x * x) / 2.0F));
    }
    const float sum = torch_sum(weights.data(), weights.size());
    for (float& weight : weights) {
        weight /= sum;
    }
    return weights;
}

struct Gradients {
    Image x;
    Image y;
};

// PyTorch leaves the convolution of a larger picture, counted with its border, or of several to a
// library whose steps are fused.
bool is_fused(const ImageShape& shape, std::size_t border_x, std::size_t border_y) {
    constexpr std::size_t kSmallMax = 20480;
    return shape.batch > 1 || (shape.width + border_x) * (shape.height + border_y) > kSmallMax;
}

Result<Gradients> gradients(const Call& call, const Image& image) {
    const std::vector<float> weights = bell();
    const ImageShape& shape = image.shape();
    auto smooth = convolve(call, image, {5, 1, weights, is_fused(shape, 4, 0)}, Border::reflect);
    if (smooth) {
        smooth = convolve(call, *smooth, {1, 5, weights, is_fused(shape, 0, 4)}, Border::reflect);
    }
    if (!smooth) {
        return fail(std::move(smooth.error()));
    }
    auto x = convolve(call, *smooth, {3, 3, {-1, 0, 1, -2, 0, 2, -1, 0, 1}}, Border::replicate);
    auto y = convolve(call, *smooth, {3, 3, {-1, -2, -1, 0, 0, 0, 1, 2, 1}}, Border::replicate);
    if (!x || !y) {
        return fail((x ? y : x).error());
    }
    return Gradients{std::move(*x), std::move(*y)};
}

COMFYD_KERNEL void magnitude(const float* x, const float* y, std::size_t count, float* out) {
    COMFYD_NO_CONTRACTION
    for (std::size_t i = 0; i < count; ++i) {
        out[i] = kernel_sqrt(x[i] * x[i] + y[i] * y[i] + 1e-6F);
    }
}

// Of the eight directions, clockwise from the right, the one that a gradient points to; -1: none.
int direction(float x, float y) {
    const float eighth = std::atan2(y, x) * (4.0F / std::numbers::pi_v<float>);
    if (eighth != eighth) {
        return -1;
    }
    return (static_cast<int>(std::nearbyint(eighth)) + 8) % 8;
}

enum Edge : std::uint8_t { none, weak, strong };

// One picture's strengths with a border of zeros around them.
class Field {
public:
    Field(const float* values, const ImageShape& shape)
        : stride_(shape.width + 2), values_(stride_ * (shape.height + 2)) {
        for (std::size_t y = 0; y < shape.height; ++y) {
            std::copy_n(values + y * shape.width, shape.width, &values_[index(0, y)]);
        }
    }

    std::size_t index(std::size_t x, std::size_t y) const { return (y + 1) * stride_ + x + 1; }
    float operator[](std::size_t i) const { return values_[i]; }
    std::size_t size() const { return values_.size(); }
    std::array<std::ptrdiff_t, 8> neighbours() const {
        const auto down = static_cast<std::ptrdiff_t>(stride_);
        return {1, down + 1, down, down - 1, -1, -down - 1, -down, -down + 1};
    }

private:
    std::size_t stride_;
    std::vector<float> values_;
};

std::size_t moved(std::size_t index, std::ptrdiff_t by) {
    return static_cast<std::size_t>(static_cast<std::ptrdiff_t>(index) + by);
}

// Pixels that are looked at before the next look at whether the run was stopped.
constexpr std::size_t kStopCheck = 1'000'000;

// Weak edges that touch a strong one are strong too.
void connect(
    const Call& call,
    std::vector<std::uint8_t>& edges,
    const std::array<std::ptrdiff_t, 8>& neighbours
) {
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < edges.size(); ++i) {
        if (edges[i] == strong) {
            open.push_back(i);
        }
    }
    for (std::size_t count = 0; !open.empty(); ++count) {
        if (count % kStopCheck == 0 && call.stopped()) {
            return;
        }
        const std::size_t at = open.back();
        open.pop_back();
        for (const std::ptrdiff_t by : neighbours) {
            const std::size_t beside = moved(at, by);
            if (edges[beside] == weak) {
                edges[beside] = strong;
                open.push_back(beside);
            }
        }
    }
}

struct Thresholds {
    float low;
    float high;
};

// Leaves off when the run was stopped.
void find_edges(
    const Call& call,
    const float* x,
    const float* y,
    const ImageShape& shape,
    Thresholds limits,
    float* rgb
) {
    std::vector<float> strengths(shape.width * shape.height);
    magnitude(x, y, strengths.size(), strengths.data());
    const Field field(strengths.data(), shape);
    const auto neighbours = field.neighbours();
    std::vector<std::uint8_t> edges(field.size());
    for (std::size_t i = 0; i < strengths.size(); ++i) {
        if (i % kStopCheck == 0 && call.stopped()) {
            return;
        }
        if (!(strengths[i] > limits.low)) {
            continue;
        }
        const int to = direction(x[i], y[i]);
        const std::size_t at = field.index(i % shape.width, i / shape.width);
        // The crest of an edge is stronger than what lies before and behind it.
        if (to >= 0 && field[at] > field[moved(at, neighbours[static_cast<std::size_t>(to)])] &&
            field[at] > field[moved(at, neighbours[static_cast<std::size_t>((to + 4) % 8)])]) {
            edges[at] = strengths[i] > limits.high ? strong : weak;
        }
    }
    connect(call, edges, neighbours);
    for (std::size_t i = 0; i < strengths.size(); ++i) {
        const bool edge = edges[field.index(i % shape.width, i / shape.width)] == strong;
        rgb[i * 3] = rgb[i * 3 + 1] = rgb[i * 3 + 2] = edge ? 1.0F : 0.0F;
    }
}

Result<> expect_usable(const ImageShape& shape, double low, double high) {
    if (low > high) {
        return node_error(
            "BaseError",
            "Invalid input thresholds. low_threshold should be smaller than the high_threshold. "
            "Got: " +
                workflow::python_repr(low) + ">" + workflow::python_repr(high)
        );
    }
    for (const auto& [name, threshold] : {std::pair("low", low), std::pair("high", high)}) {
        if (!(threshold > 0 && threshold < 1)) {
            return node_error(
                "BaseError",
                "Invalid " + std::string(name) + " threshold. Should be in range (0, 1). Got: " +
                    workflow::python_repr(threshold)
            );
        }
    }
    if (shape.channels != 3 && shape.channels != 1) {
        const std::string channels = std::to_string(shape.channels);
        return node_error(
            "RuntimeError",
            "Given groups=1, weight of size [8, 1, 3, 3], expected input[" +
                std::to_string(shape.batch) + ", " + channels + ", " +
                std::to_string(shape.height) + ", " + std::to_string(shape.width) +
                "] to have 1 channels, but got " + channels + " channels instead"
        );
    }
    return {};
}

Result<NodeResult> compute(Call& call) {
    const Image& image = call.image("image");
    const double low = call.number("low_threshold");
    const double high = call.number("high_threshold");
    if (auto usable = expect_usable(image.shape(), low, high); !usable) {
        return fail(std::move(usable.error()));
    }
    Result<Image> light = image;
    if (image.shape().channels == 3) {
        light = gray(call, image);
    }
    if (!light) {
        return fail(std::move(light.error()));
    }
    const auto slopes = gradients(call, *light);
    if (!slopes) {
        return fail(slopes.error());
    }
    ImageShape shape = image.shape();
    shape.channels = 3;
    auto out = call.new_image(shape);
    if (!out) {
        return fail(std::move(out.error()));
    }
    const Thresholds limits{static_cast<float>(low), static_cast<float>(high)};
    constexpr std::uint64_t kBytesPerPixel = 24;
    auto done = call.for_each(shape.batch, [&](std::size_t i) -> Result<> {
        const auto space = call.charge(shape.height * shape.width * kBytesPerPixel);
        if (!space) {
            return fail(space.error());
        }
        find_edges(
            call,
            slopes->x.picture(i),
            slopes->y.picture(i),
            shape,
            limits,
            out->row(i * shape.height)
        );
        return call.check_stopped();
    });
    if (!done) {
        return fail(std::move(done.error()));
    }
    return NodeResult{.outputs = {std::move(*out).finish()}};
}

}  // namespace

NodeClass canny() {
    return {
        .name = "Canny",
        .description = "White edges on black.",
        .execute = &compute,
    };
}

}  // namespace comfyd::engine::nodes
