#include "engine/pixels/palette.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace comfyd::engine {
namespace {

// Colours are told apart more coarsely until there are no more than this many.
constexpr std::size_t kColorsMax = 65536;

// A colour, in steps that are the same for all, with what its pixels have together.
struct Counted {
    Rgb color{};
    std::uint32_t count = 0;
    std::array<std::uint64_t, 3> sums{};
};

struct Keyed {
    std::uint32_t key = 0;  // in coarse steps
    std::uint32_t color = 0;
    std::uint32_t count = 0;
};

constexpr Rgb unpacked(std::uint32_t color) {
    return {
        static_cast<std::uint8_t>(color >> 16),
        static_cast<std::uint8_t>(color >> 8),
        static_cast<std::uint8_t>(color)
    };
}

std::vector<std::uint32_t> sorted_colors(std::span<const Rgb> pixels) {
    std::vector<std::uint32_t> from(pixels.size());
    std::ranges::transform(pixels, from.begin(), [](const Rgb& p) {
        return std::uint32_t{p[0]} << 16 | std::uint32_t{p[1]} << 8 | std::uint32_t{p[2]};
    });
    std::vector<std::uint32_t> into(pixels.size());
    for (unsigned shift = 0; shift < 24; shift += 8) {
        std::array<std::size_t, 257> starts{};
        for (const std::uint32_t color : from) {
            ++starts[(color >> shift & 0xFF) + 1];
        }
        for (std::size_t i = 1; i < starts.size(); ++i) {
            starts[i] += starts[i - 1];
        }
        for (const std::uint32_t color : from) {
            into[starts[color >> shift & 0xFF]++] = color;
        }
        std::swap(from, into);
    }
    return from;
}

std::vector<Keyed> distinct_colors(std::span<const Rgb> pixels) {
    std::vector<Keyed> out;
    for (const std::uint32_t color : sorted_colors(pixels)) {
        if (out.empty() || out.back().color != color) {
            out.push_back({color, color, 0});
        }
        ++out.back().count;
    }
    return out;
}

std::size_t count_keys(std::span<const Keyed> sorted) {
    std::size_t count = sorted.empty() ? 0 : 1;
    for (std::size_t i = 1; i < sorted.size(); ++i) {
        count += sorted[i].key != sorted[i - 1].key ? 1 : 0;
    }
    return count;
}

std::vector<Counted> count_colors(std::span<const Rgb> pixels) {
    std::vector<Keyed> colors = distinct_colors(pixels);
    while (count_keys(colors) > kColorsMax) {
        for (Keyed& keyed : colors) {
            keyed.key = keyed.key >> 1 & 0x7F7F7FU;
        }
        std::ranges::sort(colors, {}, &Keyed::key);
    }
    std::vector<Counted> out;
    for (std::size_t i = 0; i < colors.size(); ++i) {
        if (i == 0 || colors[i].key != colors[i - 1].key) {
            out.push_back({unpacked(colors[i].key)});
        }
        const Rgb full = unpacked(colors[i].color);
        out.back().count += colors[i].count;
        for (std::size_t c = 0; c < 3; ++c) {
            out.back().sums[c] += std::uint64_t{full[c]} * colors[i].count;
        }
    }
    return out;
}

// Part of the list of colours. Leaves are the palette, in the order of a walk from left to right.
struct Node {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::uint32_t pixels = 0;
    int left = -1;
    int right = -1;
};

struct Range {
    int low = 255;
    int high = 0;
};

std::array<Range, 3> ranges(std::span<const Counted> colors) {
    std::array<Range, 3> out;
    for (const Counted& counted : colors) {
        for (std::size_t c = 0; c < 3; ++c) {
            out[c].low = std::min<int>(out[c].low, counted.color[c]);
            out[c].high = std::max<int>(out[c].high, counted.color[c]);
        }
    }
    return out;
}

std::size_t axis_of(const std::array<Range, 3>& sides) {
    constexpr std::array<int, 3> kWeight = {77, 150, 29};
    std::size_t axis = 0;
    int best = -1;
    for (std::size_t c = 0; c < 3; ++c) {
        const int length = (sides[c].high - sides[c].low) * kWeight[c];
        if (length > best) {
            best = length;
            axis = c;
        }
    }
    return axis;
}

// Colours from the bright end go left until they hold more than half of the pixels; a level is
// never torn apart, and the right side is never empty.
struct Split {
    std::size_t first_right = 0;
    std::uint32_t left_pixels = 0;
};

Split split(std::span<Counted> colors, std::size_t axis, std::uint32_t pixels, Range range) {
    std::array<std::uint32_t, 256> per_level{};
    for (const Counted& counted : colors) {
        per_level[counted.color[axis]] += counted.count;
    }
    Split out;
    int level = range.high;
    while (true) {
        out.left_pixels += per_level[static_cast<std::size_t>(level)];
        if (out.left_pixels * 2 > pixels || level == range.low) {
            break;
        }
        --level;
    }
    if (level == range.low) {
        out.left_pixels -= per_level[static_cast<std::size_t>(level)];
        ++level;
    }
    const auto right = std::ranges::partition(colors, [&](const Counted& counted) {
        return counted.color[axis] >= level;
    });
    out.first_right = static_cast<std::size_t>(right.begin() - colors.begin());
    return out;
}

// Pillow's heap, whose order among boxes of equal weight decides the palette.
class BoxHeap {
public:
    explicit BoxHeap(const std::vector<Node>& nodes) : nodes_(nodes), heap_(1) {}

