#include <algorithm>
#include <string_view>

#include "engine/nodes/files/save.hpp"
#include "engine/nodes/image/image.hpp"
#include "engine/pixels/pictures.hpp"

namespace comfyd::engine::nodes {
namespace {

// A corner outside is moved to the last pixel; what lies outside is left out.
Result<NodeResult> cropped(
    Call& call, std::int64_t x, std::int64_t y, std::int64_t width, std::int64_t height
) {
    const ImageView image = call.image_view("image");
    const ImageShape& shape = image.shape();
    // Python's slices count negative numbers from the end.
    const auto bound = [](std::int64_t at, std::size_t side) {
        const auto whole = static_cast<std::int64_t>(side);
        return std::clamp<std::int64_t>(at < 0 ? at + whole : at, 0, whole);
    };
    x = std::min(x, static_cast<std::int64_t>(shape.width) - 1);
    y = std::min(y, static_cast<std::int64_t>(shape.height) - 1);
    const std::int64_t left = bound(x, shape.width);
    const std::int64_t top = bound(y, shape.height);
    const std::int64_t right = std::max(left, bound(x + width, shape.width));
    const std::int64_t bottom = std::max(top, bound(y + height, shape.height));
    if (left == right || top == bottom) {
        return node_error("RuntimeError", "The crop region holds no pixel of the picture");
    }
    const Box box{
        static_cast<std::size_t>(left),
        static_cast<std::size_t>(top),
        static_cast<std::size_t>(right - left),
        static_cast<std::size_t>(bottom - top)
    };
    return NodeResult{.outputs = {ImageView(image.cut(box))}};
}

Result<NodeResult> by_numbers(Call& call) {
    return cropped(
        call, call.place("x"), call.place("y"), call.place("width"), call.place("height")
    );
}

// A part that is missing, or no number, counts as `otherwise`.
std::int64_t part(const json::value& region, std::string_view name, std::int64_t otherwise) {
    constexpr double kFar = 1e9;
    const auto* object = region.if_object();
    const auto* value = object != nullptr ? object->if_contains(name) : nullptr;
    if (value == nullptr || !value->is_number()) {
        return otherwise;
    }
    return python_int(std::clamp(value->to_number<double>(), -kFar, kFar));
}

Result<NodeResult> by_region(Call& call) {
    const json::value& region = call.data("crop_region");
    auto result = cropped(
        call,
        part(region, "x", 0),
        part(region, "y", 0),
        part(region, "width", 512),
        part(region, "height", 512)
    );
    if (!result) {
        return result;
    }
    auto shown = preview_ui(call, std::get<ImageView>(result->outputs[0]), false);
    if (!shown) {
        return fail(std::move(shown.error()));
    }
    result->ui = std::move(*shown);
    return result;
}

}  // namespace

NodeClass image_crop() {
    return {
        .name = "ImageCrop",
        .description = "Cuts a rectangle out.",
        .execute = &by_numbers,
        .reads_views = true,
    };
}

NodeClass image_crop_v2() {
    return {
        .name = "ImageCropV2",
        .description = "Cuts out the rectangle that was drawn on the picture.",
        .execute = &by_region,
        .reads_views = true,
    };
}

}  // namespace comfyd::engine::nodes
