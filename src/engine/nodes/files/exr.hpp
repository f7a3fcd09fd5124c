// OpenEXR files of 32-bit floats without compression, byte for byte as FFmpeg and ComfyUI write
// them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/files.hpp"
#include "engine/values/value.hpp"

namespace comfyd::engine::nodes {

struct Exr {
    const float* pixels = nullptr;  // rows of width * channels, linear light
    std::size_t width = 0;
    std::size_t height = 0;
    std::size_t channels = 3;                                // 1, 3 or 4
    std::vector<std::pair<std::string, std::string>> texts;  // attributes of the header
    bool wide_gamut = false;                                 // Rec. 2020 instead of Rec. 709
};

// False when the sink refuses.
bool write_exr(const Exr& picture, const FileSink& sink);

}  // namespace comfyd::engine::nodes
