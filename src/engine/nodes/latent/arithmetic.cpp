// Latents added, mixed and laid over each other.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "engine/nodes/call.hpp"
#include "engine/nodes/kernel.hpp"
#include "engine/nodes/latent/latent.hpp"

namespace comfyd::engine::nodes {
namespace {

tl::unexpected<Error> size_mismatch(std::size_t a, std::size_t b, std::size_t dimension) {
    return node_error(
        "RuntimeError",
        "The size of tensor a (" + std::to_string(a) + ") must match the size of tensor b (" +
            std::to_string(b) + ") at non-singleton dimension " + std::to_string(dimension)
    );
}

// ComfyUI's reshape_latent_to.
Result<Tensor> like(const Call& call, const Tensor& target, const Tensor& tensor) {
    const Dims& want = target.dims();
    const Dims& have = tensor.dims();
    Result<Tensor> shaped = tensor;
    if (!std::equal(have.begin() + 1, have.end(), want.begin() + 1, want.end())) {
        shaped = resize_planes(
            call, tensor, target.size(-1), target.size(-2), ResizeMethod::bilinear, Crop::center
        );
    }
    return shaped ? repeat_to_batch(call, *shaped, target.size(0)) : shaped;
}

// Both tensors have the same sizes, or it is PyTorch's refusal.
Result<> check_same(const Tensor& a, const Tensor& b) {
    for (std::size_t i = std::min(a.dims().size(), b.dims().size()); i > 0; --i) {
        if (a.dims()[i - 1] != b.dims()[i - 1]) {
            return size_mismatch(a.dims()[i - 1], b.dims()[i - 1], i - 1);
        }
    }
    if (a.dims().size() != b.dims().size()) {
        return size_mismatch(a.dims().size(), b.dims().size(), 0);
    }
    return {};
}

template <class Function>
Result<Tensor> combine(const Call& call, const Tensor& a, const Tensor& b, Function function) {
    if (auto same = check_same(a, b); !same) {
        return fail(std::move(same.error()));
    }
    return make_tensor(call, a.dims(), [&](float* into) {
        for (std::size_t i = 0; i < a.count(); ++i) {
            into[i] = function(a.data()[i], b.data()[i]);
        }
    });
}

template <class Function>
Result<NodeResult> combine_inputs(const Call& call, Function function) {
    const auto& first = call.object<Latent>("samples1");
    const auto second = like(call, first.samples, call.object<Latent>("samples2").samples);
    if (!second) {
        return fail(second.error());
    }
    return with_samples(first, combine(call, first.samples, *second, function));
}

Result<NodeResult> execute_add(Call& call) {
    return combine_inputs(call, [](float a, float b) { return a + b; });
}

Result<NodeResult> execute_subtract(Call& call) {
    return combine_inputs(call, [](float a, float b) { return a - b; });
}

Result<NodeResult> execute_multiply(Call& call) {
    const auto& latent = call.object<Latent>("samples");
    const auto factor = static_cast<float>(call.number("multiplier"));
    return with_samples(latent, make_tensor(call, latent.samples.dims(), [&](float* into) {
                            for (std::size_t i = 0; i < latent.samples.count(); ++i) {
                                into[i] = latent.samples.data()[i] * factor;
                            }
                        }));
}

Result<NodeResult> execute_blend(Call& call) {
    const auto& first = call.object<Latent>("samples1");
    Result<Tensor> second = call.object<Latent>("samples2").samples;
    if (second->dims() != first.samples.dims()) {
        second = resize_planes(
            call,
            *second,
            first.samples.size(-1),
            first.samples.size(-2),
            ResizeMethod::bicubic,
            Crop::center
        );
        if (second && second->size(0) == 1) {
            second = repeat_to_batch(call, *second, first.samples.size(0));
        }
    }
    if (!second) {
        return fail(second.error());
    }
    const double factor = call.number("blend_factor");
    const auto base = static_cast<float>(factor);
    const auto mixed = static_cast<float>(1.0 - factor);
    return with_samples(first, combine(call, first.samples, *second, [&](float a, float b) {
                            COMFYD_NO_CONTRACTION
                            return a * base + b * mixed;
                        }));
}

float no_nan(float x) {
    constexpr float kMax = std::numeric_limits<float>::max();
    return std::isnan(x) ? 0.0F : std::clamp(x, -kMax, kMax);
}

// Lengths over the channels: [batch, …] of [batch, channels, …].
std::vector<float> lengths(const float* data, const Dims& dims) {
    const std::size_t inner = count_of(dims) / std::max<std::size_t>(1, dims[0] * dims[1]);
    std::vector<float> out(dims[0] * inner);
    for (std::size_t b = 0; b < dims[0]; ++b) {
        for (std::size_t c = 0; c < dims[1]; ++c) {
            const float* plane = data + (b * dims[1] + c) * inner;
            for (std::size_t i = 0; i < inner; ++i) {
                out[b * inner + i] += plane[i] * plane[i];
            }
        }
    }
    for (float& x : out) {
        x = std::sqrt(x);
    }
    return out;
}

// ComfyUI divides [batch, channels, …] by [batch, …], which PyTorch lines up from the end: the
// lengths count per channel, and there must be one or as many as channels.
Result<NodeResult> execute_interpolate(Call& call) {
    const auto& first = call.object<Latent>("samples1");
    const Tensor& a = first.samples;
    const auto b = like(call, a, call.object<Latent>("samples2").samples);
    if (!b) {
        return fail(b.error());
    }
    if (auto same = check_same(a, *b); !same) {
        return fail(std::move(same.error()));
    }
    const Dims& dims = a.dims();
    if (dims[0] != 1 && dims[1] != 1 && dims[0] != dims[1]) {
        return size_mismatch(dims[1], dims[0], 1);
    }
    const std::size_t inner = a.count() / std::max<std::size_t>(1, dims[0] * dims[1]);
    const std::vector<float> a_length = lengths(a.data(), dims);
    const std::vector<float> b_length = lengths(b->data(), dims);
    const auto ratio = static_cast<float>(call.number("ratio"));
    const auto rest = static_cast<float>(1.0 - call.number("ratio"));
    const auto length_at = [&](std::size_t at) {
        const std::size_t channel = at / inner % dims[1];
        return (dims[0] == 1 ? 0 : channel) * inner + at % inner;
    };
    return with_samples(first, make_tensor(call, dims, [&](float* into) {
                            COMFYD_NO_CONTRACTION
                            for (std::size_t i = 0; i < a.count(); ++i) {
                                const std::size_t at = length_at(i);
                                into[i] = no_nan(a.data()[i] / a_length[at]) * ratio +
                                          no_nan(b->data()[i] / b_length[at]) * rest;
                            }
                            const std::vector<float> mixed_length = lengths(into, dims);
                            for (std::size_t i = 0; i < a.count(); ++i) {
                                const std::size_t at = length_at(i);
                                into[i] = no_nan(into[i] / mixed_length[at]) *
                                          (a_length[at] * ratio + b_length[at] * rest);
                            }
                        }));
}

struct Side {
    std::size_t start = 0;
    std::size_t visible = 0;
};

// How much of `from` shows at `start`.
Side visible_side(std::int64_t start, std::size_t from, std::size_t onto) {
    const std::size_t at =
        std::min(static_cast<std::size_t>(std::max<std::int64_t>(0, start)), onto);
    return {at, std::min(from, onto - at)};
}

// How strongly line `k` of `count` lines covers, feathered at the ends that are not a border.
float cover(std::size_t k, Side side, std::size_t onto, std::size_t feather) {
    COMFYD_NO_CONTRACTION
    float factor = 1.0F;
    const auto rate = [feather](std::size_t t) {
        return static_cast<float>(
            (1.0 / static_cast<double>(feather)) * static_cast<double>(t + 1)
        );
    };
    if (side.start != 0 && k < feather) {
        factor *= rate(k);
    }
    const std::size_t from_end = side.visible - 1 - k;
    if (side.start + side.visible < onto && from_end < feather) {
        factor *= rate(from_end);
    }
    return factor;
}

Result<NodeResult> execute_composite(Call& call) {
    const auto& latent = call.object<Latent>("samples_to");
    const Tensor& onto = latent.samples;
    const Tensor& from = call.object<Latent>("samples_from").samples;
    if (onto.dims().size() != 4 || from.dims().size() != 4) {
        return node_error("ValueError", "Only latents of pictures can be laid over each other.");
    }
    if ((from.size(0) != onto.size(0) && from.size(0) != 1) ||
        (from.size(1) != onto.size(1) && from.size(1) != 1)) {
        const int which = from.size(0) != onto.size(0) && from.size(0) != 1 ? 0 : 1;
        return size_mismatch(from.size(which), onto.size(which), static_cast<std::size_t>(which));
    }
    const Side across = visible_side(call.place("x") / 8, from.size(3), onto.size(3));
    const Side down = visible_side(call.place("y") / 8, from.size(2), onto.size(2));
    const auto feather = static_cast<std::size_t>(
        std::max<std::int64_t>(0, call.has("feather") ? call.place("feather") : 0) / 8
    );
    return with_samples(latent, make_tensor(call, onto.dims(), [&](float* into) {
                            COMFYD_NO_CONTRACTION
                            std::copy_n(onto.data(), onto.count(), into);
                            for (std::size_t plane = 0; plane < onto.size(0) * onto.size(1);
                                 ++plane) {
                                const std::size_t b = from.size(0) == 1 ? 0 : plane / onto.size(1);
                                const std::size_t c = from.size(1) == 1 ? 0 : plane % onto.size(1);
                                const float* source = from.data() + (b * from.size(1) + c) *
                                                                        from.size(2) * from.size(3);
                                for (std::size_t y = 0; y < down.visible; ++y) {
                                    float* row =
                                        into +
                                        (plane * onto.size(2) + down.start + y) * onto.size(3) +
                                        across.start;
                                    const float* source_row = source + y * from.size(3);
                                    for (std::size_t x = 0; x < across.visible; ++x) {
                                        if (feather == 0) {
                                            row[x] = source_row[x];
                                            continue;
                                        }
                                        const float mask = cover(y, down, onto.size(2), feather) *
                                                           cover(x, across, onto.size(3), feather);
                                        row[x] = source_row[x] * mask + row[x] * (1.0F - mask);
                                    }
                                }
                            }
                        }));
}

}  // namespace

NodeClass latent_add() {
    return {.name = "LatentAdd", .description = "Adds two latents.", .execute = &execute_add};
}

NodeClass latent_subtract() {
    return {
        .name = "LatentSubtract",
        .description = "Subtracts one latent from another.",
        .execute = &execute_subtract
    };
}

NodeClass latent_multiply() {
    return {
        .name = "LatentMultiply",
        .description = "Multiplies a latent by a number.",
        .execute = &execute_multiply
    };
}

NodeClass latent_interpolate() {
    return {
        .name = "LatentInterpolate",
        .description = "Mixes two latents in direction and in strength.",
        .execute = &execute_interpolate
    };
}

NodeClass latent_blend() {
    return {
        .name = "LatentBlend",
        .description = "Mixes two latents value by value.",
        .execute = &execute_blend
    };
}

NodeClass latent_composite() {
    return {
        .name = "LatentComposite",
        .description = "Lays one latent over another, with soft borders where wanted.",
        .execute = &execute_composite
    };
}

}  // namespace comfyd::engine::nodes
