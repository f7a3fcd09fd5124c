#include "media/placeholder.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <numbers>
#include <string_view>
#include <vector>

namespace comfyd::media {
namespace {

using engine::pictures::Bitmap;

constexpr std::size_t kAcross = 4;
constexpr std::size_t kDown = 3;
constexpr std::string_view kDigits =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz#$%*+,-.:;=?@[]^_{|}~";

using Colour = std::array<double, 3>;

double to_linear(double srgb) {
    return srgb <= 0.04045 ? srgb / 12.92 : std::pow((srgb + 0.055) / 1.055, 2.4);
}

int to_srgb(double linear) {
    const double v = std::clamp(linear, 0.0, 1.0);
    const double srgb = v <= 0.0031308 ? v * 12.92 : 1.055 * std::pow(v, 1 / 2.4) - 0.055;
    return static_cast<int>(srgb * 255 + 0.5);
}

void append_base83(std::string& text, int value, int digits) {
    for (int i = 1; i <= digits; ++i) {
        int divisor = 1;
        for (int k = i; k < digits; ++k) {
            divisor *= 83;
        }
        text += kDigits[static_cast<std::size_t>(value / divisor % 83)];
    }
}

std::vector<Colour> linear_upon_white(const Bitmap& picture) {
    std::vector<Colour> pixels(picture.width * picture.height);
    for (std::size_t i = 0; i < pixels.size(); ++i) {
        const std::uint8_t* rgba = picture.rgba.data() + 4 * i;
        const double alpha = picture.has_alpha ? rgba[3] / 255.0 : 1.0;
        for (std::size_t c = 0; c < 3; ++c) {
            pixels[i][c] = to_linear(rgba[c] / 255.0 * alpha + 1.0 - alpha);
        }
    }
    return pixels;
}

Colour component(
    const std::vector<Colour>& pixels, const Bitmap& size, std::size_t i, std::size_t j
) {
    Colour sum{};
    const auto wave = [](std::size_t k, std::size_t at, std::size_t length) {
        return std::cos(
            std::numbers::pi * static_cast<double>(k) * static_cast<double>(at) /
            static_cast<double>(length)
        );
    };
    for (std::size_t y = 0; y < size.height; ++y) {
        for (std::size_t x = 0; x < size.width; ++x) {
            const double basis = wave(i, x, size.width) * wave(j, y, size.height);
            for (std::size_t c = 0; c < 3; ++c) {
                sum[c] += basis * pixels[y * size.width + x][c];
            }
        }
    }
    const double weight = (i == 0 && j == 0 ? 1.0 : 2.0) / static_cast<double>(pixels.size());
    for (double& value : sum) {
        value *= weight;
    }
    return sum;
}

int quantised(double value, double most) {
    const double scaled = value / most;
    const double root = std::copysign(std::sqrt(std::abs(scaled)), scaled);
    return static_cast<int>(std::clamp(std::floor(root * 9 + 9.5), 0.0, 18.0));
}

}  // namespace

std::string blurhash_of(const Bitmap& picture) {
    const auto pixels = linear_upon_white(picture);
    if (pixels.empty()) {
        return {};
    }
    std::vector<Colour> components;
    for (std::size_t j = 0; j < kDown; ++j) {
        for (std::size_t i = 0; i < kAcross; ++i) {
            components.push_back(component(pixels, picture, i, j));
        }
    }
    double largest = 0;
    for (std::size_t k = 1; k < components.size(); ++k) {
        for (const double value : components[k]) {
            largest = std::max(largest, std::abs(value));
        }
    }
    const int step = static_cast<int>(std::clamp(std::floor(largest * 166 - 0.5), 0.0, 82.0));
    const double most = (step + 1) / 166.0;
    std::string text;
    append_base83(text, static_cast<int>(kAcross - 1 + (kDown - 1) * 9), 1);
    append_base83(text, step, 1);
    const Colour& average = components.front();
    append_base83(
        text, to_srgb(average[0]) << 16 | to_srgb(average[1]) << 8 | to_srgb(average[2]), 4
    );
    for (std::size_t k = 1; k < components.size(); ++k) {
        const Colour& c = components[k];
        append_base83(
            text,
            quantised(c[0], most) * 19 * 19 + quantised(c[1], most) * 19 + quantised(c[2], most),
            2
        );
    }
    return text;
}

std::string dominant_color_of(const Bitmap& picture) {
    struct Bin {
        std::uint64_t weight = 0;
        std::array<std::uint64_t, 3> sums{};
    };
    std::vector<Bin> bins(4096);
    for (std::size_t i = 0; i + 3 < picture.rgba.size(); i += 4) {
        const std::uint8_t* rgba = picture.rgba.data() + i;
        const std::uint64_t alpha = picture.has_alpha ? rgba[3] : 255;
        Bin& bin =
            bins[static_cast<std::size_t>(rgba[0] >> 4 << 8 | rgba[1] >> 4 << 4 | rgba[2] >> 4)];
        bin.weight += alpha;
        for (std::size_t c = 0; c < 3; ++c) {
            bin.sums[c] += alpha * rgba[c];
        }
    }
    const auto most = std::ranges::max_element(bins, {}, &Bin::weight);
    std::array<unsigned, 3> colour{255, 255, 255};
    for (std::size_t c = 0; most->weight != 0 && c < 3; ++c) {
        colour[c] = static_cast<unsigned>((most->sums[c] + most->weight / 2) / most->weight);
    }
    std::array<char, 8> text{};
    std::snprintf(text.data(), text.size(), "#%02x%02x%02x", colour[0], colour[1], colour[2]);
    return text.data();
}

}  // namespace comfyd::media
