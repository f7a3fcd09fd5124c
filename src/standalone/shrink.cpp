#include "standalone/shrink.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace comfyd::standalone {
namespace {

using engine::pictures::Bitmap;

struct Range {
    std::size_t begin;
    std::size_t end;
};

// Which of `from` pixels one of `to` stands for: at least one.
Range range_of(std::size_t i, std::size_t from, std::size_t to) {
    const std::size_t begin = i * from / to;
    return {begin, std::max(begin + 1, (i + 1) * from / to)};
}

std::array<std::uint8_t, 4> mean_of(const Bitmap& bitmap, Range columns, Range rows) {
    std::array<std::uint64_t, 3> colours{};
    std::uint64_t alpha = 0;
    for (std::size_t y = rows.begin; y < rows.end; ++y) {
        for (std::size_t x = columns.begin; x < columns.end; ++x) {
            const std::uint8_t* pixel = &bitmap.rgba[4 * (y * bitmap.width + x)];
            for (std::size_t i = 0; i < colours.size(); ++i) {
                colours[i] += std::uint64_t{pixel[i]} * pixel[3];
            }
            alpha += pixel[3];
        }
    }
    const std::uint64_t count = (columns.end - columns.begin) * (rows.end - rows.begin);
    std::array<std::uint8_t, 4> mean{};
    for (std::size_t i = 0; i < colours.size() && alpha > 0; ++i) {
        mean[i] = static_cast<std::uint8_t>((colours[i] + alpha / 2) / alpha);
    }
    mean[3] = static_cast<std::uint8_t>((alpha + count / 2) / count);
    return mean;
}

}  // namespace

void shrink(Bitmap& bitmap, std::size_t longest_side) {
    const std::size_t longest = std::max(bitmap.width, bitmap.height);
    if (longest <= longest_side) {
        return;
    }
    const auto scaled = [&](std::size_t side) {
        return std::max<std::size_t>(1, (side * longest_side + longest / 2) / longest);
    };
    Bitmap small;
    small.width = scaled(bitmap.width);
    small.height = scaled(bitmap.height);
    small.has_alpha = bitmap.has_alpha;
    small.rgba.reserve(4 * small.width * small.height);
    for (std::size_t y = 0; y < small.height; ++y) {
        const Range rows = range_of(y, bitmap.height, small.height);
        for (std::size_t x = 0; x < small.width; ++x) {
            const auto mean = mean_of(bitmap, range_of(x, bitmap.width, small.width), rows);
            small.rgba.insert(small.rgba.end(), mean.begin(), mean.end());
        }
    }
    bitmap = std::move(small);
}

}  // namespace comfyd::standalone
