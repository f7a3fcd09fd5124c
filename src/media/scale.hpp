// Pictures made smaller, by Lanczos in 8 bits as in Pillow; colours are weighed by their alpha.
// Pure; any thread.
#pragma once

#include <cstddef>
#include <functional>

#include "engine/pictures/reader.hpp"
#include "jobs/output_wishes.hpp"

namespace comfyd::media {

using engine::pictures::Bitmap;

struct Size {
    std::size_t width = 0;
    std::size_t height = 0;
    bool operator==(const Size&) const = default;
};

// The largest size of the same shape whose longest side is at most `side_max`; never a larger one.
Size fit(Size size, std::size_t side_max);
// Likewise within all limits that were asked for.
Size fit(Size size, const jobs::OutputWishes& wishes);

// REQUIRES: neither side is 0 or larger than before. Ends early with anything when `stopped`.
Bitmap scale(const Bitmap& from, Size size, const std::function<bool()>& stopped);

}  // namespace comfyd::media