    void add(int node) {
        heap_.push_back(node);
        std::size_t k = heap_.size() - 1;
        while (k != 1 && weight(node) > weight(heap_[k / 2])) {
            heap_[k] = heap_[k / 2];
            k /= 2;
        }
        heap_[k] = node;
    }
    // -1 when empty.
    int remove() {
        if (heap_.size() == 1) {
            return -1;
        }
        const int top = heap_[1];
        const int last = heap_.back();
        heap_.pop_back();
        const std::size_t count = heap_.size() - 1;
        std::size_t k = 1;
        while (k * 2 <= count) {
            std::size_t child = k * 2;
            if (child < count && weight(heap_[child]) < weight(heap_[child + 1])) {
                ++child;
            }
            if (weight(last) > weight(heap_[child])) {
                break;
            }
            heap_[k] = heap_[child];
            k = child;
        }
        if (count > 0) {
            heap_[k] = last;
        }
        return top;
    }

private:
    std::int32_t weight(int node) const {
        return static_cast<std::int32_t>(nodes_[static_cast<std::size_t>(node)].pixels);
    }

    const std::vector<Node>& nodes_;
    std::vector<int> heap_;  // from 1
};

std::vector<Node> cut_boxes(std::vector<Counted>& list, std::uint32_t pixels, std::size_t colors) {
    std::vector<Node> nodes{{0, list.size(), pixels, -1, -1}};
    nodes.reserve(2 * colors);  // the heap keeps a reference
    BoxHeap heap(nodes);
    heap.add(0);
    while (--colors != 0) {
        int index = -1;
        std::array<Range, 3> sides;
        bool single = true;
        while (single) {
            index = heap.remove();
            if (index < 0) {
                return nodes;
            }
            const Node& box = nodes[static_cast<std::size_t>(index)];
            sides = ranges(std::span(list).subspan(box.begin, box.end - box.begin));
            single = std::ranges::all_of(sides, [](Range r) { return r.low == r.high; });
        }
        const Node box = nodes[static_cast<std::size_t>(index)];
        const std::size_t axis = axis_of(sides);
        const Split at = split(
            std::span(list).subspan(box.begin, box.end - box.begin), axis, box.pixels, sides[axis]
        );
        const std::size_t middle = box.begin + at.first_right;
        nodes[static_cast<std::size_t>(index)].left = static_cast<int>(nodes.size());
        nodes[static_cast<std::size_t>(index)].right = static_cast<int>(nodes.size()) + 1;
        nodes.push_back({box.begin, middle, at.left_pixels, -1, -1});
        nodes.push_back({middle, box.end, box.pixels - at.left_pixels, -1, -1});
        heap.add(static_cast<int>(nodes.size()) - 2);
        heap.add(static_cast<int>(nodes.size()) - 1);
    }
    return nodes;
}

void collect_leaves(const std::vector<Node>& nodes, int index, std::vector<Node>& leaves) {
    const Node& node = nodes[static_cast<std::size_t>(index)];
    if (node.left < 0) {
        leaves.push_back(node);
        return;
    }
    collect_leaves(nodes, node.left, leaves);
    collect_leaves(nodes, node.right, leaves);
}

}  // namespace

