// Pictures and masks in one piece of memory: what nearly every node reads and all of them write.
//
// Values are immutable and cheap to copy: they share their pixels. A node fills a NewImage or
// NewMask that it got from its Call and turns it into a value when it is complete. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "engine/values/memory.hpp"

namespace comfyd::engine {

struct ImageShape {
    std::size_t batch = 0;
    std::size_t height = 0;
    std::size_t width = 0;
    std::size_t channels = 0;

    std::size_t row_floats() const { return width * channels; }
    std::size_t rows() const { return batch * height; }
    std::size_t floats() const { return rows() * row_floats(); }
    friend bool operator==(const ImageShape&, const ImageShape&) = default;
};

// Rows without gaps, one picture after the other.
class Pixels {
public:
    Pixels(ImageShape shape, std::shared_ptr<const FloatBuffer> buffer)
        : shape_(shape), buffer_(std::move(buffer)), first_(buffer_->data()) {}
    // REQUIRES: `first` lies in the buffer, with all floats of the shape behind it.
    Pixels(ImageShape shape, std::shared_ptr<const FloatBuffer> buffer, const float* first)
        : shape_(shape), buffer_(std::move(buffer)), first_(first) {}

    const ImageShape& shape() const { return shape_; }
    const float* data() const { return first_; }
    // Rows are counted through the whole batch.
    const float* row(std::size_t index) const { return data() + index * shape_.row_floats(); }
    const float* picture(std::size_t index) const { return row(index * shape_.height); }
    // For a value of another shape or kind over the same pixels.
    const std::shared_ptr<const FloatBuffer>& buffer() const { return buffer_; }
    // The buffer holds more than this.
    bool is_part() const { return shape_.floats() < buffer_->size(); }

private:
    ImageShape shape_;
    std::shared_ptr<const FloatBuffer> buffer_;  // shared by every value over it
    const float* first_;
};

// ComfyUI's IMAGE: float32 [batch, height, width, channels], nominally 0..1.
class Image : public Pixels {
public:
    using Pixels::Pixels;
    explicit Image(Pixels pixels) : Pixels(std::move(pixels)) {}
};

// ComfyUI's MASK: float32 [batch, height, width]. `shape.channels` is 1.
class Mask : public Pixels {
public:
    using Pixels::Pixels;
    explicit Mask(Pixels pixels) : Pixels(std::move(pixels)) {}
};

// A picture or mask that its node is still writing.
template <class Finished>
class Draft {
public:
    Draft(ImageShape shape, std::shared_ptr<FloatBuffer> pixels)
        : shape_(shape), pixels_(std::move(pixels)) {}

    const ImageShape& shape() const { return shape_; }
    float* data() { return pixels_->data(); }
    float* row(std::size_t index) { return data() + index * shape_.row_floats(); }
    Finished finish() && { return Finished(shape_, std::move(pixels_)); }

private:
    ImageShape shape_;
    std::shared_ptr<FloatBuffer> pixels_;
};
using NewImage = Draft<Image>;
using NewMask = Draft<Mask>;

}  // namespace comfyd::engine
