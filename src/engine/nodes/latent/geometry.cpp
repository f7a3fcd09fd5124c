// Latents scaled, turned, flipped, cut and joined.
#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/nodes/call.hpp"
#include "engine/nodes/latent/latent.hpp"
#include "engine/pixels/pictures.hpp"

namespace comfyd::engine::nodes {
namespace {

Result<Tensor> scaled(
    const Call& call, const Tensor& samples, std::int64_t width, std::int64_t height, Crop crop
) {
    const std::string& method = call.text("upscale_method");
    if (method == "bislerp") {
        return node_error(
            "NotImplementedError",
            "bislerp is not available here: choose another upscale_method or another machine"
        );
    }
    return resize_planes(
        call,
        samples,
        static_cast<std::size_t>(std::max<std::int64_t>(0, width)),
        static_cast<std::size_t>(std::max<std::int64_t>(0, height)),
        resize_method(method),
        crop
    );
}

Result<NodeResult> execute_upscale(Call& call) {
    const auto& latent = call.object<Latent>("samples");
    std::int64_t width = call.place("width");
    std::int64_t height = call.place("height");
    if (width == 0 && height == 0) {
        return NodeResult{.outputs = {call.value("samples")}};
    }
    constexpr std::int64_t kLeast = 64;
    const auto across = static_cast<double>(latent.samples.size(-1));
    const auto down = static_cast<double>(latent.samples.size(-2));
    if (width == 0) {
        height = std::max(kLeast, height);
        width = std::max(kLeast, python_round(across * static_cast<double>(height) / down));
    } else if (height == 0) {
        width = std::max(kLeast, width);
        height = std::max(kLeast, python_round(down * static_cast<double>(width) / across));
    }
    const Crop crop = call.text("crop") == "center" ? Crop::center : Crop::disabled;
    return with_samples(
        latent,
        scaled(
            call, latent.samples, std::max(kLeast, width) / 8, std::max(kLeast, height) / 8, crop
        )
    );
}

Result<NodeResult> execute_upscale_by(Call& call) {
    const auto& latent = call.object<Latent>("samples");
    const double factor = call.number("scale_by");
    const auto side = [&](int dimension) {
        return python_round(static_cast<double>(latent.samples.size(dimension)) * factor);
    };
    return with_samples(latent, scaled(call, latent.samples, side(-1), side(-2), Crop::disabled));
}

// ComfyUI turns and flips the dimensions 2 and 3, which are the planes of pictures only.
Result<> check_picture(const Tensor& samples) {
    if (samples.dims().size() != 4) {
        return node_error(
            "ValueError",
            "Only latents of pictures can be turned, flipped or cut here; this one has " +
                std::to_string(samples.dims().size()) + " dimensions."
        );
    }
    return {};
}

Result<NodeResult> execute_rotate(Call& call) {
    const auto& latent = call.object<Latent>("samples");
    const Tensor& from = latent.samples;
    if (auto good = check_picture(from); !good) {
        return fail(std::move(good.error()));
    }
    const std::size_t height = from.size(-2);
    const std::size_t width = from.size(-1);
    const std::string& rotation = call.text("rotation");
    if (rotation.starts_with("90")) {
        return with_samples(
            latent,
            remap_planes(
                call,
                from,
                width,
                height,
                [&](std::size_t y, std::size_t x) { return (height - 1 - x) * width + y; }
            )
        );
    }
    if (rotation.starts_with("180")) {
        return with_samples(
            latent,
            remap_planes(
                call,
                from,
                height,
                width,
                [&](std::size_t y, std::size_t x) {
                    return (height - 1 - y) * width + (width - 1 - x);
                }
            )
        );
    }
    if (rotation.starts_with("270")) {
        return with_samples(
            latent,
            remap_planes(
                call,
                from,
                width,
                height,
                [&](std::size_t y, std::size_t x) { return x * width + (width - 1 - y); }
            )
        );
    }
    return NodeResult{.outputs = {call.value("samples")}};
}

Result<NodeResult> execute_flip(Call& call) {
    const auto& latent = call.object<Latent>("samples");
    const Tensor& from = latent.samples;
    if (auto good = check_picture(from); !good) {
        return fail(std::move(good.error()));
    }
    const std::size_t height = from.size(-2);
    const std::size_t width = from.size(-1);
    const bool rows = call.text("flip_method").starts_with("x");
    return with_samples(
        latent,
        remap_planes(
            call,
            from,
            height,
            width,
            [&](std::size_t y, std::size_t x) {
                return rows ? (height - 1 - y) * width + x : y * width + (width - 1 - x);
            }
        )
    );
}

// samples[start:start + count], where ComfyUI keeps 8 latent values if there are as many.
Result<Tensor> cut_side(
    const Call& call,
    const Tensor& from,
    std::size_t dimension,
    std::int64_t start,
    std::int64_t count
) {
    const auto size = static_cast<std::int64_t>(from.dims()[dimension]);
    start = std::min(start, size - 8);
    const auto place = [size](std::int64_t at) {
        return std::clamp<std::int64_t>(at < 0 ? at + size : at, 0, size);
    };
    const std::int64_t first = place(start);
    const std::int64_t last = std::max(first, place(start + count));
    return narrow(
        call,
        from,
        dimension,
        static_cast<std::size_t>(first),
        static_cast<std::size_t>(last - first)
    );
}

Result<NodeResult> execute_crop(Call& call) {
    const auto& latent = call.object<Latent>("samples");
    if (auto good = check_picture(latent.samples); !good) {
        return fail(std::move(good.error()));
    }
    auto rows = cut_side(call, latent.samples, 2, call.place("y") / 8, call.place("height") / 8);
    if (!rows) {
        return fail(std::move(rows.error()));
    }
    return with_samples(
        latent, cut_side(call, *rows, 3, call.place("x") / 8, call.place("width") / 8)
    );
}

// Which dimension x, y or t is.
std::size_t dimension_of(const std::string& name, const Tensor& samples) {
    const std::size_t back = name.find('x') != name.npos ? 1 : name.find('y') != name.npos ? 2 : 3;
    return samples.dims().size() - back;
}

Result<NodeResult> execute_concat(Call& call) {
    const auto& latent = call.object<Latent>("samples1");
    auto second =
        repeat_to_batch(call, call.object<Latent>("samples2").samples, latent.samples.size(0));
    if (!second) {
        return fail(std::move(second.error()));
    }
    const std::string& dim = call.text("dim");
    std::vector<Tensor> both{latent.samples, std::move(*second)};
    if (dim.find('-') != dim.npos) {
        std::swap(both[0], both[1]);
    }
    return with_samples(latent, concatenate(call, both, dimension_of(dim, latent.samples)));
}

Result<NodeResult> execute_cut(Call& call) {
    const auto& latent = call.object<Latent>("samples");
    const std::size_t dimension = dimension_of(call.text("dim"), latent.samples);
    const auto size = static_cast<std::int64_t>(latent.samples.dims()[dimension]);
    std::int64_t index = call.place("index");
    std::int64_t amount = call.place("amount");
    if (index >= 0) {
        index = std::max<std::int64_t>(0, std::min(index, size - 1));
        amount = std::min(size - index, amount);
    } else {
        index = std::max(index, -size);
        amount = std::min(-index, amount);
        index += size;
    }
    return with_samples(
        latent,
        narrow(
            call,
            latent.samples,
            dimension,
            static_cast<std::size_t>(index),
            static_cast<std::size_t>(std::max<std::int64_t>(0, amount))
        )
    );
}

Result<NodeResult> execute_cut_to_batch(Call& call) {
    const auto& latent = call.object<Latent>("samples");
    const Tensor& from = latent.samples;
    const std::size_t dimension = dimension_of(call.text("dim"), from);
    if (dimension < 2 || from.dims()[dimension] == 0) {
        return NodeResult{.outputs = {call.value("samples")}};
    }
    const std::size_t slice = std::min(
        from.dims()[dimension],
        static_cast<std::size_t>(std::max<std::int64_t>(1, call.place("slice_size")))
    );
    // Sample by sample, its slices one after the other.
    std::vector<Tensor> slices;
    for (std::size_t sample = 0; sample < from.size(0); ++sample) {
        const auto one = narrow(call, from, 0, sample, 1);
        if (!one) {
            return fail(one.error());
        }
        for (std::size_t i = 0; i < from.dims()[dimension] / slice; ++i) {
            auto part = narrow(call, *one, dimension, i * slice, slice);
            if (!part) {
                return fail(std::move(part.error()));
            }
            slices.push_back(std::move(*part));
        }
    }
    return with_samples(latent, concatenate(call, slices, 0));
}

}  // namespace

NodeClass latent_upscale() {
    return {
        .name = "LatentUpscale",
        .description = "Scales a latent to the size of a picture.",
        .execute = &execute_upscale
    };
}

NodeClass latent_upscale_by() {
    return {
        .name = "LatentUpscaleBy",
        .description = "Scales a latent by a factor.",
        .execute = &execute_upscale_by
    };
}

NodeClass latent_rotate() {
    return {
        .name = "LatentRotate",
        .description = "Turns a latent by right angles.",
        .execute = &execute_rotate
    };
}

NodeClass latent_flip() {
    return {.name = "LatentFlip", .description = "Mirrors a latent.", .execute = &execute_flip};
}

NodeClass latent_crop() {
    return {
        .name = "LatentCrop",
        .description = "Cuts a rectangle out of a latent.",
        .execute = &execute_crop
    };
}

NodeClass latent_concat() {
    return {
        .name = "LatentConcat",
        .description = "Puts two latents side by side, or one after the other in time.",
        .execute = &execute_concat
    };
}

NodeClass latent_cut() {
    return {
        .name = "LatentCut",
        .description = "Takes a part of a latent along one direction.",
        .execute = &execute_cut
    };
}

NodeClass latent_cut_to_batch() {
    return {
        .name = "LatentCutToBatch",
        .description = "Cuts a latent into slices of equal size and makes a batch of them.",
        .execute = &execute_cut_to_batch
    };
}

}  // namespace comfyd::engine::nodes
