#include <algorithm>

#include "engine/nodes/image/image.hpp"
#include "engine/pixels/bytes.hpp"
#include "engine/pixels/random.hpp"

namespace comfyd::engine::nodes {
namespace {

// Where the crop lies along one side. Limits are not checked where a length is linked, so it may
// be less than 1, and the end may then lie before the start.
struct Span {
    std::int64_t first = 0;
    std::int64_t last = 0;
};

// `place(room)` says how much of the surplus lies before the crop.
template <class Place>
Span span_of(std::size_t side, std::int64_t length, Place place) {
    const auto whole = static_cast<std::int64_t>(side);
    if (length < 0) {
        return {0, -1};
    }
    const std::int64_t part = std::min(whole, length);
    const std::int64_t first = place(whole - part);
    return {first, first + part};
}

// As Pillow says it.
tl::unexpected<Error> reversed(const char* end, const char* start) {
    return node_error(
        "ValueError", "Coordinate '" + std::string(end) + "' is less than '" + start + "'"
    );
}

// Every picture of a batch is cut at the same place, which is found first along x, then along y.
template <class Place>
Result<NodeResult> cropped(Call& call, Place place) {
    const Image& image = call.image("images");
    const ImageShape& shape = image.shape();
    if (auto fit = expect_pillow(image); !fit) {
        return fail(std::move(fit.error()));
    }
    const Span x = span_of(shape.width, call.place("width"), place);
    const Span y = span_of(shape.height, call.place("height"), place);
    if (x.last < x.first) {
        return reversed("right", "left");
    }
    if (y.last < y.first) {
        return reversed("lower", "upper");
    }
    const auto size = [](std::int64_t value) { return static_cast<std::size_t>(value); };
    auto part = cut(
        call, image, {size(x.first), size(y.first), size(x.last - x.first), size(y.last - y.first)}
    );
    if (part) {
        part = rounded_to_bytes(call, *part);
    }
    if (!part) {
        return fail(std::move(part.error()));
    }
    return NodeResult{.outputs = {std::move(*part)}};
}

Result<NodeResult> from_center(Call& call) {
    return cropped(call, [](std::int64_t room) { return room / 2; });
}

Result<NodeResult> at_random(Call& call) {
    NumpyRandom random(numpy_seed(call.value("seed")));
    return cropped(call, [&](std::int64_t room) {
        return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(room) + 1));
    });
}

}  // namespace

NodeClass center_crop_images() {
    return {
        .name = "CenterCropImages",
        .description = "Cuts the middle out.",
        .execute = &from_center,
    };
}

NodeClass random_crop_images() {
    return {
        .name = "RandomCropImages",
        .description = "Cuts a rectangle out at a place that the seed decides.",
        .execute = &at_random,
    };
}

}  // namespace comfyd::engine::nodes
