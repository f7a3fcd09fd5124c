// ComfyUI's picture scaling ("common_upscale"), bit for bit the arithmetic of PyTorch and Pillow
// behind it. Works on the pool of the call that asks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/call.hpp"
#include "engine/node.hpp"

namespace comfyd::engine {

enum class ResizeMethod { nearest_exact, bilinear, area, bicubic, lanczos };
enum class Crop { disabled, center };

// As ComfyUI names them, in its order; the index is the ResizeMethod.
const std::vector<std::string>& resize_method_names();
// NodeFailure for any other name, as in PyTorch.
ResizeMethod resize_method(std::string_view name);

// Sizes of 0 fail as in ComfyUI. Crop::center cuts the middle of the wanted shape out first.
Result<Image> resize(
    const Call& call,
    const Image& image,
    std::size_t width,
    std::size_t height,
    ResizeMethod method,
    Crop crop
);

// Why a picture cannot have that size.
tl::unexpected<Error> no_size(
    const ImageShape& shape, std::int64_t width, std::int64_t height, ResizeMethod method
);

}  // namespace comfyd::engine
