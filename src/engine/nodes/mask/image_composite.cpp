// ImageCompositeMasked: one picture laid over another, through a mask.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "engine/nodes/kernel.hpp"
#include "engine/nodes/mask/mask.hpp"
#include "engine/nodes/mask/support.hpp"
#include "engine/pixels/pictures.hpp"

namespace comfyd::engine::nodes {
namespace {

// The source with the destination's channels: a surplus one is cut off, a missing alpha is 1.
Result<ImageView> with_channels(const Call& call, const ImageView& image, std::size_t channels) {
    const ImageShape& shape = image.shape();
    if (shape.channels >= channels) {
        return ImageView(image.channels(channels));
    }
    if (shape.channels + 1 < channels) {
        return size_mismatch(channels, shape.channels + 1, 1);
    }
    const auto whole = call.whole(image);
    if (!whole) {
        return fail(whole.error());
    }
    return comfyd::engine::with_channels(call, *whole, channels).map([](const Image& filled) {
        return ImageView(filled);
    });
}

Result<ImageView> resized(
    const Call& call, const ImageView& image, std::size_t width, std::size_t height
) {
    const auto whole = call.whole(image);
    if (!whole) {
        return fail(whole.error());
    }
    return resize(call, *whole, width, height, ResizeMethod::bilinear, Crop::disabled)
        .map([](const Image& scaled) { return ImageView(scaled); });
}

// Without a mask (nullptr) everything is covered.
COMFYD_KERNEL void lay_over(
    const float* source, const float* mask, std::size_t count, std::size_t channels, float* into
) {
    COMFYD_NO_CONTRACTION
    for (std::size_t i = 0; i < count; ++i) {
        const float cover = mask == nullptr ? 1.0F : mask[i];
        const float rest = 1.0F - cover;
        for (std::size_t c = 0; c < channels; ++c) {
            const std::size_t at = i * channels + c;
            into[at] = cover * source[at] + rest * into[at];
        }
    }
}

struct Place {
    Slice rows;     // of the destination
    Slice columns;  // likewise
};

// Where the source comes to lie. Its visible part must be just as large, or PyTorch refuses.
Result<Place> place_of(
    const ImageShape& onto, const ImageShape& source, std::int64_t x, std::int64_t y
) {
    const auto clamped = [](std::int64_t at, std::size_t from, std::size_t into) {
        return std::max(
            -static_cast<std::int64_t>(from), std::min(at, static_cast<std::int64_t>(into))
        );
    };
    const std::int64_t left = clamped(x, source.width, onto.width);
    const std::int64_t top = clamped(y, source.height, onto.height);
    const auto span = [](std::int64_t start, std::size_t from, std::size_t into) {
        return python_slice(start, start + static_cast<std::int64_t>(from), into);
    };
    const Place place{
        .rows = span(top, source.height, onto.height),
        .columns = span(left, source.width, onto.width),
    };
    const auto visible = [](std::int64_t start, std::size_t from, std::size_t into) {
        const std::int64_t size =
            static_cast<std::int64_t>(into) - start + std::min<std::int64_t>(0, start);
        return python_slice(0, size, from).count;
    };
    const std::size_t width = visible(left, source.width, onto.width);
    const std::size_t height = visible(top, source.height, onto.height);
    if (width != place.columns.count) {
        return size_mismatch(width, place.columns.count, 3);
    }
    if (height != place.rows.count) {
        return size_mismatch(height, place.rows.count, 2);
    }
    return place;
}

Result<NodeResult> compute(Call& call) {
    const ImageView onto = call.image_view("destination");
    const ImageShape& shape = onto.shape();
    auto source = with_channels(call, call.image_view("source"), shape.channels);
    if (source && call.flag("resize_source")) {
        source = resized(call, *source, shape.width, shape.height);
    }
    if (!source) {
        return fail(source.error());
    }
    const ImageShape& from = source->shape();
    std::optional<MaskView> mask;
    if (call.has("mask")) {
        auto scaled = resize_mask(
            call,
            call.mask_view("mask"),
            from.width,
            from.height,
            ResizeMethod::bilinear,
            Crop::disabled
        );
        if (!scaled) {
            return fail(std::move(scaled.error()));
        }
        mask = std::move(*scaled);
    }
    const auto place = place_of(shape, from, call.place("x"), call.place("y"));
    if (!place) {
        return fail(place.error());
    }
    return as_output(make_image(call, shape, [&](std::size_t row, float* into) {
        onto.copy_row(row, into);
        const std::size_t y = row % shape.height;
        const std::size_t picture = row / shape.height;
        if (y < place->rows.first || y - place->rows.first >= place->rows.count) {
            return;
        }
        // Shorter batches begin again.
        const std::size_t line = y - place->rows.first;
        std::vector<float> mask_row;
        std::vector<float> source_row;
        const float* covering =
            mask ? mask->row(picture % mask->shape().batch * from.height + line, mask_row)
                 : nullptr;
        lay_over(
            source->row(picture % from.batch * from.height + line, source_row),
            covering,
            place->columns.count,
            shape.channels,
            into + place->columns.first * shape.channels
        );
    }));
}

}  // namespace

NodeClass image_composite_masked() {
    return {
        .name = "ImageCompositeMasked",
        .description = "Lays one picture over another at a place, where a mask allows it.",
        .execute = &compute,
        .reads_views = true
    };
}

}  // namespace comfyd::engine::nodes
