#include "engine/pixels/antialias.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/nodes/kernel.hpp"

namespace comfyd::engine {
namespace {

struct Tap {
    std::size_t begin = 0;
    std::vector<float> weights;
};

float cubic(float x) {
    constexpr float kA = -0.5F;
    x = std::abs(x);
    if (x < 1.0F) {
        return ((kA + 2.0F) * x - (kA + 3.0F)) * x * x + 1.0F;
    }
    return x < 2.0F ? (((x - 5.0F) * x + 8.0F) * x - 4.0F) * kA : 0.0F;
}

std::vector<Tap> taps(std::size_t in, std::size_t out) {
    const float ratio = static_cast<float>(in) / static_cast<float>(out);
    const float stretch = std::max(ratio, 1.0F);
    const float support = 2.0F * stretch;
    std::vector<Tap> all(out);
    for (std::size_t i = 0; i < out; ++i) {
        const float center = ratio * (static_cast<float>(i) + 0.5F);
        const float first = std::max(0.0F, std::trunc(center - support + 0.5F));
        const float last = std::min(static_cast<float>(in), std::trunc(center + support + 0.5F));
        Tap& tap = all[i];
        tap.begin = static_cast<std::size_t>(first);
        float total = 0;
        for (float x = first; x < last; x += 1.0F) {
            tap.weights.push_back(cubic((x - center + 0.5F) / stretch));
            total += tap.weights.back();
        }
        for (float& weight : tap.weights) {
            weight /= total;
        }
    }
    return all;
}

COMFYD_KERNEL void along_x(
    const float* pixels, std::size_t channels, const float* weights, std::size_t count, float* out
) {
    COMFYD_NO_CONTRACTION
    for (std::size_t c = 0; c < channels; ++c) {
        float sum = 0;
        for (std::size_t k = 0; k < count; ++k) {
            sum = std::fma(pixels[k * channels + c], weights[k], sum);
        }
        out[c] = sum;
    }
}

COMFYD_KERNEL void add_row(const float* row, float weight, std::size_t count, float* out) {
    COMFYD_NO_CONTRACTION
    for (std::size_t i = 0; i < count; ++i) {
        out[i] = std::fma(row[i], weight, out[i]);
    }
}

}  // namespace

Result<Image> resize_antialiased(
    const Call& call, const Image& image, std::size_t width, std::size_t height
) {
    const ImageShape& shape = image.shape();
    constexpr std::uint64_t kTapBytes = 64;
    const auto tables = call.charge((width + height + shape.width + shape.height) * kTapBytes);
    if (!tables) {
        return fail(tables.error());
    }
    auto narrow = call.new_image({shape.batch, shape.height, width, shape.channels});
    auto out = call.new_image({shape.batch, height, width, shape.channels});
    if (!narrow || !out) {
        return fail((narrow ? out : narrow).error());
    }
    const auto columns = taps(shape.width, width);
    const auto rows = taps(shape.height, height);
    const std::size_t floats = out->shape().row_floats();
    auto done = call.for_rows(
        shape.rows(),
        shape.row_floats() * 4,
        [&](std::size_t first, std::size_t last) {
            for (std::size_t row = first; row < last; ++row) {
                float* into = narrow->row(row);
                for (const Tap& tap : columns) {
                    const float* from = image.row(row) + tap.begin * shape.channels;
                    along_x(from, shape.channels, tap.weights.data(), tap.weights.size(), into);
                    into += shape.channels;
                }
            }
        }
    );
    if (done) {
        done = call.for_rows(
            shape.batch * height,
            floats * 8,
            [&](std::size_t first, std::size_t last) {
                for (std::size_t row = first; row < last; ++row) {
                    const Tap& tap = rows[row % height];
                    const std::size_t top = row / height * shape.height + tap.begin;
                    std::fill_n(out->row(row), floats, 0.0F);
                    for (std::size_t k = 0; k < tap.weights.size(); ++k) {
                        add_row(narrow->row(top + k), tap.weights[k], floats, out->row(row));
                    }
                }
            }
        );
    }
    if (!done) {
        return fail(std::move(done.error()));
    }
    return std::move(*out).finish();
}

}  // namespace comfyd::engine
