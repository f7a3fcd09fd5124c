// What flows along the links of a workflow.
//
// Values are immutable and cheap to copy: pictures share their pixels. A node fills a NewImage or
// NewMask that it got from its Call and turns it into a Value when it is complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/json.hpp"
#include "engine/memory.hpp"

namespace comfyd::engine {

struct ImageShape {
    std::size_t batch = 0;
    std::size_t height = 0;
    std::size_t width = 0;
    std::size_t channels = 0;

    std::size_t row_floats() const { return width * channels; }
    std::size_t rows() const { return batch * height; }
    friend bool operator==(const ImageShape&, const ImageShape&) = default;
};

// ComfyUI's IMAGE: float32 [batch, height, width, channels], nominally 0..1.
class Image {
public:
    Image(ImageShape shape, std::shared_ptr<const FloatBuffer> pixels)
        : shape_(shape), pixels_(std::move(pixels)) {}

    const ImageShape& shape() const { return shape_; }
    const float* data() const { return pixels_->data(); }
    // Rows are counted through the whole batch.
    const float* row(std::size_t index) const { return data() + index * shape_.row_floats(); }
    const float* picture(std::size_t index) const { return row(index * shape_.height); }
    std::uint64_t bytes() const { return pixels_->bytes(); }
    // For a value of another shape or kind over the same pixels.
    const std::shared_ptr<const FloatBuffer>& buffer() const { return pixels_; }

private:
    ImageShape shape_;
    std::shared_ptr<const FloatBuffer> pixels_;  // shared by every copy of the value
};

// ComfyUI's MASK: float32 [batch, height, width]. `shape.channels` is 1.
class Mask {
public:
    Mask(ImageShape shape, std::shared_ptr<const FloatBuffer> pixels)
        : shape_(shape), pixels_(std::move(pixels)) {}

    const ImageShape& shape() const { return shape_; }
    const float* data() const { return pixels_->data(); }
    // Rows are counted through the whole batch.
    const float* row(std::size_t index) const { return data() + index * shape_.row_floats(); }
    std::uint64_t bytes() const { return pixels_->bytes(); }
    // For a value of another shape or kind over the same pixels.
    const std::shared_ptr<const FloatBuffer>& buffer() const { return pixels_; }

private:
    ImageShape shape_;
    std::shared_ptr<const FloatBuffer> pixels_;  // shared by every copy of the value
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

// Python's None.
struct None {};

// Data without pixels: BOUNDING_BOX, CURVE, HISTOGRAM, DICT, ARRAY, …
class Data {
public:
    explicit Data(json::value content)
        : content_(std::make_shared<const json::value>(std::move(content))) {}
    const json::value& content() const { return *content_; }

private:
    std::shared_ptr<const json::value> content_;  // shared by every copy of the value
};

// Whatever else one family of nodes hands on, such as LATENT, AUDIO, VIDEO or LAYERS. Immutable.
class Object {
public:
    virtual ~Object() = default;
    virtual std::string_view type() const = 0;  // ComfyUI's name of it
    virtual std::string text() const { return "<" + std::string(type()) + ">"; }  // Python's str()
};

// What a slot with output_is_list gives, and what every input of a class with is_input_list takes.
struct List;

// std::uint64_t holds only what is too large for std::int64_t.
using Value = std::variant<
    Image,
    Mask,
    std::int64_t,
    double,
    bool,
    std::string,
    None,
    std::uint64_t,
    Data,
    std::shared_ptr<const Object>,
    std::shared_ptr<const List>>;

struct List {
    std::vector<Value> items;
};

// Whether a value may stand for an input of ComfyUI's type `type`, which may be a list of types
// ("INT,FLOAT") or "*".
bool matches(const Value& value, std::string_view type);
// The name of a value's kind, for error texts.
std::string_view kind_of(const Value& value);

}  // namespace comfyd::engine
