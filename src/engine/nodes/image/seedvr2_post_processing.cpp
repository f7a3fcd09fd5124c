#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "engine/nodes/image/clip.hpp"
#include "engine/nodes/image/image.hpp"
#include "engine/nodes/kernel.hpp"
#include "engine/pixels/antialias.hpp"
#include "engine/pixels/lab.hpp"
#include "engine/pixels/torch_math.hpp"
#include "engine/pixels/values.hpp"

namespace comfyd::engine::nodes {
namespace {

// That the correction of a picture takes: its planes, those of the reference, and more in CIELAB.
constexpr std::uint64_t kBytesPerPixel = 128;

// One colour channel of one picture, in -1..1.
struct Plane {
    std::size_t width = 0;
    std::size_t height = 0;
    std::vector<float> values;
};

COMFYD_KERNEL void spread_row(const float* from, std::size_t count, float* into) {
    COMFYD_NO_CONTRACTION
    for (std::size_t i = 0; i < count; ++i) {
        into[i] = from[i] * 2.0F - 1.0F;
    }
}

// A 3 x 3 bell whose points are `radius` apart; the border goes on.
COMFYD_KERNEL void soften_row(
    const float* above,
    const float* here,
    const float* below,
    std::size_t width,
    std::size_t radius,
    float* out
) {
    COMFYD_NO_CONTRACTION
    for (std::size_t x = 0; x < width; ++x) {
        const std::size_t left = x < radius ? 0 : x - radius;
        const std::size_t right = std::min(x + radius, width - 1);
        float sum = above[left] * 0.0625F;
        sum += above[x] * 0.125F;
        sum += above[right] * 0.0625F;
        sum += here[left] * 0.125F;
        sum += here[x] * 0.25F;
        sum += here[right] * 0.125F;
        sum += below[left] * 0.0625F;
        sum += below[x] * 0.125F;
        sum += below[right] * 0.0625F;
        out[x] = sum;
    }
}

Plane softened(const Plane& plane, std::size_t radius) {
    radius = std::min(radius, std::max<std::size_t>(1, std::min(plane.width, plane.height) / 8));
    Plane out{plane.width, plane.height, std::vector<float>(plane.values.size())};
    const auto row = [&](std::size_t y) { return plane.values.data() + y * plane.width; };
    for (std::size_t y = 0; y < plane.height; ++y) {
        soften_row(
            row(y < radius ? 0 : y - radius),
            row(y),
            row(std::min(y + radius, plane.height - 1)),
            plane.width,
            radius,
            &out.values[y * plane.width]
        );
    }
    return out;
}

constexpr std::size_t kLevels = 5;

// The fine detail of one plane on the coarse colours of the other.
Plane with_coarse(Plane content, Plane style) {
    COMFYD_NO_CONTRACTION
    std::vector<float> detail(content.values.size());
    for (std::size_t level = 0; level < kLevels; ++level) {
        Plane coarse = softened(content, std::size_t{1} << level);
        for (std::size_t i = 0; i < detail.size(); ++i) {
            detail[i] = (detail[i] + content.values[i]) - coarse.values[i];
        }
        content = std::move(coarse);
        style = softened(style, std::size_t{1} << level);
    }
    for (std::size_t i = 0; i < detail.size(); ++i) {
        style.values[i] = clamp_between(detail[i] + style.values[i], -1.0F, 1.0F);
    }
    return style;
}

struct Moments {
    float mean;
    float deviation;
};

Moments moments(const std::vector<float>& values) {
    const auto count = static_cast<double>(values.size());
    const double sum = std::accumulate(values.begin(), values.end(), 0.0);
    double squares = 0;
    for (const float value : values) {
        const double distance = value - sum / count;
        squares += distance * distance;
    }
    constexpr float kLeast = 1e-5F;
    return {
        torch_sum(values.data(), values.size()) / static_cast<float>(values.size()),
        std::sqrt(static_cast<float>(squares / count) + kLeast)
    };
}

Plane with_moments(Plane content, const Plane& style) {
    COMFYD_NO_CONTRACTION
    const Moments own = moments(content.values);
    const Moments wanted = moments(style.values);
    for (float& value : content.values) {
        const float normal = (value - own.mean) / own.deviation;
        value = clamp_between(normal * wanted.deviation + wanted.mean, -1.0F, 1.0F);
    }
    return content;
}

// A key whose order as a number is the order of floats, NaN last.
std::uint32_t sort_key(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value == 0.0F ? 0.0F : value);
    if (value != value) {
        return 0xFFFF'FFFFU;
    }
    return (bits & 0x8000'0000U) != 0 ? ~bits : bits | 0x8000'0000U;
}

// Positions in ascending order of their values, equal ones in their own order.
std::vector<std::uint32_t> ascending(const float* values, std::size_t count) {
    struct Item {
        std::uint32_t key;
        std::uint32_t index;
    };
    std::vector<Item> from(count);
    std::vector<Item> into(count);
    for (std::size_t i = 0; i < count; ++i) {
        from[i] = {sort_key(values[i]), static_cast<std::uint32_t>(i)};
    }
    constexpr unsigned kBits = 11;
    constexpr std::uint32_t kMask = (1U << kBits) - 1;
    for (unsigned shift = 0; shift < 32; shift += kBits) {
        std::vector<std::size_t> starts(kMask + 2);
        for (const Item& item : from) {
            ++starts[(item.key >> shift & kMask) + 1];
        }
        std::partial_sum(starts.begin(), starts.end(), starts.begin());
        for (const Item& item : from) {
            into[starts[item.key >> shift & kMask]++] = item;
        }
        std::swap(from, into);
    }
    std::vector<std::uint32_t> out(count);
    std::ranges::transform(from, out.begin(), &Item::index);
    return out;
}

// The n-th smallest value becomes the n-th smallest of the other plane.
void match_ranks(float* content, const float* style, std::size_t count) {
    const auto own = ascending(content, count);
    const auto other = ascending(style, count);
    for (std::size_t i = 0; i < count; ++i) {
        content[own[i]] = style[other[i]];
    }
}

using Planes = std::vector<Plane>;

// All three planes one after the other in CIELAB.
std::vector<float> lab_of(const Planes& planes) {
    COMFYD_NO_CONTRACTION
    const std::size_t count = planes[0].values.size();
    std::vector<float> rgb(3 * count);
    for (std::size_t c = 0; c < 3; ++c) {
        for (std::size_t i = 0; i < count; ++i) {
            rgb[c * count + i] = clamp_unit((planes[c].values[i] + 1.0F) * 0.5F);
        }
    }
    std::vector<float> lab(3 * count);
    rgb_to_lab(rgb.data(), count, count, seedvr_lab(), lab.data());
    return lab;
}

void match_lab(Planes& content, const Planes& style) {
    COMFYD_NO_CONTRACTION
    const std::size_t count = content[0].values.size();
    std::vector<float> own = lab_of(content);
    const std::vector<float> wanted = lab_of(style);
    const std::vector<float> lightness(
        own.begin(), own.begin() + static_cast<std::ptrdiff_t>(count)
    );
    for (std::size_t c = 0; c < 3; ++c) {
        match_ranks(&own[c * count], &wanted[c * count], count);
    }
    constexpr auto kKept = 0.8F;
    constexpr auto kTaken = static_cast<float>(1.0 - 0.8);
    for (std::size_t i = 0; i < count; ++i) {
        own[i] = lightness[i] * kKept + own[i] * kTaken;
    }
    std::vector<float> rgb(3 * count);
    lab_to_rgb(own.data(), count, count, seedvr_lab(), rgb.data());
    for (std::size_t c = 0; c < 3; ++c) {
        spread_row(&rgb[c * count], count, content[c].values.data());
    }
}

Planes planes_of(const Image& image, std::size_t picture, std::size_t channels) {
    const ImageShape& shape = image.shape();
    Planes planes(channels, {shape.width, shape.height, {}});
    const float* pixels = image.picture(picture);
    const std::size_t count = shape.width * shape.height;
    for (std::size_t c = 0; c < channels; ++c) {
        planes[c].values.resize(count);
        for (std::size_t i = 0; i < count; ++i) {
            planes[c].values[i] = pixels[i * shape.channels + c];
        }
        spread_row(planes[c].values.data(), count, planes[c].values.data());
    }
    return planes;
}

void correct(Planes& content, const Planes& style, std::string_view method) {
    for (std::size_t c = 0; c < content.size(); ++c) {
        content[c] = method == "adain" ? with_moments(std::move(content[c]), style[c])
                                       : with_coarse(std::move(content[c]), style[c]);
    }
    if (method == "lab") {
        match_lab(content, style);
    }
}

Result<Image> corrected(
    const Call& call, const Image& images, const Image& reference, std::string_view method
) {
    const ImageShape shape = images.shape();
    if (shape.channels != 3 || reference.shape().channels != 3) {
        return node_error(
            "RuntimeError",
            "The size of tensor a (" + std::to_string(shape.channels) +
                ") must match the size of tensor b (" + std::to_string(reference.shape().channels) +
                ") at non-singleton dimension 1"
        );
    }
    auto out = call.new_image(shape);
    if (!out) {
        return fail(std::move(out.error()));
    }
    auto done = call.for_each(shape.batch, [&](std::size_t picture) -> Result<> {
        COMFYD_NO_CONTRACTION
        const auto space = call.charge(shape.height * shape.width * kBytesPerPixel);
        if (!space) {
            return fail(space.error());
        }
        Planes content = planes_of(images, picture, 3);
        correct(content, planes_of(reference, picture, 3), method);
        float* into = out->row(picture * shape.height);
        for (std::size_t i = 0; i < shape.height * shape.width; ++i) {
            for (std::size_t c = 0; c < 3; ++c) {
                *into++ = clamp_unit((content[c].values[i] + 1.0F) / 2.0F);
            }
        }
        return call.check_stopped();
    });
    if (!done) {
        return fail(std::move(done.error()));
    }
    return std::move(*out).finish();
}

// The alpha of the reference beside the colours.
Result<Image> with_alpha(const Call& call, const Image& image, const Image& reference) {
    const ImageShape& shape = image.shape();
    auto out = call.new_image({shape.batch, shape.height, shape.width, shape.channels + 1});
    if (!out) {
        return fail(std::move(out.error()));
    }
    for (std::size_t row = 0; row < shape.rows(); ++row) {
        const float* from = image.row(row);
        const float* alpha =
            reference.row(row / shape.height * reference.shape().height + row % shape.height);
        float* into = out->row(row);
        for (std::size_t x = 0; x < shape.width; ++x) {
            into = std::copy_n(from + x * shape.channels, shape.channels, into);
            *into++ = alpha[x * 4 + 3];
        }
    }
    return std::move(*out).finish();
}

const Image& frames_of(const Call& call, std::string_view name) {
    const Clip* clip = as_clip(call.value(name));
    return clip != nullptr ? clip->frames : call.image(name);
}

Result<Image> post_processed(const Call& call) {
    const Image& given = frames_of(call, "images");
    const Image& reference = frames_of(call, "original_resized_images");
    const ImageShape& a = given.shape();
    const ImageShape& b = reference.shape();
    const std::size_t frames = std::min(a.batch, b.batch);
    const Box common{0, 0, std::min(a.width, b.width), std::min(a.height, b.height)};
    auto out = some_pictures(call, given, 0, frames);
    if (out) {
        out = cut(call, *out, common);
    }
    const std::string_view method = call.text("color_correction_method");
    if (out && method != "none") {
        auto style = some_pictures(call, reference, 0, frames);
        if (style && b.channels == 4) {
            style = with_channels(call, *style, 3);
        }
        if (style && (b.width != common.width || b.height != common.height)) {
            style = resize_antialiased(call, *style, common.width, common.height);
        }
        out = style ? corrected(call, *out, *style, method) : style;
    }
    if (out && b.channels == 4) {
        out = with_alpha(call, *out, reference);
    }
    if (!out) {
        return out;
    }
    const ImageShape& shape = out->shape();
    const Box even{0, 0, shape.width / 2 * 2, shape.height / 2 * 2};
    if (even.width == 0 || even.height == 0) {
        return node_error("RuntimeError", "A picture of one row or column has no even part");
    }
    return cut(call, *out, even);
}

Result<NodeResult> compute(Call& call) {
    auto out = post_processed(call);
    if (!out) {
        return fail(std::move(out.error()));
    }
    if (as_clip(call.value("images")) != nullptr) {
        return NodeResult{.outputs = {std::make_shared<const Clip>(std::move(*out))}};
    }
    return NodeResult{.outputs = {std::move(*out)}};
}

}  // namespace

NodeClass seedvr2_post_processing() {
    return {
        .name = "SeedVR2PostProcessing",
        .description = "Cuts an upscaled picture to its original and takes over its colours.",
        .execute = &compute,
    };
}

}  // namespace comfyd::engine::nodes
