// The tensors inside latents: any number of dimensions, rows last, and the few rearrangements that
// latent nodes are made of. Values are immutable and cheap to copy; memory counts as pictures'
// does.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/nodes/call.hpp"
#include "engine/pictures/resize.hpp"
#include "engine/values/value.hpp"

namespace comfyd::engine::nodes {

using Dims = std::vector<std::size_t>;

class Tensor {
public:
    Tensor(Dims dims, Image storage) : dims_(std::move(dims)), storage_(std::move(storage)) {}

    const Dims& dims() const { return dims_; }
    std::size_t size(int dimension) const;  // negative: from the end
    const float* data() const { return storage_.data(); }
    std::size_t count() const;

private:
    Dims dims_;
    Image storage_;  // only as memory
};

std::size_t count_of(const Dims& dims);

// `fill` writes count_of(dims) floats.
Result<Tensor> make_tensor(
    const Call& call, Dims dims, const std::function<void(float* into)>& fill
);
Result<Tensor> filled(const Call& call, Dims dims, float value);
// torch.narrow, after which `first` and `count` must fit.
Result<Tensor> narrow(
    const Call& call,
    const Tensor& tensor,
    std::size_t dimension,
    std::size_t first,
    std::size_t count
);
// torch.cat; a node error where the other dimensions differ.
Result<Tensor> concatenate(
    const Call& call, const std::vector<Tensor>& tensors, std::size_t dimension
);
// ComfyUI's repeat_to_batch_size.
Result<Tensor> repeat_to_batch(const Call& call, const Tensor& tensor, std::size_t batch);
// The same values in another order: out[i] = in[source(i)] over whole planes of the last two
// dimensions, whose new sizes are given.
Result<Tensor> remap_planes(
    const Call& call,
    const Tensor& tensor,
    std::size_t height,
    std::size_t width,
    const std::function<std::size_t(std::size_t y, std::size_t x)>& source
);
// ComfyUI's common_upscale, plane by plane.
Result<Tensor> resize_planes(
    const Call& call,
    const Tensor& tensor,
    std::size_t width,
    std::size_t height,
    ResizeMethod method,
    Crop crop
);

}  // namespace comfyd::engine::nodes
