// Pictures and animations into files, with what suits each format where nothing was asked for.
// Pure; any thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/pictures/png.hpp"
#include "engine/pictures/reader.hpp"
#include "jobs/output_wishes.hpp"
#include "media/facts.hpp"

namespace comfyd::media {

using engine::pictures::Bitmap;
using engine::pictures::Outcome;

struct Writing {
    jobs::PictureFormat format = jobs::PictureFormat::webp;
    std::optional<int> quality{};
    bool lossless = false;
    bool is_hurried = false;               // somewhat larger files in half the time
    std::vector<engine::PngText> texts{};  // into a PNG
    std::string exif{};                    // into a WebP
};

// What was asked for of this file, in its own format where none was named; with its workflow, where
// that has a place and is not to be left out.
Writing writing_of(std::string_view file, const Facts& facts, const jobs::OutputWishes& wishes);

Outcome<std::string> write_picture(
    Bitmap picture, const Writing& how, const std::function<bool()>& stopped
);

// All pictures of the animation `file`, as large as the wishes let them be.
Outcome<std::string> write_animation(
    std::string_view file,
    const Facts& facts,
    const jobs::OutputWishes& wishes,
    const Writing& how,
    const std::function<bool()>& stopped
);

}  // namespace comfyd::media
