// What flows along the links of a workflow.
//
// Values are immutable and cheap to copy: pictures share their pixels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/json.hpp"
#include "engine/values/image.hpp"
#include "engine/values/view.hpp"

namespace comfyd::engine {

// Python's None.
struct None {};

// ComfyUI's ExecutionBlocker: a node that gets one does not run and hands it on. No class ever sees
// one among its inputs.
struct Blocker {
    std::optional<std::string> message{};  // told once, at the first node that it stops
};

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
    virtual std::uint64_t bytes() const { return 0; }  // held beside pixels, which count themselves
    virtual bool is_empty() const { return false; }    // a tensor without a single value
};

// What a slot with output_is_list gives, and what every input of a class with is_input_list takes.
struct List;

// std::uint64_t holds only what is too large for std::int64_t. Copies are not inline: fourteen
// kinds of them would be compiled again in every file of the engine.
class Value : public std::variant<
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
                  std::shared_ptr<const List>,
                  ImageView,
                  MaskView,
                  Blocker> {
public:
    using variant::variant;
    Value(const Value& other);
    Value(Value&& other) noexcept;
    Value& operator=(const Value& other);
    Value& operator=(Value&& other) noexcept;
    ~Value();
};

struct List {
    std::vector<Value> items;
};

// Whether a value may stand for an input of ComfyUI's type `type`, which may be a list of types
// ("INT,FLOAT") or "*".
bool matches(const Value& value, std::string_view type);
// An Image or ImageView, a Mask or MaskView; throws std::bad_variant_access for anything else, as
// std::get does.
ImageView to_image_view(const Value& value);
MaskView to_mask_view(const Value& value);
// The name of a value's kind, for error texts.
std::string_view kind_of(const Value& value);

}  // namespace comfyd::engine
