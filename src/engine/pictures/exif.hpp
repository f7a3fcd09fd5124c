// The workflow in EXIF, where ComfyUI puts it into a WebP. Pure; any thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace comfyd::engine::pictures {

// A whole EXIF chunk: the first text (the prompt) under "model", each further one from "make"
// downwards, as "name:text".
std::string make_exif(const std::vector<std::pair<std::string, std::string>>& texts);

}  // namespace comfyd::engine::pictures
