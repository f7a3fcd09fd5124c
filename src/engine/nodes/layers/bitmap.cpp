#include "engine/nodes/layers/bitmap.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numbers>
#include <utility>

#include "engine/nodes/call.hpp"
#include "engine/nodes/node.hpp"
#include "engine/pictures/resize.hpp"
#include "engine/pixels.hpp"

namespace comfyd::engine::nodes {
namespace {

using Matrix = std::array<double, 6>;

std::pair<double, double> transform(const Matrix& m, double x, double y) {
    return {m[0] * x + m[1] * y + m[2], m[3] * x + m[4] * y + m[5]};
}

// Python's round(value, 15).
double to_15_digits(double value) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.15f", value);
    return std::strtod(text.data(), nullptr);
}

std::uint8_t premultiplied(std::uint8_t color, std::uint8_t alpha) {
    const unsigned product = color * alpha + 128U;
    return static_cast<std::uint8_t>(((product >> 8) + product) >> 8);
}

void premultiply(Rgba8& picture) {
    for (std::size_t i = 0; i < picture.bytes.size(); i += 4) {
        for (std::size_t c = 0; c < 3; ++c) {
            picture.bytes[i + c] = premultiplied(picture.bytes[i + c], picture.bytes[i + 3]);
        }
    }
}

void unpremultiply(Rgba8& picture) {
    for (std::size_t i = 0; i < picture.bytes.size(); i += 4) {
        const unsigned alpha = picture.bytes[i + 3];
        for (std::size_t c = 0; alpha != 0 && alpha != 255 && c < 3; ++c) {
            picture.bytes[i + c] =
                static_cast<std::uint8_t>(std::min(255U, 255U * picture.bytes[i + c] / alpha));
        }
    }
}

double cubic(const std::array<double, 4>& v, double d) {
    const double p1 = v[1];
    const double p2 = -v[0] + v[2];
    const double p3 = 2 * (v[0] - v[1]) + v[2] - v[3];
    const double p4 = -v[0] + v[1] - v[2] + v[3];
    return p1 + d * (p2 + d * (p3 + d * p4));
}

// The picture at (x, y) by Pillow's bicubic filter; false outside of it.
bool sample(const Rgba8& from, double x, double y, std::uint8_t* into) {
    const auto width = static_cast<double>(from.width);
    const auto height = static_cast<double>(from.height);
    if (!(x >= 0.0 && x < width && y >= 0.0 && y < height)) {
        return false;
    }
    const auto left = static_cast<std::int64_t>(std::floor(x - 0.5));
    const auto top = static_cast<std::int64_t>(std::floor(y - 0.5));
    const double dx = x - 0.5 - static_cast<double>(left);
    const double dy = y - 0.5 - static_cast<double>(top);
    const auto last_row = static_cast<std::int64_t>(from.height) - 1;
    const auto last_column = static_cast<std::int64_t>(from.width) - 1;
    for (std::size_t c = 0; c < 4; ++c) {
        std::array<double, 4> rows{};
        for (std::int64_t j = 0; j < 4; ++j) {
            const std::int64_t row = top - 1 + j;
            // Below the picture the row before counts again; above it the first.
            if (j > 0 && (row < 0 || row > last_row)) {
                rows[static_cast<std::size_t>(j)] = rows[static_cast<std::size_t>(j - 1)];
                continue;
            }
            const auto at_row =
                static_cast<std::size_t>(std::clamp<std::int64_t>(row, 0, last_row));
            std::array<double, 4> taps{};
            for (std::int64_t i = 0; i < 4; ++i) {
                const auto column =
                    static_cast<std::size_t>(std::clamp<std::int64_t>(left - 1 + i, 0, last_column)
                    );
                taps[static_cast<std::size_t>(i)] = from.at(column, at_row)[c];
            }
            rows[static_cast<std::size_t>(j)] = cubic(taps, dx);
        }
        into[c] = static_cast<std::uint8_t>(std::clamp(cubic(rows, dy), 0.0, 255.0));
    }
    return true;
}

// Quarter turns counter-clockwise.
Rgba8 turned(const Rgba8& picture, int turns) {
    Rgba8 result{picture.width, picture.height, std::vector<std::uint8_t>(picture.bytes.size())};
    if (turns % 2 != 0) {
        std::swap(result.width, result.height);
    }
    for (std::size_t y = 0; y < picture.height; ++y) {
        for (std::size_t x = 0; x < picture.width; ++x) {
            const std::size_t right = picture.width - 1 - x;
            const std::size_t down = picture.height - 1 - y;
            std::uint8_t* into = turns == 1   ? result.at(y, right)
                                 : turns == 2 ? result.at(right, down)
                                              : result.at(down, x);
            std::copy_n(picture.at(x, y), 4, into);
        }
    }
    return result;
}

// From the result back into the picture, and the size of the result.
struct Turn {
    Matrix matrix{};
    std::size_t width = 0;
    std::size_t height = 0;
};

Turn plan_turn(const Rgba8& picture, double degrees) {
    const double angle = -degrees * (std::numbers::pi / 180.0);
    const auto w = static_cast<double>(picture.width);
    const auto h = static_cast<double>(picture.height);
    const double cosine = to_15_digits(std::cos(angle));
    const double sine = to_15_digits(std::sin(angle));
    Turn turn{{cosine, sine, 0.0, to_15_digits(-std::sin(angle)), cosine, 0.0}};
    Matrix& m = turn.matrix;
    const auto [cx, cy] = transform(m, -(w / 2), -(h / 2));
    m[2] = cx + w / 2;
    m[5] = cy + h / 2;
    const std::array<std::pair<double, double>, 4> corners = {
        transform(m, 0, 0), transform(m, w, 0), transform(m, w, h), transform(m, 0, h)
    };
    const auto [left, right] =
        std::ranges::minmax({corners[0].first, corners[1].first, corners[2].first, corners[3].first}
        );
    const auto [top, bottom] = std::ranges::minmax(
        {corners[0].second, corners[1].second, corners[2].second, corners[3].second}
    );
    const double new_width = std::ceil(right) - std::floor(left);
    const double new_height = std::ceil(bottom) - std::floor(top);
    const auto [tx, ty] = transform(m, -(new_width - w) / 2.0, -(new_height - h) / 2.0);
    m[2] = tx;
    m[5] = ty;
    turn.width = static_cast<std::size_t>(new_width);
    turn.height = static_cast<std::size_t>(new_height);
    return turn;
}

}  // namespace

