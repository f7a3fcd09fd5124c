// Pictures in other forms, for /view and /upload/mask. Any thread; computes for long: for the pool.
// Files are not trusted: Code::invalid_argument for what cannot be read or is too large.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace comfyd::standalone {

enum class Channel { rgba, rgb, alpha };
enum class PictureFormat { webp, jpeg, png };

// A picture that takes longer was made to take long.
inline constexpr std::chrono::seconds kPictureTimeMax{10};

// `alpha`: black with the picture's alpha. `quality` 1 to 100, not of PNG.
Result<std::string> convert_picture(
    std::string_view file,
    Channel channel,
    PictureFormat format,
    int quality,
    std::chrono::nanoseconds time_max = kPictureTimeMax
);

// The picture as PNG with the alpha of `mask`, which is stretched where the sizes differ; its texts
// are kept.
Result<std::string> replace_alpha(std::string_view picture, std::string_view mask);

}  // namespace comfyd::standalone
