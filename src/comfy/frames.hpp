// The numbers in ComfyUI's binary frames: a big-endian u32 says the kind of frame, another one the
// picture's format.
#pragma once

#include <cstdint>

namespace comfyd::comfy {

inline constexpr std::uint32_t kFramePreview = 1;
inline constexpr std::uint32_t kFrameText = 3;
inline constexpr std::uint32_t kFramePreviewWithMetadata = 4;
inline constexpr std::uint32_t kFormatJpeg = 1;
inline constexpr std::uint32_t kFormatPng = 2;

}  // namespace comfyd::comfy
