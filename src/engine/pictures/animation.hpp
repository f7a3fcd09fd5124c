// Animated pictures in 8 bits, one picture after the other: WebP, GIF and animated PNG, told apart
// by their first bytes. Files are not trusted, as in reader.hpp. An Animation belongs to one
// thread.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

#include "engine/pictures/reader.hpp"

namespace comfyd::engine::pictures {

struct Shown {
    Bitmap picture;  // the whole canvas
    int duration_ms = 0;
};

class Animation {
public:
    virtual ~Animation() = default;
    virtual int loops() const = 0;  // how often it is shown; 0: forever
    // Nullopt after the last.
    virtual Outcome<std::optional<Shown>> next() = 0;
};

// `file` must outlive it. More pixels of a picture than `pixels_max` are refused.
Outcome<std::unique_ptr<Animation>> open_animation(std::string_view file, std::size_t pixels_max);

}  // namespace comfyd::engine::pictures
