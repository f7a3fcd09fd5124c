// What is written into pictures beside their pixels: ComfyUI's workflow above all. Files are taken
// apart, not decoded. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "media/turn.hpp"

namespace comfyd::media {

// The same picture, pixel by pixel, without texts, EXIF, XMP and comments; colour profiles stay,
// and so does how a JPEG is to be turned. Nullopt: it is no PNG, JPEG or WebP, or is damaged.
std::optional<std::string> strip_metadata(std::string_view file);

// What a TIFF, as which EXIF is written too, says under a tag of its first folder.
std::optional<std::uint32_t> tiff_number(std::string_view tiff, std::uint32_t tag);

// How a JPEG asks to be turned.
Orientation jpeg_orientation(std::string_view file);

// What ComfyUI writes into an animated PNG, in chunks of its own: keywords and texts.
std::vector<std::pair<std::string, std::string>> animated_png_texts(std::string_view file);

// The EXIF chunk of a WebP; empty: it has none.
std::string_view webp_exif(std::string_view file);

}  // namespace comfyd::media
