// Pictures cut, joined and laid into one another; no value is computed.
//
// What keeps everything is the input itself: values share their pixels. Works on the pool of the
// call that asks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/nodes/call.hpp"
#include "engine/nodes/node.hpp"
#include "engine/pictures/resize.hpp"
#include "engine/values/value.hpp"

namespace comfyd::engine {

// REQUIRES: `box` lies within the picture.
Result<Image> cut(const Call& call, const Image& image, const Box& box);

// REQUIRES: `first + count` is at most the batch.
Result<Image> some_pictures(
    const Call& call, const Image& image, std::size_t first, std::size_t count
);

// Every picture of every batch on its own, over the same pixels. REQUIRES: Images.
std::vector<Image> single_pictures(const std::vector<Value>& batches);

// Surplus channels are cut off, missing ones are 1.
Result<Image> with_channels(const Call& call, const Image& image, std::size_t channels);

// One batch of all; fails as PyTorch does where sizes differ, or where there is none. The second
// copies nothing, unless the pictures are so small that knowing their places costs as much.
Result<Image> join(const Call& call, std::span<const Image> images);
Result<View> join_views(const Call& call, std::span<const View> views);
// The same pictures so many times over, one batch after the other.
Result<View> repeated(const Call& call, const View& view, std::size_t times);

// Lays each picture of `source` into the picture of the same number, counted from `first`.
// REQUIRES: same channels, and it fits.
Result<> lay(
    const Call& call,
    const Image& source,
    NewImage& into,
    std::size_t x,
    std::size_t y,
    std::size_t first = 0
);

Result<> fill(const Call& call, NewImage& image, std::span<const float> pixel);

// A picture or mask of the same size, computed from `count` floats of a row block at a time.
using RowFunction = std::function<void(const float* from, std::size_t count, float* into)>;
Result<Image> map_values(const Call& call, const Image& image, const RowFunction& function);

// The same pixels.
Image as_image(const Mask& mask);
// REQUIRES: one channel.
Mask as_mask(const Image& image);

// resize() for sizes that were computed: one that is negative fails as it does in ComfyUI.
Result<Image> scale(
    const Call& call,
    const Image& image,
    std::int64_t width,
    std::int64_t height,
    ResizeMethod method,
    Crop crop = Crop::disabled
);

// Python's round(): halves go to the even neighbour. NodeFailure for what is no number, infinite or
// beyond 2^53.
std::int64_t python_round(double value);
// Python's int(), likewise.
std::int64_t python_int(double value);

}  // namespace comfyd::engine
