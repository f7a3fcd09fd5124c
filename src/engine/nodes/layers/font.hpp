// Letters from the first usable font of the system, drawn with FreeType.
//
// ComfyUI draws with a font that comes inside Pillow; here it is DejaVu Sans or what else is
// installed, so letters have other shapes and widths. A Font belongs to one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "base/error.hpp"

namespace comfyd::engine::nodes {

class Font {
public:
    // A node error when the system has no font.
    static Result<Font> open(int pixels);
    ~Font();
    Font(Font&&) noexcept;
    Font& operator=(Font&&) noexcept;

    // How far a line goes.
    double length(std::string_view text) const;
    // Of a line whose letters stand below y = 0.
    struct Extent {
        int top = 0;
        int bottom = 0;
    };
    Extent extent(std::string_view text, int stroke) const;

    // Calls `paint` with the coverage of each pixel that letters touch. `stroke`: also this far
    // around them.
    using Paint = std::function<void(int x, int y, std::uint8_t coverage)>;
    void draw(std::string_view text, double x, double y, int stroke, const Paint& paint) const;

private:
    struct Impl;
    explicit Font(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace comfyd::engine::nodes
