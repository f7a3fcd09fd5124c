// TextOverlay: a block of text at the top or bottom of every picture of a batch.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "engine/nodes/call.hpp"
#include "engine/nodes/layers/boxes.hpp"
#include "engine/nodes/layers/drawing.hpp"
#include "engine/nodes/layers/layers.hpp"
#include "engine/nodes/mask/support.hpp"

namespace comfyd::engine::nodes {
namespace {

constexpr std::size_t kTextMax = 100'000;
constexpr std::string_view kSpaces = " \t\n\r\v\f";

void replace_all(std::string& text, std::string_view what, std::string_view with) {
    for (std::size_t at = text.find(what); at != text.npos;
         at = text.find(what, at + with.size())) {
        text.replace(at, what.size(), with);
    }
}

std::vector<std::string_view> split(std::string_view text, std::string_view at_any) {
    std::vector<std::string_view> parts;
    while (true) {
        const std::size_t end = text.find_first_of(at_any);
        parts.push_back(text.substr(0, end));
        if (end == text.npos) {
            return parts;
        }
        text.remove_prefix(end + 1);
    }
}

// The longest beginning of a word that fits, at least one character.
std::size_t fitting(const Font& font, std::string_view word, double width) {
    const auto next = [&](std::size_t at) {
        ++at;
        while (at < word.size() && (static_cast<unsigned char>(word[at]) & 0xC0) == 0x80) {
            ++at;
        }
        return at;
    };
    std::size_t cut = next(0);
    while (cut < word.size() && font.length(word.substr(0, next(cut))) <= width) {
        cut = next(cut);
    }
    return cut;
}

// Leaves off when the run was stopped: a long word on a narrow picture takes very long.
void wrap_line(
    const Call& call,
    const Font& font,
    std::string_view line,
    double width,
    std::vector<std::string>& lines
) {
    const std::size_t before = lines.size();
    std::string current;
    const auto push = [&] {
        if (!current.empty()) {
            lines.push_back(std::exchange(current, ""));
        }
    };
    for (std::string_view word : split(line, kSpaces)) {
        if (word.empty()) {
            continue;
        }
        while (word.size() > 1 && !call.stopped() && font.length(word) > width) {
            const std::size_t cut = fitting(font, word, width);
            if (cut >= word.size()) {
                break;
            }
            push();
            lines.emplace_back(word.substr(0, cut));
            word.remove_prefix(cut);
        }
        const std::string candidate =
            current.empty() ? std::string(word) : current + " " + std::string(word);
        if (!current.empty() && font.length(candidate) > width) {
            push();
            current = word;
        } else {
            current = candidate;
        }
    }
    push();
    if (lines.size() == before) {
        lines.emplace_back();
    }
}

// The text in lines, and where they stand.
struct Block {
    Font font;
    std::vector<std::string> lines;
    int stroke = 0;
    int line_height = 0;
    int top = 0;  // of the letters, when the first line stands at 0
    int bottom = 0;
};

Result<Block> set_block(
    const Call& call, std::string_view text, int size, double width, bool outline
) {
    auto font = Font::open(size);
    if (!font) {
        return fail(std::move(font.error()));
    }
    Block block{std::move(*font), {}};
    block.stroke = outline ? std::max(1, static_cast<int>(python_round(size * 0.04))) : 0;
    for (const std::string_view line : split(text, "\n")) {
        wrap_line(call, block.font, line, width, block.lines);
    }
    const int natural = block.font.extent("A", block.stroke).bottom + block.stroke;
    block.line_height = natural + static_cast<int>(python_round(size * 1.2 - natural));
    for (std::size_t i = 0; i < block.lines.size() && !call.stopped(); ++i) {
        const Font::Extent extent = block.font.extent(block.lines[i], block.stroke);
        const int offset = static_cast<int>(i) * block.line_height;
        block.top = i == 0 ? extent.top : std::min(block.top, offset + extent.top);
        block.bottom = std::max(block.bottom, offset + extent.bottom);
    }
    return block;
}

// As large as asked, then smaller until its height fits.
Result<Block> fit_block(
    const Call& call, std::string_view text, int width, int height, int margin
) {
    const double font_size = call.number("font_size");
    // Letters that are higher than the picture never fit.
    const auto wanted = static_cast<int>(python_round(font_size / 100.0 * height));
    int size = std::clamp(wanted, 1, std::max(1, height));
    const int smallest =
        std::min(size, std::max(10, static_cast<int>(python_round(0.02 * height))));
    const int most = std::max(1, height - 2 * margin);
    while (true) {
        auto block =
            set_block(call, text, size, std::max(1, width - 2 * margin), call.flag("outline"));
        if (!block || block->bottom - block->top <= most || size <= smallest) {
            return block;
        }
        if (auto stopped = call.check_stopped(); !stopped) {
            return fail(std::move(stopped.error()));
        }
        size = std::max(smallest, static_cast<int>(size * 0.9));
    }
}

Result<Rgba8> render(const Call& call, std::string_view text, const Color& color) {
    const ImageShape& shape = call.image("images").shape();
    const auto width = static_cast<int>(shape.width);
    const auto height = static_cast<int>(shape.height);
    const auto margin = static_cast<int>(python_round(0.01 * std::min(width, height)));
    const auto block = fit_block(call, text, width, height, margin);
    if (auto going = call.check_stopped(); !going || !block) {
        return fail(going ? block.error() : going.error());
    }
    Rgba8 layer{
        shape.width, shape.height, std::vector<std::uint8_t>(shape.width * shape.height * 4)
    };
    const std::string& align = call.text("align");
    const int y =
        call.text("position") == "bottom" ? height - margin - block->bottom : margin - block->top;
    for (std::size_t i = 0; i < block->lines.size(); ++i) {
        const std::string& line = block->lines[i];
        const double length = block->font.length(line);
        const double x = align == "center"  ? (width - length) / 2
                         : align == "right" ? width - margin - length
                                            : margin;
        const int top = y + static_cast<int>(i) * block->line_height;
        if (block->stroke > 0) {
            draw_text(layer, block->font, line, x, top, {{0, 0, 0, 255}, block->stroke});
        }
        draw_text(layer, block->font, line, x, top, {color, 0});
    }
    return layer;
}

Result<NodeResult> compute(Call& call) {
    const Image& images = call.image("images");
    std::string text = call.text("text");
    if (text.find_first_not_of(kSpaces) == text.npos) {
        return NodeResult{.outputs = {images}};
    }
    if (text.size() > kTextMax) {
        return node_error("ValueError", "The text has more than 100000 bytes");
    }
    replace_all(text, "\\n", "\n");
    replace_all(text, "\\t", "\t");
    const auto color = parse_color(call.text("color"));
    if (!color) {
        return node_error("ValueError", "unknown color specifier: '" + call.text("color") + "'");
    }
    const auto space = call.charge(images.shape().height * images.shape().width * 4);
    if (!space) {
        return fail(space.error());
    }
    const auto layer = render(call, text, *color);
    if (!layer) {
        return fail(layer.error());
    }
    const ImageShape& shape = images.shape();
    return as_output(make_image(call, shape, [&](std::size_t row, float* into) {
        const float* from = images.row(row);
        for (std::size_t x = 0; x < shape.width; ++x) {
            const std::uint8_t* over = layer->at(x, row % shape.height);
            const float alpha = static_cast<float>(over[3]) / 255.0F;
            for (std::size_t c = 0; c < shape.channels; ++c) {
                const float letter = static_cast<float>(over[std::min<std::size_t>(c, 3)]) / 255.0F;
                const std::size_t at = x * shape.channels + c;
                into[at] = c < 3 ? from[at] * (1.0F - alpha) + letter * alpha : from[at];
            }
        }
    }));
}

}  // namespace

NodeClass text_overlay() {
    return {
        .name = "TextOverlay",
        .description = "Writes a text over pictures, with the letters of the system's font.",
        .execute = &compute,
    };
}

}  // namespace comfyd::engine::nodes
