// Animated PNG from still ones. Holds no state. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/pictures/reader.hpp"

namespace comfyd::engine::pictures {

// A chunk of four letters and its content, after the pictures.
using PngChunk = std::pair<std::string, std::string>;

// `frame` gives each picture as a whole PNG, all of one shape; they repeat forever. One picture
// alone stays a still PNG.
Outcome<std::string> assemble_apng(
    std::size_t count,
    const std::function<Outcome<std::string>(std::size_t index)>& frame,
    int duration_ms,
    const std::vector<PngChunk>& chunks
);

}  // namespace comfyd::engine::pictures