std::vector<Rgb> median_cut(std::span<const Rgb> pixels, std::size_t colors) {
    std::vector<Counted> list = count_colors(pixels);
    const auto nodes = cut_boxes(list, static_cast<std::uint32_t>(pixels.size()), colors);
    std::vector<Node> leaves;
    collect_leaves(nodes, 0, leaves);
    std::vector<Rgb> palette;
    for (const Node& leaf : leaves) {
        Counted all;
        for (std::size_t i = leaf.begin; i < leaf.end; ++i) {
            all.count += list[i].count;
            for (std::size_t c = 0; c < 3; ++c) {
                all.sums[c] += list[i].sums[c];
            }
        }
        Rgb mean{};
        for (std::size_t c = 0; c < 3; ++c) {
            mean[c] = static_cast<std::uint8_t>(
                0.5 + static_cast<double>(all.sums[c]) / static_cast<double>(all.count)
            );
        }
        palette.push_back(mean);
    }
    return palette;
}

PaletteMap::PaletteMap(std::span<const Rgb> palette)
    : palette_(palette.begin(), palette.end()), slots_(64 * 64 * 64, -1) {}

void PaletteMap::fill_box(const Rgb& color) {
    constexpr int kBox = 32;
    constexpr int kCell = 4;
    Rgb corner{};
    std::vector<unsigned> least(palette_.size());
    unsigned limit = std::numeric_limits<unsigned>::max();
    for (std::size_t i = 0; i < palette_.size(); ++i) {
        unsigned most = 0;
        for (std::size_t c = 0; c < 3; ++c) {
            corner[c] = color[c] & 0xE0;
            const int low = corner[c];
            const int high = low + kBox - 1;
            const int value = palette_[i][c];
            const int outside = value < low ? low - value : value > high ? value - high : 0;
            const int far = value <= (low + high) / 2 ? high - value : value - low;
            least[i] += static_cast<unsigned>(outside * outside);
            most += static_cast<unsigned>(far * far);
        }
        limit = std::min(limit, most);
    }
    const auto square = [](int a, int b) { return (a - b) * (a - b); };
    for (int r = corner[0]; r < corner[0] + kBox; r += kCell) {
        for (int g = corner[1]; g < corner[1] + kBox; g += kCell) {
            for (int b = corner[2]; b < corner[2] + kBox; b += kCell) {
                int best = std::numeric_limits<int>::max();
                std::int16_t found = 0;
                for (std::size_t i = 0; i < palette_.size(); ++i) {
                    const Rgb& entry = palette_[i];
                    const int distance =
                        square(r, entry[0]) + square(g, entry[1]) + square(b, entry[2]);
                    if (least[i] <= limit && distance < best) {
                        best = distance;
                        found = static_cast<std::int16_t>(i);
                    }
                }
                const Rgb cell = {
                    static_cast<std::uint8_t>(r),
                    static_cast<std::uint8_t>(g),
                    static_cast<std::uint8_t>(b)
                };
                slots_[index(cell)] = found;
            }
        }
    }
}

void diffuse(std::span<Rgb> pixels, std::size_t width, PaletteMap& map) {
    // What each column of the next row owes, in sixteenths; one column to the left of the first.
    std::vector<std::array<int, 3>> errors(width + 1);
    for (std::size_t row = 0; row * width < pixels.size(); ++row) {
        std::array<int, 3> ahead{};   // 7/16 for the next pixel
        std::array<int, 3> below{};   // what the row below has got so far under this pixel
        std::array<int, 3> beside{};  // and under the next one
        for (std::size_t x = 0; x < width; ++x) {
            Rgb& pixel = pixels[row * width + x];
            Rgb wanted{};
            for (std::size_t c = 0; c < 3; ++c) {
                const int value = pixel[c] + (ahead[c] + errors[x + 1][c]) / 16;
                wanted[c] = static_cast<std::uint8_t>(std::clamp(value, 0, 255));
            }
            pixel = map.nearest(wanted);
            for (std::size_t c = 0; c < 3; ++c) {
                const int error = int{wanted[c]} - int{pixel[c]};
                errors[x][c] = error * 3 + below[c];
                below[c] = error * 5 + beside[c];
                beside[c] = error;
                ahead[c] = error * 7;
            }
        }
        // Pillow leaves the blue errors of the last pixel here for all channels.
        errors[width] = {below[2], beside[2], width > 0 ? beside[2] : 0};
    }
}

}  // namespace comfyd::engine
