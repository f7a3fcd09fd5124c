#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "engine/nodes/image/image.hpp"
#include "engine/pixels/pictures.hpp"

namespace comfyd::engine::nodes {
namespace {

// Corners in pixels, the second one outside.
struct Region {
    std::int64_t left = 0;
    std::int64_t top = 0;
    std::int64_t right = 0;
    std::int64_t bottom = 0;

    bool empty() const { return right <= left || bottom <= top; }
};

std::optional<Region> region_of(const json::value& box) {
    constexpr double kFar = 1e9;
    const auto* object = box.if_object();
    std::array<double, 4> parts{};
    std::size_t i = 0;
    for (const char* name : {"x", "y", "width", "height"}) {
        const auto* value = object != nullptr ? object->if_contains(name) : nullptr;
        if (value == nullptr || !value->is_number()) {
            return std::nullopt;
        }
        parts[i++] = std::clamp(value->to_number<double>(), -kFar, kFar);
    }
    return Region{
        python_int(parts[0]),
        python_int(parts[1]),
        python_int(parts[0] + parts[2]),
        python_int(parts[1] + parts[3])
    };
}

// What all boxes of one picture cover together.
Result<Region> covered(const json::array& boxes) {
    std::optional<Region> all;
    for (const json::value& box : boxes) {
        const auto one = region_of(box);
        if (!one) {
            return node_error("KeyError", "A bounding box has x, y, width and height");
        }
        all = !all ? *one
                   : Region{
                         std::min(all->left, one->left),
                         std::min(all->top, one->top),
                         std::max(all->right, one->right),
                         std::max(all->bottom, one->bottom)
                     };
    }
    return *all;
}

// Where nothing is left, a square from the upper middle, in which a face might be.
Region within(Region region, const ImageShape& shape, std::int64_t padding) {
    const auto width = static_cast<std::int64_t>(shape.width);
    const auto height = static_cast<std::int64_t>(shape.height);
    region = {
        std::max<std::int64_t>(0, region.left - padding),
        std::max<std::int64_t>(0, region.top - padding),
        std::min(width, region.right + padding),
        std::min(height, region.bottom + padding)
    };
    if (!region.empty()) {
        return region;
    }
    const std::int64_t side = python_int(static_cast<double>(std::min(width, height)) * 0.3);
    const std::int64_t left = std::max<std::int64_t>(0, (width - side) / 2);
    const std::int64_t top = python_int(static_cast<double>(height) * 0.1);
    return {left, top, std::min(width, left + side), std::min(height, top + side)};
}

struct Target {
    std::size_t width = 0;
    std::size_t height = 0;
    bool keep_aspect = false;
};

Result<Image> fitted(const Call& call, const Image& picture, const Target& target) {
    const ImageShape& shape = picture.shape();
    double width = static_cast<double>(target.width);
    double height = static_cast<double>(target.height);
    if (target.keep_aspect) {
        const double factor = std::min(
            width / static_cast<double>(shape.width), height / static_cast<double>(shape.height)
        );
        width = static_cast<double>(shape.width) * factor;
        height = static_cast<double>(shape.height) * factor;
    }
    auto scaled =
        scale(call, picture, python_round(width), python_round(height), ResizeMethod::area);
    if (!scaled || !target.keep_aspect) {
        return scaled;
    }
    auto out = call.new_image({1, target.height, target.width, shape.channels});
    if (!out) {
        return fail(std::move(out.error()));
    }
    auto done = fill(call, *out, std::vector<float>(shape.channels, 0.0F));
    if (done) {
        done =
            lay(call,
                *scaled,
                *out,
                (target.width - scaled->shape().width) / 2,
                (target.height - scaled->shape().height) / 2);
    }
    if (!done) {
        return fail(std::move(done.error()));
    }
    return std::move(*out).finish();
}

Result<Image> cropped(
    const Call& call, const Image& picture, const Region& region, const Target& target
) {
    if (region.empty()) {
        auto black = call.new_image({1, target.height, target.width, picture.shape().channels});
        if (!black) {
            return fail(std::move(black.error()));
        }
        auto done = fill(call, *black, std::vector<float>(picture.shape().channels, 0.0F));
        if (!done) {
            return fail(std::move(done.error()));
        }
        return std::move(*black).finish();
    }
    const auto part =
        cut(call,
            picture,
            {static_cast<std::size_t>(region.left),
             static_cast<std::size_t>(region.top),
             static_cast<std::size_t>(region.right - region.left),
             static_cast<std::size_t>(region.bottom - region.top)});
    return part ? fitted(call, *part, target) : part;
}

Result<NodeResult> compute(Call& call) {
    const Image& image = call.image("image");
    const json::value& given = call.data("bboxes");
    json::array frames;
    if (given.is_array()) {
        frames = given.as_array();
    } else {
        frames.emplace_back(json::array(1, given));
    }
    if (frames.empty()) {
        return NodeResult{.outputs = {image}};
    }
    const Target target{
        call.size("output_width"),
        call.size("output_height"),
        call.has("keep_aspect") && call.text("keep_aspect") == "pad"
    };
    std::vector<Image> crops;
    for (std::size_t i = 0; i < image.shape().batch; ++i) {
        const json::value& boxes = frames[std::min(i, frames.size() - 1)];
        if (!boxes.is_array()) {
            return node_error("TypeError", "The bounding boxes of a picture are a list");
        }
        if (boxes.as_array().empty()) {
            continue;
        }
        const auto region = covered(boxes.as_array());
        if (!region) {
            return fail(region.error());
        }
        auto crop = some_pictures(call, image, i, 1);
        if (crop) {
            crop =
                cropped(call, *crop, within(*region, image.shape(), call.place("padding")), target);
        }
        if (!crop) {
            return fail(std::move(crop.error()));
        }
        crops.push_back(std::move(*crop));
    }
    if (crops.empty()) {
        return NodeResult{.outputs = {image}};
    }
    auto out = join(call, crops);
    if (!out) {
        return fail(std::move(out.error()));
    }
    return NodeResult{.outputs = {std::move(*out)}};
}

}  // namespace

NodeClass crop_by_bboxes() {
    return {
        .name = "CropByBBoxes",
        .description = "Cuts out what the boxes of each picture cover, scaled to one size.",
        .execute = &compute,
    };
}

}  // namespace comfyd::engine::nodes
