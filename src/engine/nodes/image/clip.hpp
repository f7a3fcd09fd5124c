// A picture of five dimensions, [1, frames, height, width, channels]: what SeedVR2's model takes.
// To ComfyUI it is an IMAGE like any other, and most nodes fail on it.
#pragma once

#include <string_view>
#include <utility>

#include "engine/values/value.hpp"

namespace comfyd::engine::nodes {

struct Clip : Object {
    explicit Clip(Image image) : frames(std::move(image)) {}
    std::string_view type() const override { return "IMAGE"; }

    Image frames;  // the batch
};

// nullptr: anything else.
inline const Clip* as_clip(const Value& value) {
    const auto* object = std::get_if<std::shared_ptr<const Object>>(&value);
    return object == nullptr ? nullptr : dynamic_cast<const Clip*>(object->get());
}

}  // namespace comfyd::engine::nodes
