#include "media/scale.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "engine/nodes/kernel.hpp"
#include "engine/pictures/resize_kernels.hpp"

namespace comfyd::media {
namespace {

using engine::LanczosTap;

constexpr int kBits = 22;  // of the fraction of a tap's weights
constexpr std::int32_t kHalf = 1 << (kBits - 1);
constexpr std::size_t kRowsBetweenLooks = 64;

std::uint8_t to_byte(std::int32_t sum) {
    return static_cast<std::uint8_t>(std::clamp(sum >> kBits, 0, 255));
}

// One row from those that the tap reads, `bytes` each.
COMFYD_KERNEL void along_y(
    const std::uint8_t* rows,
    std::size_t bytes,
    const LanczosTap& tap,
    std::int32_t* sums,
    std::uint8_t* out
) {
    for (std::size_t i = 0; i < bytes; ++i) {
        sums[i] = kHalf;
    }
    const std::int32_t* weights = tap.weights.data();
    const std::size_t count = tap.weights.size();
    for (std::size_t k = 0; k < count; ++k) {
        for (std::size_t i = 0; i < bytes; ++i) {
            sums[i] += rows[i] * weights[k];
        }
        rows += bytes;
    }
    for (std::size_t i = 0; i < bytes; ++i) {
        out[i] = to_byte(sums[i]);
    }
}

COMFYD_KERNEL void along_x(
    const std::uint8_t* row, const LanczosTap* columns, std::size_t width, std::uint8_t* out
) {
    for (std::size_t x = 0; x < width; ++x) {
        std::int32_t sums[4] = {kHalf, kHalf, kHalf, kHalf};
        const std::uint8_t* pixel = row + 4 * columns[x].begin;
        const std::int32_t* weights = columns[x].weights.data();
        const std::size_t count = columns[x].weights.size();
        for (std::size_t k = 0; k < count; ++k) {
            for (int c = 0; c < 4; ++c) {
                sums[c] += pixel[c] * weights[k];
            }
            pixel += 4;
        }
        for (int c = 0; c < 4; ++c) {
            *out++ = to_byte(sums[c]);
        }
    }
}

// What is transparent has no colour to give to its neighbours.
void multiply_by_alpha(std::vector<std::uint8_t>& rgba) {
    for (std::size_t i = 0; i + 3 < rgba.size(); i += 4) {
        const unsigned alpha = rgba[i + 3];
        for (std::size_t c = i; c < i + 3; ++c) {
            rgba[c] = static_cast<std::uint8_t>((rgba[c] * alpha + 127) / 255);
        }
    }
}

void divide_by_alpha(std::vector<std::uint8_t>& rgba) {
    for (std::size_t i = 0; i + 3 < rgba.size(); i += 4) {
        const unsigned alpha = rgba[i + 3];
        for (std::size_t c = i; alpha != 0 && c < i + 3; ++c) {
            rgba[c] =
                static_cast<std::uint8_t>(std::min((rgba[c] * 255 + alpha / 2) / alpha, 255U));
        }
    }
}

Size shrink(Size size, double factor) {
    if (factor >= 1) {
        return size;
    }
    const auto side = [factor](std::size_t length) {
        const auto scaled = std::llround(static_cast<double>(length) * factor);
        return static_cast<std::size_t>(std::max(scaled, 1LL));
    };
    return {side(size.width), side(size.height)};
}

double part_of(double most, std::size_t length) {
    return length == 0 ? 1 : most / static_cast<double>(length);
}

}  // namespace

Size fit(Size size, std::size_t side_max) {
    return shrink(size, part_of(static_cast<double>(side_max), std::max(size.width, size.height)));
}

Size fit(Size size, const jobs::OutputWishes& wishes) {
    double factor = 1;
    if (wishes.side_max) {
        factor = std::min(factor, part_of(*wishes.side_max, std::max(size.width, size.height)));
    }
    if (wishes.width_max) {
        factor = std::min(factor, part_of(*wishes.width_max, size.width));
    }
    if (wishes.height_max) {
        factor = std::min(factor, part_of(*wishes.height_max, size.height));
    }
    return shrink(size, factor);
}

Bitmap scale(const Bitmap& from, Size size, const std::function<bool()>& stopped) {
    if (size == Size{from.width, from.height}) {
        return from;
    }
    std::vector<std::uint8_t> multiplied;
    if (from.has_alpha) {
        multiplied = from.rgba;
        multiply_by_alpha(multiplied);
    }
    const std::uint8_t* pixels = from.has_alpha ? multiplied.data() : from.rgba.data();
    const auto rows = engine::lanczos_taps(from.height, size.height);
    const auto columns = engine::lanczos_taps(from.width, size.width);
    const std::size_t bytes = from.width * 4;
    std::vector<std::int32_t> sums(bytes);
    std::vector<std::uint8_t> row(bytes);
    Bitmap made{
        .width = size.width,
        .height = size.height,
        .rgba = std::vector<std::uint8_t>(size.width * size.height * 4),
        .has_alpha = from.has_alpha
    };
    for (std::size_t y = 0; y < size.height; ++y) {
        if (y % kRowsBetweenLooks == 0 && stopped()) {
            break;
        }
        along_y(pixels + rows[y].begin * bytes, bytes, rows[y], sums.data(), row.data());
        along_x(row.data(), columns.data(), size.width, made.rgba.data() + y * size.width * 4);
    }
    if (made.has_alpha) {
        divide_by_alpha(made.rgba);
    }
    return made;
}

}  // namespace comfyd::media
