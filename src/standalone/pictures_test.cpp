#include "standalone/pictures.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "engine/pictures/png.hpp"

namespace comfyd::standalone {
namespace {

TEST(Pictures, ThatTakeTooLongAreGivenUp) {
    const std::vector<std::uint8_t> pixels(64 * 64 * 3, 100);
    const auto png = engine::encode_png(engine::PngBytes{pixels.data(), 64, 64, 3}, 1, {});
    ASSERT_TRUE(png);
    const auto convert = [&](std::chrono::nanoseconds time_max) {
        return convert_picture(*png, {Channel::rgb, PictureFormat::webp, 80}, time_max);
    };
    EXPECT_TRUE(convert(kPictureTimeMax));
    const auto late = convert(std::chrono::nanoseconds(-1));
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code, Code::invalid_argument);
    EXPECT_NE(late.error().message.find("too long"), std::string::npos);
}

}  // namespace
}  // namespace comfyd::standalone
