// AddLayer and LayersFromBoundingBoxes: building a stack of layers.

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "engine/nodes/call.hpp"
#include "engine/nodes/layers/boxes.hpp"
#include "engine/nodes/layers/document.hpp"
#include "engine/nodes/layers/layers.hpp"

namespace comfyd::engine::nodes {
namespace {

// A stack is only read by ComfyUI up to its own limit; this one bounds what a chain can hold.
constexpr std::size_t kItemsMax = 10'000;

const Layers* previous(const Call& call) {
    return call.has("layers") ? &call.object<Layers>("layers") : nullptr;
}

Result<NodeResult> finish(std::vector<Layer> layers, std::optional<Canvas> canvas) {
    if (layers.size() > kItemsMax) {
        return node_error("ValueError", "A stack holds at most 10000 layers");
    }
    std::shared_ptr<const Object> document =
        std::make_shared<const Layers>(std::move(layers), canvas);
    return NodeResult{.outputs = {std::move(document)}};
}

Result<NodeResult> execute_add(Call& call) {
    const Layers* before = previous(call);
    std::vector<Layer> layers = before != nullptr ? before->layers : std::vector<Layer>();
    Layer layer{.image = call.image("image")};
    if (call.has("mask")) {
        layer.mask = call.mask("mask");
    }
    const auto integer = [&](std::string_view name) {
        return call.has(name) ? call.place(name) : 0;
    };
    const auto flag = [&](std::string_view name) { return call.has(name) && call.flag(name); };
    layer.name = call.has("name") ? call.text("name") : "";
    layer.x = integer("x");
    layer.y = integer("y");
    layer.width = integer("width");
    layer.height = integer("height");
    layer.z_index = integer("z_index");
    layer.opacity = call.has("opacity") ? call.number("opacity") : 1.0;
    layer.blend = call.has("blend_mode") ? call.text("blend_mode") : "normal";
    layer.rotation =
        call.has("rotation") ? call.number("rotation") * (std::numbers::pi / 180.0) : 0.0;
    if (!std::isfinite(layer.opacity) || !std::isfinite(layer.rotation)) {
        return node_error("ValueError", "The opacity and the rotation of a layer are numbers");
    }
    layer.flip_h = flag("flip_h");
    layer.flip_v = flag("flip_v");
    layers.push_back(std::move(layer));
    return finish(std::move(layers), before != nullptr ? before->canvas : std::nullopt);
}

struct Rect {
    std::size_t left = 0;
    std::size_t top = 0;
    std::size_t width = 0;
    std::size_t height = 0;
};

// The part of a padded picture that its metadata calls content.
std::optional<Rect> content_rect(const json::object& metadata, const ImageShape& shape) {
    const json::value* value = metadata.if_contains("content_rect");
    const json::array* rect = value != nullptr ? value->if_array() : nullptr;
    if (rect == nullptr || rect->size() != 4) {
        return std::nullopt;
    }
    const auto side = [&](std::size_t i, std::size_t most) {
        return static_cast<std::size_t>(
            std::clamp<std::int64_t>(integer_of(&(*rect)[i], 0), 0, static_cast<std::int64_t>(most))
        );
    };
    Rect cut;
    cut.left = side(0, shape.width);
    cut.top = side(1, shape.height);
    cut.width = side(2, shape.width - cut.left);
    cut.height = side(3, shape.height - cut.top);
    return cut.width > 0 && cut.height > 0 ? std::optional(cut) : std::nullopt;
}

template <class Made, class From>
void copy_part(Made& into, const From& from, std::size_t index, const Rect& cut) {
    const std::size_t channels = from.shape().channels;
    for (std::size_t y = 0; y < cut.height; ++y) {
        const float* row = from.row(index * from.shape().height + cut.top + y);
        std::copy_n(row + cut.left * channels, cut.width * channels, into.row(y));
    }
}

Result<Image> part_of(const Call& call, const Image& image, std::size_t index, const Rect& cut) {
    auto part = call.new_image({1, cut.height, cut.width, image.shape().channels});
    if (!part) {
        return fail(std::move(part.error()));
    }
    copy_part(*part, image, index, cut);
    return std::move(*part).finish();
}

// One mask serves every picture; otherwise each has its own, or none.
Result<std::optional<Mask>> mask_of(
    const Call& call, std::size_t index, const ImageShape& picture, const std::optional<Rect>& cut
) {
    if (!call.has("mask")) {
        return std::optional<Mask>();
    }
    const Mask& mask = call.mask("mask");
    const ImageShape& shape = mask.shape();
    if (shape.batch != 1 && index >= shape.batch) {
        return std::optional<Mask>();
    }
    Rect part{0, 0, shape.width, shape.height};
    if (cut) {
        if (shape.width < picture.width || shape.height < picture.height) {
            return node_error("ValueError", "A mask is cut with its picture and needs its size");
        }
        part = *cut;
    }
    auto own = call.new_mask(1, part.height, part.width);
    if (!own) {
        return fail(std::move(own.error()));
    }
    copy_part(*own, mask, shape.batch == 1 ? 0 : index, part);
    return std::optional<Mask>(std::move(*own).finish());
}

std::string name_of(const json::object& metadata) {
    for (const std::string_view key : {"name", "desc"}) {
        const json::value* name = metadata.if_contains(key);
        if (name != nullptr && name->is_string() && !name->as_string().empty()) {
            return std::string(name->as_string());
        }
    }
    return "";
}

Result<Layer> layer_of(
    const Call& call, std::size_t index, const json::object& box, std::int64_t z_index
) {
    const Image& image = call.image("image");
    const ImageShape& shape = image.shape();
    const json::value* value = box.if_contains("metadata");
    const json::object metadata =
        value != nullptr && value->is_object() ? value->as_object() : json::object{};
    const bool crop = !call.has("crop_to_content") || call.flag("crop_to_content");
    const auto cut = crop ? content_rect(metadata, shape) : std::nullopt;
    auto picture = part_of(call, image, index, cut.value_or(Rect{0, 0, shape.width, shape.height}));
    if (!picture) {
        return fail(std::move(picture.error()));
    }
    auto mask = mask_of(call, index, shape, cut);
    if (!mask) {
        return fail(std::move(mask.error()));
    }
    Layer layer{.image = std::move(*picture)};
    layer.mask = std::move(*mask);
    layer.x = integer_of(box.if_contains("x"), 0);
    layer.y = integer_of(box.if_contains("y"), 0);
    if (cut) {
        layer.x += static_cast<std::int64_t>(cut->left);
        layer.y += static_cast<std::int64_t>(cut->top);
    } else {
        layer.width = std::max<std::int64_t>(0, integer_of(box.if_contains("width"), 0));
        layer.height = std::max<std::int64_t>(0, integer_of(box.if_contains("height"), 0));
    }
    layer.z_index = integer_of(metadata.if_contains("z_index"), z_index);
    layer.name = name_of(metadata);
    return layer;
}

Result<NodeResult> execute_boxes(Call& call) {
    const auto integer = [&](std::string_view name) {
        return call.has(name) ? call.place(name) : 0;
    };
    const std::int64_t width = integer("canvas_width");
    const std::int64_t height = integer("canvas_height");
    const auto boxes = boxes_on_canvas(call.value("bboxes"), width, height);
    if (!boxes) {
        return fail(boxes.error());
    }
    const Layers* before = previous(call);
    std::vector<Layer> layers = before != nullptr ? before->layers : std::vector<Layer>();
    std::int64_t base = -1;
    for (const Layer& layer : layers) {
        base = &layer == layers.data() ? layer.z_index : std::max(base, layer.z_index);
    }
    const std::size_t count = call.image("image").shape().batch;
    for (std::size_t i = 0; i < count; ++i) {
        const json::object box = i < boxes->size() ? (*boxes)[i].as_object() : json::object{};
        auto layer = layer_of(call, i, box, base + 1 + static_cast<std::int64_t>(i));
        if (!layer) {
            return fail(std::move(layer.error()));
        }
        layers.push_back(std::move(*layer));
    }
    std::optional<Canvas> canvas = before != nullptr ? before->canvas : std::nullopt;
    if (width > 0 && height > 0) {
        canvas = Canvas{width, height};
    }
    return finish(std::move(layers), canvas);
}

}  // namespace

NodeClass add_layer() {
    return {
        .name = "AddLayer",
        .description = "Puts a picture with its place, opacity and blend mode onto a stack.",
        .execute = &execute_add,
    };
}

NodeClass layers_from_bounding_boxes() {
    return {
        .name = "LayersFromBoundingBoxes",
        .description = "Makes each picture of a batch a layer, placed by its own box.",
        .execute = &execute_boxes,
    };
}

}  // namespace comfyd::engine::nodes
