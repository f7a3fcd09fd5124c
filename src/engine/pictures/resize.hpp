// ComfyUI's picture scaling ("common_upscale"), bit for bit the arithmetic of PyTorch and Pillow
// behind it. Works on the pool of the call that asks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/nodes/call.hpp"
#include "engine/nodes/node.hpp"

namespace comfyd::engine {

enum class ResizeMethod { nearest_exact, bilinear, area, bicubic, lanczos };
enum class Crop { disabled, center };

// As ComfyUI names them, in its order; the index is the ResizeMethod.
const std::vector<std::string>& resize_method_names();
// NodeFailure for any other name, as in PyTorch.
ResizeMethod resize_method(std::string_view name);

// PyTorch's or Pillow's words for sizes that they do not take.
tl::unexpected<Error> sizes_refused(
    ResizeMethod method, const ImageShape& shape, std::int64_t width, std::int64_t height
);

// Crop::center cuts the middle of the wanted shape out first. Nothing can be made of an empty
// picture, and an empty one only by ResizeMethod::area.
Result<Image> resize(
    const Call& call,
    const Image& image,
    std::size_t width,
    std::size_t height,
    ResizeMethod method,
    Crop crop
);

}  // namespace comfyd::engine
