// What a page shows until a picture is there: its BlurHash, and its most frequent colour. Of
// pictures that are small already. Pure; any thread.
#pragma once

#include <string>

#include "engine/pictures/reader.hpp"

namespace comfyd::media {

// The longest side that is looked at; of larger ones nothing more would be seen.
inline constexpr std::size_t kPlaceholderSide = 32;

// 4 x 3 components, transparency upon white: 28 characters.
std::string blurhash_of(const engine::pictures::Bitmap& picture);
// "#rrggbb"; of a picture without visible pixels white.
std::string dominant_color_of(const engine::pictures::Bitmap& picture);

}  // namespace comfyd::media
