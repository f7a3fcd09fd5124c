#include "engine/pixels/convolve.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>

#include "engine/nodes/kernel.hpp"
#include "engine/pixels/torch_math.hpp"
#include "engine/pixels/values.hpp"

namespace comfyd::engine {
namespace {

// As many sums as stay in registers.
constexpr std::size_t kBlock = 64;

// The chains of kBlock neighbouring output values.
COMFYD_KERNEL void convolve_block(
    const float* const* rows,
    const Filter& filter,
    std::size_t channels,
    std::size_t offset,
    float* out
) {
    COMFYD_NO_CONTRACTION
    std::array<float, kBlock> sums{};
    const float* weight = filter.weights.data();
    for (std::size_t y = 0; y < filter.height; ++y) {
        const float* from = rows[y] + offset;
        for (std::size_t x = 0; x < filter.width; ++x, from += channels) {
            const float w = *weight++;
            if (filter.fused) {
                for (std::size_t i = 0; i < kBlock; ++i) {
                    sums[i] = std::fma(from[i], w, sums[i]);
                }
            } else {
                for (std::size_t i = 0; i < kBlock; ++i) {
                    sums[i] += from[i] * w;
                }
            }
        }
    }
    if (filter.clamped) {
        for (std::size_t i = 0; i < kBlock; ++i) {
            sums[i] = clamp_unit(sums[i]);
        }
    }
    std::ranges::copy(sums, out);
}

std::size_t beyond(std::int64_t at, std::size_t side, Border border) {
    const auto last = static_cast<std::int64_t>(side) - 1;
    if (border == Border::replicate) {
        return static_cast<std::size_t>(std::clamp<std::int64_t>(at, 0, last));
    }
    return static_cast<std::size_t>(at < 0 ? -at : at > last ? 2 * last - at : at);
}

// A picture whose rows go on to both sides, with room for a whole block at their end.
struct Widened {
    float* data = nullptr;
    std::size_t stride = 0;

    float* row(std::size_t y) const { return data + y * stride; }
};

void widen_row(
    const float* from, const ImageShape& shape, std::size_t reach, Border border, float* into
) {
    const auto copy = [&](std::int64_t x) {
        into = std::copy_n(
            from + beyond(x, shape.width, border) * shape.channels, shape.channels, into
        );
    };
    const auto side = static_cast<std::int64_t>(reach);
    const auto width = static_cast<std::int64_t>(shape.width);
    for (std::int64_t x = -side; x < 0; ++x) {
        copy(x);
    }
    into = std::copy_n(from, shape.row_floats(), into);
    for (std::int64_t x = width; x < width + side; ++x) {
        copy(x);
    }
    std::fill_n(into, kBlock, 0.0F);
}

// A large filter takes long for every block: the rest of a row is left out when the run was
// stopped.
void convolve_row(
    const Call& call,
    const Widened& source,
    const ImageShape& shape,
    const Filter& filter,
    Border border,
    std::size_t y,
    float* out
) {
    std::vector<const float*> rows(filter.height);
    for (std::size_t k = 0; k < filter.height; ++k) {
        const auto at =
            static_cast<std::int64_t>(y + k) - static_cast<std::int64_t>(filter.reach_y());
        rows[k] = source.row(beyond(at, shape.height, border));
    }
    const std::size_t floats = shape.row_floats();
    std::size_t i = 0;
    for (; i + kBlock <= floats; i += kBlock) {
        if (call.stopped()) {
            return;
        }
        convolve_block(rows.data(), filter, shape.channels, i, out + i);
    }
    if (i < floats) {
        std::array<float, kBlock> rest{};
        convolve_block(rows.data(), filter, shape.channels, i, rest.data());
        std::copy_n(rest.begin(), floats - i, out + i);
    }
}

Result<> expect_room(const ImageShape& shape, const Filter& filter) {
    const auto refusal = [&](const char* argument, std::size_t reach, const char* dimension) {
        return node_error(
            "RuntimeError",
            std::string("Argument #") + argument +
                ": Padding size should be less than the corresponding input dimension, but got: "
                "padding (" +
                std::to_string(reach) + ", " + std::to_string(reach) + ") at dimension " +
                dimension + " of input [" + std::to_string(shape.batch) + ", " +
                std::to_string(shape.channels) + ", " + std::to_string(shape.height) + ", " +
                std::to_string(shape.width) + "]"
        );
    };
    if (filter.reach_x() >= shape.width) {
        return refusal("4", filter.reach_x(), "3");
    }
    if (filter.reach_y() >= shape.height) {
        return refusal("6", filter.reach_y(), "2");
    }
    return {};
}

}  // namespace

Result<Image> convolve(const Call& call, const Image& image, const Filter& filter, Border border) {
    const ImageShape shape = image.shape();
    if (border == Border::reflect) {
        if (auto room = expect_room(shape, filter); !room) {
            return fail(std::move(room.error()));
        }
    }
    auto out = call.new_image(shape);
    if (!out) {
        return fail(std::move(out.error()));
    }
    Widened wide;
    wide.stride = shape.row_floats() + 2 * filter.reach_x() * shape.channels + kBlock;
    auto scratch = call.new_scratch(wide.stride * shape.height * sizeof(float));
    if (!scratch) {
        return fail(std::move(scratch.error()));
    }
    wide.data = reinterpret_cast<float*>(scratch->data());
    const std::size_t work = shape.row_floats() * filter.weights.size();
    for (std::size_t picture = 0; picture < shape.batch; ++picture) {
        const std::size_t top = picture * shape.height;
        auto done =
            call.for_rows(shape.height, wide.stride, [&](std::size_t first, std::size_t last) {
                for (std::size_t y = first; y < last; ++y) {
                    widen_row(image.row(top + y), shape, filter.reach_x(), border, wide.row(y));
                }
            });
        if (done) {
            done = call.for_rows(shape.height, work, [&](std::size_t first, std::size_t last) {
                for (std::size_t y = first; y < last; ++y) {
                    convolve_row(call, wide, shape, filter, border, y, out->row(top + y));
                }
            });
        }
        if (!done) {
            return fail(std::move(done.error()));
        }
    }
    return std::move(*out).finish();
}

Filter gaussian_filter(std::size_t side, double sigma) {
    COMFYD_NO_CONTRACTION
    std::vector<float> axis(side);
    const float step = 2.0F / static_cast<float>(side - 1);
    for (std::size_t i = 0; i < side; ++i) {
        axis[i] = i < side / 2 ? std::fma(step, static_cast<float>(i), -1.0F)
                               : std::fma(-step, static_cast<float>(side - i - 1), 1.0F);
    }
    const auto spread = static_cast<float>(2.0 * sigma * sigma);
    Filter filter{.width = side, .height = side, .weights = {}};
    filter.weights.reserve(side * side);
    for (const float y : axis) {
        for (const float x : axis) {
            const float distance = std::sqrt(y * y + x * x);
            filter.weights.push_back(torch_exp(-(distance * distance) / spread));
        }
    }
    const float sum = torch_sum(filter.weights.data(), filter.weights.size());
    for (float& weight : filter.weights) {
        weight /= sum;
    }
    return filter;
}

}  // namespace comfyd::engine
