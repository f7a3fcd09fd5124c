// Animated PNG from still ones. Holds no state. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/pictures/reader.hpp"

namespace comfyd::engine::pictures {

// A chunk of four letters and its content, after the pictures.
using PngChunk = std::pair<std::string, std::string>;

struct ApngFrame {
    std::string png;  // a whole one; all of one shape
    int duration_ms = 0;
};

// `next` gives one picture after the other, and nullopt after the last. `loops`: how often they are
// shown; 0: forever. One picture alone stays a still PNG.
Outcome<std::string> assemble_apng(
    const std::function<Outcome<std::optional<ApngFrame>>()>& next,
    int loops,
    const std::vector<PngChunk>& chunks
);

}  // namespace comfyd::engine::pictures