void flip(Rgba8& picture, bool horizontally, bool vertically) {
    for (std::size_t y = 0; horizontally && y < picture.height; ++y) {
        for (std::size_t x = 0; x < picture.width / 2; ++x) {
            std::swap_ranges(
                picture.at(x, y), picture.at(x, y) + 4, picture.at(picture.width - 1 - x, y)
            );
        }
    }
    for (std::size_t y = 0; vertically && y < picture.height / 2; ++y) {
        std::swap_ranges(
            picture.at(0, y),
            picture.at(0, y) + picture.width * 4,
            picture.at(0, picture.height - 1 - y)
        );
    }
}

Result<Rgba8> resized(
    const Call& call, const Rgba8& picture, std::size_t width, std::size_t height
) {
    auto floats = call.new_image({1, picture.height, picture.width, 4});
    if (!floats) {
        return fail(std::move(floats.error()));
    }
    std::ranges::transform(picture.bytes, floats->data(), [](std::uint8_t byte) {
        return static_cast<float>(byte) / 255.0F;
    });
    const auto image = resize(
        call, std::move(*floats).finish(), width, height, ResizeMethod::lanczos, Crop::disabled
    );
    if (!image) {
        return fail(image.error());
    }
    Rgba8 result{width, height, std::vector<std::uint8_t>(width * height * 4)};
    to_bytes(image->data(), result.bytes.size(), result.bytes.data());
    return result;
}

Result<Rgba8> rotated(const Call& call, const Rgba8& picture, double degrees) {
    double angle = std::fmod(degrees, 360.0);
    angle += angle < 0.0 ? 360.0 : 0.0;
    if (angle == 0.0) {
        return picture;
    }
    if (std::fmod(angle, 90.0) == 0.0) {
        return turned(picture, static_cast<int>(angle / 90.0));
    }
    const Turn turn = plan_turn(picture, angle);
    if (turn.width > 2 * kSideMax || turn.height > 2 * kSideMax) {
        return node_error("ValueError", "The turned layer is too large");
    }
    Rgba8 source = picture;
    premultiply(source);
    Rgba8 result{turn.width, turn.height, std::vector<std::uint8_t>(turn.width * turn.height * 4)};
    auto done =
        call.for_rows(turn.height, turn.width * 64, [&](std::size_t first, std::size_t last) {
            for (std::size_t y = first; y < last; ++y) {
                for (std::size_t x = 0; x < turn.width; ++x) {
                    const auto [from_x, from_y] = transform(
                        turn.matrix, static_cast<double>(x) + 0.5, static_cast<double>(y) + 0.5
                    );
                    sample(source, from_x, from_y, result.at(x, y));
                }
            }
        });
    if (!done) {
        return fail(std::move(done.error()));
    }
    unpremultiply(result);
    return result;
}

}  // namespace comfyd::engine::nodes
