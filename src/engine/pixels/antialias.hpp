// PyTorch's bicubic scaling with antialiasing, which torchvision uses by default.
#pragma once

#include <cstddef>

#include "engine/pixels/pictures.hpp"

namespace comfyd::engine {

// `width` and `height` at least 1.
Result<Image> resize_antialiased(
    const Call& call, const Image& image, std::size_t width, std::size_t height
);

}  // namespace comfyd::engine
