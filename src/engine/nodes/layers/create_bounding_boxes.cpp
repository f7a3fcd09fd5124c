// CreateBoundingBoxes: boxes that the client's editor has drawn, as data and as a picture.

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "engine/nodes/call.hpp"
#include "engine/nodes/layers/boxes.hpp"
#include "engine/nodes/layers/drawing.hpp"
#include "engine/nodes/layers/layers.hpp"
#include "engine/nodes/text/python_value.hpp"
#include "engine/pictures/resize.hpp"
#include "engine/pixels.hpp"

namespace comfyd::engine::nodes {
namespace {

constexpr double kLongEdge = 1024;
constexpr float kDim = 0.25F;
constexpr std::uint8_t kGray = 32;
constexpr std::size_t kPaletteMax = 5;
constexpr std::size_t kRegionsMax = 10'000;
constexpr std::size_t kBodyBytesMax = 20'000;  // more does not fit into a preview

// A box in fractions of the canvas.
struct Region {
    double x = 0;
    double y = 0;
    double width = 0;
    double height = 0;
    bool is_text = false;
    json::value text = "";
    json::value description = "";
    std::vector<std::string> palette{};
};

std::vector<std::string> palette_of(const json::value* value) {
    std::vector<std::string> colors;
    for (const json::value& color :
         value != nullptr && value->is_array() ? value->as_array() : json::array{}) {
        if (color.is_string() && !color.as_string().empty()) {
            colors.emplace_back(color.as_string());
        }
    }
    return colors;
}

std::vector<Region> regions_of(const json::array& boxes, double width, double height) {
    std::vector<Region> regions;
    for (const json::value& item : boxes) {
        const json::object* box = item.if_object();
        if (box == nullptr || regions.size() == kRegionsMax) {
            continue;
        }
        Region region{
            .x = number_of(*box, "x") / width,
            .y = number_of(*box, "y") / height,
            .width = number_of(*box, "width") / width,
            .height = number_of(*box, "height") / height
        };
        const json::value* value = box->if_contains("metadata");
        if (value != nullptr && value->is_object()) {
            const json::object& metadata = value->as_object();
            const auto member = [&](std::string_view key) {
                const json::value* found = metadata.if_contains(key);
                return found != nullptr ? *found : json::value("");
            };
            region.is_text = member("type") == json::value("text");
            region.text = member("text");
            region.description = member("desc");
            region.palette = palette_of(metadata.if_contains("palette"));
        }
        regions.push_back(std::move(region));
    }
    return regions;
}

// One list with all boxes in pixels; none where there is no box.
json::array to_boxes(const std::vector<Region>& regions, double width, double height) {
    json::array boxes;
    for (const Region& region : regions) {
        const double left = region.width < 0 ? region.x + region.width : region.x;
        const double top = region.height < 0 ? region.y + region.height : region.y;
        boxes.emplace_back(json::object{
            {"x", python_round(left * width)},
            {"y", python_round(top * height)},
            {"width", python_round(std::abs(region.width) * width)},
            {"height", python_round(std::abs(region.height) * height)}
        });
    }
    return boxes.empty() ? json::array{} : json::array{json::value(std::move(boxes))};
}

std::string upper(std::string text) {
    for (char& c : text) {
        c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    }
    return text;
}

json::array to_elements(const std::vector<Region>& regions) {
    const auto grid = [](double value) {
        return std::clamp<std::int64_t>(python_round(value * 1000), 0, 1000);
    };
    json::array elements;
    for (const Region& region : regions) {
        const auto [top, bottom] = std::minmax({grid(region.y), grid(region.y + region.height)});
        const auto [left, right] = std::minmax({grid(region.x), grid(region.x + region.width)});
        json::object element{
            {"type", region.is_text ? "text" : "obj"}, {"bbox", {top, left, bottom, right}}
        };
        if (region.is_text) {
            element["text"] = region.text;
        }
        element["desc"] = region.description;
        json::array colors;
        for (const std::string& color : region.palette) {
            if (colors.size() < kPaletteMax) {
                colors.emplace_back(upper(color));
            }
        }
        if (!colors.empty()) {
            element["color_palette"] = std::move(colors);
        }
        elements.emplace_back(std::move(element));
    }
    return elements;
}

// "rrggbb" with or without "#"; white for anything else.
Color color_of(std::string_view text) {
    text.remove_prefix(std::min(text.find_first_not_of('#'), text.size()));
    const auto color = text.size() == 6 ? parse_color("#" + std::string(text)) : std::nullopt;
    return color.value_or(Color{255, 255, 255, 255});
}

double luminance(const Color& color) {
    return 0.299 * color[0] + 0.587 * color[1] + 0.114 * color[2];
}

// Light enough to be read on a dark picture.
Color readable(const Color& color) {
    const double light = luminance(color);
    if (light >= 130) {
        return color;
    }
    const double share = (130 - light) / (255 - light);
    Color lighter = color;
    for (std::size_t c = 0; c < 3; ++c) {
        lighter[c] = static_cast<std::uint8_t>(python_round(color[c] + (255 - color[c]) * share));
    }
    return lighter;
}

std::vector<std::string> wrap(const Font& font, const std::string& text, double width) {
    std::vector<std::string> lines;
    std::string line;
    std::string word;
    const auto end_word = [&] {
        if (word.empty()) {
            return;
        }
        const std::string candidate = line.empty() ? word : line + " " + word;
        if (!line.empty() && font.length(candidate) > width) {
            lines.push_back(std::exchange(line, word));
        } else {
            line = candidate;
        }
        word.clear();
    };
    for (const char c : text) {
        if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
            end_word();
        } else {
            word += c;
        }
        if (c == '\n') {
            lines.push_back(std::exchange(line, ""));
        }
    }
    end_word();
    lines.push_back(line);
    return lines;
}

std::string body_of(const Region& region) {
    const auto text = [](const json::value& value) {
        return value.is_string() ? std::string(value.as_string()) : std::string();
    };
    const std::string description = text(region.description);
    const std::string quoted = text(region.text);
    if (!region.is_text || quoted.empty()) {
        return description;
    }
    return "\"" + quoted + "\"" + (description.empty() ? "" : " \xe2\x80\x94 " + description);
}

struct Fonts {
    Font body;
    Font tag;
    int size;
};

Corners corners_of(const Region& region, const Rgba8& picture) {
    const auto inside = [](double fraction, std::size_t side) {
        return static_cast<int>(std::clamp<std::int64_t>(
            python_round(fraction * static_cast<double>(side)), 0, static_cast<std::int64_t>(side)
        ));
    };
    const auto [left, right] = std::minmax(
        {inside(region.x, picture.width), inside(region.x + region.width, picture.width)}
    );
    const auto [top, bottom] = std::minmax(
        {inside(region.y, picture.height), inside(region.y + region.height, picture.height)}
    );
    return {left, top, right, bottom};
}

void draw_region(Rgba8& picture, const Fonts& fonts, const Region& region, std::size_t number) {
    const Color color =
        region.palette.empty() ? Color{140, 140, 140, 255} : color_of(region.palette[0]);
    const Corners box = corners_of(region, picture);
    outline_box(picture, box, color, 2);
    const std::size_t swatches = std::min(region.palette.size(), kPaletteMax);
    const double share = static_cast<double>(box.right - box.left) /
                         static_cast<double>(std::max<std::size_t>(1, swatches));
    for (std::size_t i = 0; box.right - box.left > 2 && i < swatches; ++i) {
        const auto edge = [&](std::size_t at) {
            return box.left + static_cast<int>(python_round(static_cast<double>(at) * share));
        };
        const int bottom = box.top + std::max(5, fonts.size / 2);
        fill_box(picture, {edge(i), box.top, edge(i + 1), bottom}, color_of(region.palette[i]));
    }
    const std::string tag = (number < 10 ? "0" : "") + std::to_string(number);
    const auto tag_width = static_cast<int>(fonts.tag.length(tag) + 6);
    fill_box(picture, {box.left, box.top, box.left + tag_width, box.top + fonts.size + 2}, color);
    const std::uint8_t ink = luminance(color) > 140 ? 0 : 255;
    draw_text(picture, fonts.tag, tag, box.left + 3, box.top + 1, {{ink, ink, ink, 255}, 0});
    const std::string body = body_of(region).substr(0, kBodyBytesMax);
    if (body.empty() || box.right - box.left <= 8) {
        return;
    }
    int y = box.top + fonts.size + 5;
    for (const std::string& line : wrap(fonts.body, body, box.right - box.left - 8)) {
        if (y > box.bottom) {
            break;
        }
        draw_text(picture, fonts.body, line, box.left + 4, y, {readable(color), 0});
        y += fonts.size + 2;
    }
}

struct Size {
    std::size_t width;
    std::size_t height;
};
Size preview_size(std::size_t width, std::size_t height) {
    const auto w = static_cast<double>(width);
    const auto h = static_cast<double>(height);
    const double scale = std::min(1.0, kLongEdge / std::max(w, h));
    return {
        static_cast<std::size_t>(std::max<std::int64_t>(1, python_round(w * scale))),
        static_cast<std::size_t>(std::max<std::int64_t>(1, python_round(h * scale)))
    };
}

// The background, darkened, or gray.
Result<Rgba8> make_ground(const Call& call) {
    if (!call.has("background")) {
        const Size size = preview_size(call.size("width"), call.size("height"));
        Rgba8 ground{
            size.width, size.height, std::vector<std::uint8_t>(size.width * size.height * 4, kGray)
        };
        for (std::size_t i = 3; i < ground.bytes.size(); i += 4) {
            ground.bytes[i] = 255;
        }
        return ground;
    }
    const Image& image = call.image("background");
    const ImageShape& shape = image.shape();
    const Size size = preview_size(shape.width, shape.height);
    const auto space = call.charge(shape.height * shape.width * (shape.channels + 4));
    if (!space) {
        return fail(space.error());
    }
    std::vector<std::uint8_t> bytes(shape.height * shape.row_floats());
    to_bytes(image.data(), bytes.size(), bytes.data());
    Rgba8 ground{
        shape.width, shape.height, std::vector<std::uint8_t>(shape.width * shape.height * 4, 255)
    };
    for (std::size_t i = 0; i < shape.width * shape.height; ++i) {
        for (std::size_t c = 0; c < 3; ++c) {
            ground.bytes[i * 4 + c] = bytes[i * shape.channels + std::min(c, shape.channels - 1)];
        }
    }
    if (size.width != shape.width || size.height != shape.height) {
        auto scaled = resized(call, ground, size.width, size.height);
        if (!scaled) {
            return scaled;
        }
        ground = std::move(*scaled);
    }
    for (std::size_t i = 0; i < ground.bytes.size(); ++i) {
        if (i % 4 != 3) {
            ground.bytes[i] = static_cast<std::uint8_t>(kDim * static_cast<float>(ground.bytes[i]));
        }
    }
    return ground;
}

Result<Image> render(const Call& call, const std::vector<Region>& regions) {
    auto ground = make_ground(call);
    if (!ground) {
        return fail(std::move(ground.error()));
    }
    if (!regions.empty()) {
        const int size =
            std::max(10, static_cast<int>(python_round(static_cast<double>(ground->height) / 64)));
        auto body = Font::open(size);
        auto tag = Font::open(std::max(9, size - 2));
        if (!body || !tag) {
            return fail(body ? tag.error() : body.error());
        }
        const Fonts fonts{std::move(*body), std::move(*tag), size};
        for (std::size_t i = 0; i < regions.size(); ++i) {
            if (auto going = call.check_stopped(); !going) {
                return fail(std::move(going.error()));
            }
            draw_region(*ground, fonts, regions[i], i + 1);
        }
    }
    auto image = call.new_image({1, ground->height, ground->width, 3});
    if (!image) {
        return fail(std::move(image.error()));
    }
    for (std::size_t i = 0; i < ground->width * ground->height; ++i) {
        for (std::size_t c = 0; c < 3; ++c) {
            image->data()[i * 3 + c] = static_cast<float>(ground->bytes[i * 4 + c]) / 255.0F;
        }
    }
    return std::move(*image).finish();
}

json::array list_of(const Call& call, std::string_view input) {
    if (!call.has(input)) {
        return {};
    }
    const json::value value = to_json(call.value(input)).value_or(nullptr);
    return value.is_array() ? value.as_array() : json::array{};
}

Result<NodeResult> compute(Call& call) {
    const auto width = static_cast<std::int64_t>(call.size("width"));
    const auto height = static_cast<std::int64_t>(call.size("height"));
    const auto incoming = call.has("bboxes") ? boxes_from(call.value("bboxes"), width, height)
                                             : Result<json::array>(json::array{});
    if (!incoming) {
        return fail(incoming.error());
    }
    // What comes along the link counts until the editor has taken it over.
    const bool changed = !incoming->empty() && *incoming != list_of(call, "last_incoming");
    const auto regions = regions_of(
        changed ? *incoming : list_of(call, "editor_state"),
        static_cast<double>(width),
        static_cast<double>(height)
    );
    auto preview = render(call, regions);
    if (!preview) {
        return fail(std::move(preview.error()));
    }
    json::object ui{{"dims", {width, height}}};
    if (!incoming->empty()) {
        ui["input_bboxes"] = *incoming;
    }
    return NodeResult{
        .outputs =
            {std::move(*preview),
             Data(to_boxes(regions, static_cast<double>(width), static_cast<double>(height))),
             Data(to_elements(regions))},
        .ui = std::move(ui)
    };
}

}  // namespace

NodeClass create_bounding_boxes() {
    return {
        .name = "CreateBoundingBoxes",
        .description = "Boxes drawn in the editor, in pixels, as elements and as a picture.",
        .execute = &compute,
    };
}

}  // namespace comfyd::engine::nodes
