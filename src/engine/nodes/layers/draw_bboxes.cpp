// DrawBBoxes: frames around what a detector has found, with the names of things that COCO knows.

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "engine/nodes/call.hpp"
#include "engine/nodes/layers/boxes.hpp"
#include "engine/nodes/layers/drawing.hpp"
#include "engine/nodes/layers/layers.hpp"
#include "engine/nodes/text/python_value.hpp"
#include "engine/pixels.hpp"

namespace comfyd::engine::nodes {
namespace {

constexpr int kFrameWidth = 3;
constexpr int kFontSize = 10;
constexpr std::int64_t kEmptySide = 640;
constexpr std::size_t kBoxesMax = 10'000;

// clang-format off
constexpr std::array<std::string_view, 80> kCocoNames = {
    "person", "bicycle", "car", "motorcycle", "airplane", "bus", "train", "truck", "boat",
    "traffic light", "fire hydrant", "stop sign", "parking meter", "bench", "bird", "cat", "dog",
    "horse", "sheep", "cow", "elephant", "bear", "zebra", "giraffe", "backpack", "umbrella",
    "handbag", "tie", "suitcase", "frisbee", "skis", "snowboard", "sports ball", "kite",
    "baseball bat", "baseball glove", "skateboard", "surfboard", "tennis racket", "bottle",
    "wine glass", "cup", "fork", "knife", "spoon", "bowl", "banana", "apple", "sandwich",
    "orange", "broccoli", "carrot", "hot dog", "pizza", "donut", "cake", "chair", "couch",
    "potted plant", "bed", "dining table", "toilet", "tv", "laptop", "mouse", "remote",
    "keyboard", "cell phone", "microwave", "oven", "toaster", "sink", "refrigerator", "book",
    "clock", "vase", "scissors", "teddy bear", "hair drier", "toothbrush",
};
constexpr std::array<Color, 8> kColors = {{
    {255, 0, 0, 255}, {0, 200, 0, 255}, {0, 0, 255, 255}, {255, 165, 0, 255},
    {128, 0, 128, 255}, {0, 255, 255, 255}, {255, 20, 147, 255}, {100, 149, 237, 255},
}};
// clang-format on

using Boxes = std::vector<json::object>;

bool is_box(const json::object* box) {
    return box != nullptr && box->contains("x") && box->contains("y") && box->contains("width") &&
           box->contains("height");
}

// One list for each of `count` pictures, or a single one that serves all of them.
Result<std::vector<Boxes>> boxes_of(const Call& call, std::size_t count) {
    const json::value data = to_json(call.value("bboxes")).value_or(nullptr);
    json::array frames;
    if (data.is_object()) {
        frames.emplace_back(json::array{data});
    } else if (const json::array* items = data.if_array(); items != nullptr && !items->empty()) {
        frames = (*items)[0].is_object() ? json::array{json::value(*items)} : *items;
    }
    std::vector<Boxes> all(std::min(frames.size(), count));
    for (std::size_t i = 0; i < all.size(); ++i) {
        const json::array* boxes = frames[i].if_array();
        for (std::size_t b = 0; boxes != nullptr && b < boxes->size(); ++b) {
            if (!is_box((*boxes)[b].if_object()) || b >= kBoxesMax) {
                return node_error("KeyError", "Every box needs x, y, width and height");
            }
            all[i].push_back((*boxes)[b].get_object());
        }
    }
    return all;
}

const Boxes& boxes_for(const std::vector<Boxes>& all, std::size_t picture) {
    static const Boxes none;
    const std::size_t from = all.size() == 1 ? 0 : picture;
    return from < all.size() ? all[from] : none;
}

double score_of(const json::object& box) {
    return box.contains("score") ? number_of(box, "score") : 1.0;
}

Result<> draw_boxes(const Call& call, Rgba8& picture, const Boxes& boxes) {
    std::optional<Font> font;
    std::vector<std::pair<double, std::size_t>> order;
    for (const json::object& box : boxes) {
        order.emplace_back(score_of(box), order.size());
    }
    std::ranges::sort(order);
    for (const auto& [score, position] : order) {
        if (auto going = call.check_stopped(); !going) {
            return going;
        }
        const json::object& box = boxes[position];
        const double x = number_of(box, "x");
        const double y = number_of(box, "y");
        const Corners corners{
            static_cast<int>(x),
            static_cast<int>(y),
            static_cast<int>(x + number_of(box, "width")),
            static_cast<int>(y + number_of(box, "height"))
        };
        const json::value* label = box.if_contains("label");
        const auto found = label != nullptr && label->is_string()
                               ? std::ranges::find(kCocoNames, std::string_view(label->as_string()))
                               : kCocoNames.end();
        const bool named = found != kCocoNames.end();
        const auto index = static_cast<std::size_t>(named ? found - kCocoNames.begin() : 0);
        const Color& color = kColors[index % kColors.size()];
        outline_box(picture, corners, color, kFrameWidth);
        if (named) {
            if (!font) {
                auto opened = Font::open(kFontSize);
                if (!opened) {
                    return fail(std::move(opened.error()));
                }
                font = std::move(*opened);
            }
            std::array<char, 32> shown{};
            std::snprintf(shown.data(), shown.size(), " %.2f", score);
            draw_text(picture, *font, std::string(*found) + shown.data(), x + 2, y + 2, {color, 0});
        }
    }
    return {};
}

// Black, and as large as the boxes need.
Result<Image> blank_for(const Call& call, const Boxes& boxes) {
    std::int64_t width = boxes.empty() ? kEmptySide : 0;
    std::int64_t height = width;
    for (const json::object& box : boxes) {
        width = std::max(
            width, static_cast<std::int64_t>(number_of(box, "x") + number_of(box, "width"))
        );
        height = std::max(
            height, static_cast<std::int64_t>(number_of(box, "y") + number_of(box, "height"))
        );
    }
    if (width < 1 || height < 1 || width > std::int64_t{kSideMax} ||
        height > std::int64_t{kSideMax}) {
        return node_error("ValueError", "The boxes need a picture of a side from 1 to 16384");
    }
    auto image =
        call.new_image({1, static_cast<std::size_t>(height), static_cast<std::size_t>(width), 3});
    if (!image) {
        return fail(std::move(image.error()));
    }
    std::fill_n(image->data(), image->shape().rows() * image->shape().row_floats(), 0.0F);
    return std::move(*image).finish();
}

Rgba8 to_bitmap(const Image& image, std::size_t index) {
    const ImageShape& shape = image.shape();
    std::vector<std::uint8_t> bytes(shape.height * shape.row_floats());
    to_bytes(image.picture(index), bytes.size(), bytes.data());
    Rgba8 picture{
        shape.width, shape.height, std::vector<std::uint8_t>(shape.width * shape.height * 4, 255)
    };
    for (std::size_t i = 0; i < shape.width * shape.height; ++i) {
        std::copy_n(&bytes[i * shape.channels], shape.channels, &picture.bytes[i * 4]);
    }
    return picture;
}

Result<NodeResult> compute(Call& call) {
    const bool given = call.has("image");
    const auto boxes = boxes_of(call, given ? call.image("image").shape().batch : 1);
    if (!boxes) {
        return fail(boxes.error());
    }
    const Result<Image> image =
        given ? Result<Image>(call.image("image")) : blank_for(call, boxes_for(*boxes, 0));
    if (!image) {
        return fail(image.error());
    }
    const ImageShape& shape = image->shape();
    if (shape.channels != 3 && shape.channels != 4) {
        return node_error("ValueError", "Boxes are drawn on pictures with 3 or 4 channels");
    }
    auto drawn = call.new_image(shape);
    if (!drawn) {
        return fail(std::move(drawn.error()));
    }
    auto done = call.for_each(shape.batch, [&](std::size_t i) -> Result<> {
        const auto space = call.charge(shape.height * shape.width * (shape.channels + 4));
        if (!space) {
            return fail(space.error());
        }
        Rgba8 picture = to_bitmap(*image, i);
        if (auto boxed = draw_boxes(call, picture, boxes_for(*boxes, i)); !boxed) {
            return boxed;
        }
        float* into = drawn->row(i * shape.height);
        for (std::size_t p = 0; p < shape.width * shape.height; ++p) {
            for (std::size_t c = 0; c < shape.channels; ++c) {
                into[p * shape.channels + c] =
                    static_cast<float>(picture.bytes[p * 4 + c]) / 255.0F;
            }
        }
        return {};
    });
    if (!done) {
        return fail(std::move(done.error()));
    }
    return NodeResult{.outputs = {std::move(*drawn).finish()}};
}

}  // namespace

NodeClass draw_bboxes() {
    return {
        .name = "DrawBBoxes",
        .description = "Draws boxes on pictures, or on black where there are none.",
        .execute = &compute,
    };
}

}  // namespace comfyd::engine::nodes
