// The bytes that a double gives out. Valid files as small as their format allows; equal content
// gives equal bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace comfyd::support {

// A picture of one pixel whose colour depends on `text` and `index`; `text` stands in the chunk
// "prompt". Padded to about `bytes_min`.
std::string make_png(std::string_view text, unsigned index, std::size_t bytes_min);
// The same with texts by name in the place of the prompt.
using PictureTexts = std::vector<std::pair<std::string, std::string>>;
std::string make_png(
    std::string_view colour, unsigned index, const PictureTexts& texts, std::size_t bytes_min
);
// A container with its type box and one free box that holds `text`: enough for a sniffer, not for a
// player.
std::string make_mp4(std::string_view text);
// A FLAC header without frames; `text` stands in an application block.
std::string make_flac(std::string_view text);

std::string big_endian(unsigned value);

}  // namespace comfyd::support
