#include "engine/pixels/extremum.hpp"

#include <algorithm>
#include <vector>

#include "engine/nodes/kernel.hpp"
#include "engine/pixels/values.hpp"

// The loop that follows may be turned into vector code although its arrays overlap.
#if defined(__clang__)
#define COMFYD_IN_ORDER _Pragma("clang loop vectorize(assume_safety)")
#else
#define COMFYD_IN_ORDER _Pragma("GCC ivdep")
#endif

namespace comfyd::engine {
namespace {

// Columns that are worked on together, so that a strip of them stays in the cache.
constexpr std::size_t kStrip = 64;

// `other` may lie ahead in the same line: it is then read before it is written.
COMFYD_KERNEL void keep_larger(float* into, const float* other, std::size_t count) {
    COMFYD_IN_ORDER
    for (std::size_t i = 0; i < count; ++i) {
        into[i] = larger(into[i], other[i]);
    }
}

COMFYD_KERNEL void keep_smaller(float* into, const float* other, std::size_t count) {
    COMFYD_IN_ORDER
    for (std::size_t i = 0; i < count; ++i) {
        into[i] = smaller(into[i], other[i]);
    }
}

// Position i of a line becomes the extremum of positions i to i + side - 1, in steps that double
// the length: `step` floats are one position, `length` positions come out.
void slide(float* line, std::size_t length, std::size_t step, std::size_t side, Extremum which) {
    const auto keep = which == Extremum::largest ? &keep_larger : &keep_smaller;
    std::size_t covered = 1;
    std::size_t positions = length + side - 1;
    while (covered < side) {
        const std::size_t shift = std::min(covered, side - covered);
        positions -= shift;
        keep(line, line + shift * step, positions * step);
        covered += shift;
    }
}

struct Window {
    std::size_t side;
    std::size_t before;
    Extremum which;
    float outside;
};

void along_row(
    const float* from,
    const ImageShape& shape,
    const Window& window,
    std::vector<float>& line,
    float* into
) {
    line.assign((shape.width + window.side - 1) * shape.channels, window.outside);
    std::copy_n(
        from,
        shape.row_floats(),
        line.begin() + static_cast<std::ptrdiff_t>(window.before * shape.channels)
    );
    slide(line.data(), shape.width, shape.channels, window.side, window.which);
    std::copy_n(line.begin(), shape.row_floats(), into);
}

// `picture` in place, `columns` floats of each row from `first` on.
void along_column(
    float* picture,
    const ImageShape& shape,
    const Window& window,
    std::size_t first,
    std::size_t columns
) {
    std::vector<float> strip((shape.height + window.side - 1) * columns, window.outside);
    for (std::size_t y = 0; y < shape.height; ++y) {
        std::copy_n(
            picture + y * shape.row_floats() + first,
            columns,
            strip.begin() + static_cast<std::ptrdiff_t>((window.before + y) * columns)
        );
    }
    slide(strip.data(), shape.height, columns, window.side, window.which);
    for (std::size_t y = 0; y < shape.height; ++y) {
        std::copy_n(
            strip.begin() + static_cast<std::ptrdiff_t>(y * columns),
            columns,
            picture + y * shape.row_floats() + first
        );
    }
}

}  // namespace

Result<Image> extremum(
    const Call& call, const Image& image, std::size_t side, Extremum which, float outside
) {
    const ImageShape shape = image.shape();
    // A larger window sees no more: all of the picture and, on both sides, what lies outside.
    const std::size_t most = 2 * std::max(shape.width, shape.height) + 1;
    side = side > most ? most + (side - most) % 2 : side;
    const Window window{side, side / 2, which, outside};
    auto out = call.new_image(shape);
    if (!out) {
        return fail(std::move(out.error()));
    }
    const std::size_t row_work = (shape.width + side) * shape.channels * 4;
    auto done = call.for_rows(shape.rows(), row_work, [&](std::size_t first, std::size_t last) {
        std::vector<float> line;
        for (std::size_t row = first; row < last; ++row) {
            along_row(image.row(row), shape, window, line, out->row(row));
        }
    });
    const std::size_t strips = (shape.row_floats() + kStrip - 1) / kStrip;
    const std::size_t strip_work = (shape.height + side) * kStrip * 4;
    if (done) {
        done = call.for_rows(
            shape.batch * strips,
            strip_work,
            [&](std::size_t first, std::size_t last) {
                for (std::size_t i = first; i < last; ++i) {
                    const std::size_t at = i % strips * kStrip;
                    along_column(
                        out->row(i / strips * shape.height),
                        shape,
                        window,
                        at,
                        std::min(kStrip, shape.row_floats() - at)
                    );
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
