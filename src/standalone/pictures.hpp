// Pictures in other forms, for /view and /upload/mask. Any thread; computes for long: for the pool.
// Files are not trusted: Code::invalid_argument for what cannot be read or is too large.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "comfy/server/files.hpp"

namespace comfyd::standalone {

using comfy::server::Channel;
using comfy::server::PictureForm;
using comfy::server::PictureFormat;

// A picture that takes longer was made to take long.
inline constexpr std::chrono::seconds kPictureTimeMax{10};

// Channel::alpha: black with the picture's alpha.
Result<std::string> convert_picture(
    std::string_view file,
    const PictureForm& form,
    std::chrono::nanoseconds time_max = kPictureTimeMax
);

// The picture as PNG with the alpha of `mask`, which is stretched where the sizes differ; its texts
// are kept.
Result<std::string> replace_alpha(std::string_view picture, std::string_view mask);

}  // namespace comfyd::standalone
