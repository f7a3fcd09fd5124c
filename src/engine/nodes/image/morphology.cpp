#include <string_view>

#include "engine/nodes/image/image.hpp"
#include "engine/nodes/kernel.hpp"
#include "engine/pixels/extremum.hpp"

namespace comfyd::engine::nodes {
namespace {

// What ComfyUI's library takes for infinitely dark and bright beyond the border.
constexpr float kFar = 1e4F;

COMFYD_KERNEL void subtract(const float* a, const float* b, std::size_t count, float* out) {
    for (std::size_t i = 0; i < count; ++i) {
        out[i] = a[i] - b[i];
    }
}

class Shapes {
public:
    Shapes(const Call& call, std::size_t side) : call_(call), side_(side) {}

    Result<Image> eroded(const Image& image) const {
        return extremum(call_, image, side_, Extremum::smallest, kFar);
    }
    Result<Image> dilated(const Image& image) const {
        return extremum(call_, image, side_, Extremum::largest, -kFar);
    }
    Result<Image> opened(const Image& image) const {
        const auto inner = eroded(image);
        return inner ? dilated(*inner) : inner;
    }
    Result<Image> closed(const Image& image) const {
        const auto outer = dilated(image);
        return outer ? eroded(*outer) : outer;
    }
    Result<Image> difference(const Result<Image>& a, const Result<Image>& b) const {
        if (!a || !b) {
            return fail((a ? b : a).error());
        }
        const float* begin = a->data();
        return map_values(call_, *a, [&](const float* from, std::size_t count, float* into) {
            subtract(from, b->data() + (from - begin), count, into);
        });
    }

private:
    const Call& call_;
    std::size_t side_;
};

Result<Image> changed(const Shapes& shapes, const Image& image, std::string_view operation) {
    if (operation == "erode") {
        return shapes.eroded(image);
    }
    if (operation == "dilate") {
        return shapes.dilated(image);
    }
    if (operation == "open") {
        return shapes.opened(image);
    }
    if (operation == "close") {
        return shapes.closed(image);
    }
    if (operation == "gradient") {
        return shapes.difference(shapes.dilated(image), shapes.eroded(image));
    }
    if (operation == "top_hat") {
        return shapes.difference(image, shapes.opened(image));
    }
    return shapes.difference(shapes.closed(image), image);
}

Result<NodeResult> compute(Call& call) {
    const std::size_t side = call.size("kernel_size");
    if (side == 0) {
        return node_error("RuntimeError", "A kernel has at least one element");
    }
    const Shapes shapes(call, side);
    auto out = changed(shapes, call.image("image"), call.text("operation"));
    if (!out) {
        return fail(std::move(out.error()));
    }
    return NodeResult{.outputs = {std::move(*out)}};
}

}  // namespace

NodeClass morphology() {
    return {
        .name = "Morphology",
        .description = "Grows or shrinks bright areas, or shows what that changes.",
        .execute = &compute,
    };
}

}  // namespace comfyd::engine::nodes
