#include "standalone/shrink.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace comfyd::standalone {
namespace {

using engine::pictures::Bitmap;

Bitmap plain(std::size_t width, std::size_t height, std::array<std::uint8_t, 4> pixel) {
    Bitmap bitmap;
    bitmap.width = width;
    bitmap.height = height;
    for (std::size_t i = 0; i < width * height; ++i) {
        bitmap.rgba.insert(bitmap.rgba.end(), pixel.begin(), pixel.end());
    }
    return bitmap;
}

TEST(Shrink, KeepsTheShapeAndTheColour) {
    for (const auto& [width, height] : std::vector<std::pair<std::size_t, std::size_t>>{
             {1024, 512}, {513, 1}, {1, 700}, {2000, 1999}, {512, 512}, {3, 2}
         }) {
        Bitmap bitmap = plain(width, height, {10, 200, 30, 255});
        shrink(bitmap, 512);
        const std::size_t longest = std::max(width, height);
        EXPECT_EQ(std::max(bitmap.width, bitmap.height), std::min<std::size_t>(longest, 512));
        EXPECT_GE(std::min(bitmap.width, bitmap.height), 1U);
        EXPECT_EQ(bitmap.rgba, plain(bitmap.width, bitmap.height, {10, 200, 30, 255}).rgba);
    }
}

TEST(Shrink, WhatIsTransparentHasNoColour) {
    Bitmap bitmap = plain(2, 1, {0, 0, 0, 0});
    bitmap.rgba = {200, 100, 50, 255, 0, 0, 0, 0};
    shrink(bitmap, 1);
    EXPECT_EQ(bitmap.rgba, (std::vector<std::uint8_t>{200, 100, 50, 128}));
}

}  // namespace
}  // namespace comfyd::standalone
