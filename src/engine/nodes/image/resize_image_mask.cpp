#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "engine/nodes/image/image.hpp"
#include "engine/pixels/pictures.hpp"

namespace comfyd::engine::nodes {
namespace {

struct Size {
    double width = 0;
    double height = 0;
};

// What the wanted size is, and which part of a picture of that size is kept.
struct Plan {
    Size size;
    Crop crop = Crop::disabled;
    Size kept{};  // none: all
};

Image picture_of(const Value& value) {
    const auto* mask = std::get_if<Mask>(&value);
    return mask != nullptr ? as_image(*mask) : std::get<Image>(value);
}

// A side of 0 follows the other one.
Size with_both_sides(Size wanted, Size old) {
    if (wanted.width == 0) {
        wanted.width = std::max(1.0, std::nearbyint(old.width * wanted.height / old.height));
    } else if (wanted.height == 0) {
        wanted.height = std::max(1.0, std::nearbyint(old.height * wanted.width / old.width));
    }
    return wanted;
}

Size by_one_side(Size old, double side, bool longer) {
    if (old.width == old.height) {
        return {side, side};
    }
    const bool width_leads = (old.width > old.height) == longer;
    return width_leads ? Size{side, std::nearbyint(old.height / old.width * side)}
                       : Size{std::nearbyint(old.width / old.height * side), side};
}

// The largest multiples that fit are covered, and what hangs over is cut off.
Plan to_multiple(Size old, double multiple) {
    const Size target{
        std::floor(old.width / multiple) * multiple, std::floor(old.height / multiple) * multiple
    };
    if (multiple <= 1 || target.width == 0 || target.height == 0) {
        return {.size = old, .crop = Crop::disabled, .kept = old};
    }
    const double by_width = target.width / old.width;
    const double by_height = target.height / old.height;
    const Size scaled =
        by_width >= by_height
            ? Size{target.width, std::max(std::ceil(old.height * by_width), target.height)}
            : Size{std::max(std::ceil(old.width * by_height), target.width), target.height};
    return {.size = scaled, .crop = Crop::disabled, .kept = target};
}

Plan plan(const Call& call, Size old) {
    const std::string_view type = call.text("resize_type");
    const auto whole = [&](std::string_view name) {
        return static_cast<double>(call.integer(name));
    };
    const auto crop = [&] {
        return call.text("resize_type.crop") == "center" ? Crop::center : Crop::disabled;
    };
    if (type == "scale dimensions") {
        return {{whole("resize_type.width"), whole("resize_type.height")}, crop()};
    }
    if (type == "scale by multiplier") {
        const double factor = call.number("resize_type.multiplier");
        return {{std::nearbyint(old.width * factor), std::nearbyint(old.height * factor)}};
    }
    if (type == "scale longer dimension") {
        return {by_one_side(old, whole("resize_type.longer_size"), true)};
    }
    if (type == "scale shorter dimension") {
        return {by_one_side(old, whole("resize_type.shorter_size"), false)};
    }
    if (type == "scale width") {
        return {{whole("resize_type.width"), 0}};
    }
    if (type == "scale height") {
        return {{0, whole("resize_type.height")}};
    }
    if (type == "scale total pixels") {
        const double total = std::trunc(call.number("resize_type.megapixels") * 1024 * 1024);
        const double factor = std::sqrt(total / (old.width * old.height));
        return {{std::nearbyint(old.width * factor), std::nearbyint(old.height * factor)}};
    }
    if (type == "match size") {
        const ImageShape shape = picture_of(call.value("resize_type.match")).shape();
        return {{static_cast<double>(shape.width), static_cast<double>(shape.height)}, crop()};
    }
    return to_multiple(old, whole("resize_type.multiple"));
}

bool one_side_may_follow(std::string_view type) {
    return type == "scale dimensions" || type == "scale width" || type == "scale height";
}

Result<Image> resized(const Call& call, const Image& image) {
    const ImageShape& shape = image.shape();
    const Size old{static_cast<double>(shape.width), static_cast<double>(shape.height)};
    Plan wanted = plan(call, old);
    if (one_side_may_follow(call.text("resize_type"))) {
        if (wanted.size.width == 0 && wanted.size.height == 0) {
            return image;
        }
        wanted.size = with_both_sides(wanted.size, old);
    }
    if (wanted.kept.width == old.width && wanted.kept.height == old.height) {
        return image;
    }
    auto scaled = scale(
        call,
        image,
        python_int(wanted.size.width),
        python_int(wanted.size.height),
        resize_method(call.text("scale_method")),
        wanted.crop
    );
    if (!scaled || wanted.kept.width == 0) {
        return scaled;
    }
    const auto width = static_cast<std::size_t>(wanted.kept.width);
    const auto height = static_cast<std::size_t>(wanted.kept.height);
    const ImageShape& whole = scaled->shape();
    return cut(
        call, *scaled, {(whole.width - width) / 2, (whole.height - height) / 2, width, height}
    );
}

Result<NodeResult> compute(Call& call) {
    const Value& input = call.value("input");
    auto image = resized(call, picture_of(input));
    if (!image) {
        return fail(std::move(image.error()));
    }
    if (std::holds_alternative<Mask>(input)) {
        return NodeResult{.outputs = {as_mask(*image)}};
    }
    return NodeResult{.outputs = {std::move(*image)}};
}

}  // namespace

NodeClass resize_image_mask() {
    return {
        .name = "ResizeImageMaskNode",
        .description = "Scales a picture or a mask to a size that is given in one of many ways.",
        .execute = &compute,
    };
}

}  // namespace comfyd::engine::nodes
