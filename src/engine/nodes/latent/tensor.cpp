#include "engine/nodes/latent/tensor.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "engine/nodes/node.hpp"

namespace comfyd::engine::nodes {
namespace {

// A tensor seen around one dimension.
struct Around {
    std::size_t outer = 1;
    std::size_t inner = 1;
};

Around around(const Dims& dims, std::size_t dimension) {
    Around sizes;
    for (std::size_t i = 0; i < dims.size(); ++i) {
        (i < dimension ? sizes.outer : sizes.inner) *= i == dimension ? 1 : dims[i];
    }
    return sizes;
}

// The last two dimensions of a picture's planes stay; all others are the batch.
ImageShape planes_of(const Tensor& tensor) {
    const std::size_t height = tensor.size(-2);
    const std::size_t width = tensor.size(-1);
    return {tensor.count() / std::max<std::size_t>(1, height * width), height, width, 1};
}

}  // namespace

std::size_t count_of(const Dims& dims) {
    std::size_t count = 1;
    for (const std::size_t size : dims) {
        if (__builtin_mul_overflow(count, size, &count)) {
            return std::numeric_limits<std::size_t>::max();
        }
    }
    return count;
}

std::size_t Tensor::size(int dimension) const {
    const auto at = dimension < 0 ? dims_.size() - static_cast<std::size_t>(-dimension)
                                  : static_cast<std::size_t>(dimension);
    return dims_[at];
}

std::size_t Tensor::count() const {
    return count_of(dims_);
}

Result<Tensor> make_tensor(
    const Call& call, Dims dims, const std::function<void(float* into)>& fill
) {
    const std::size_t count = count_of(dims);
    ImageShape shape{1, 1, count, 1};
    if (count == 0) {
        Dims sides = dims;
        std::ranges::replace(sides, std::size_t{0}, std::size_t{1});
        shape = {0, 1, count_of(sides), 1};
    }
    auto storage = call.new_image(shape);
    if (!storage) {
        return fail(std::move(storage.error()));
    }
    fill(storage->data());
    return Tensor(std::move(dims), std::move(*storage).finish());
}

Result<Tensor> filled(const Call& call, Dims dims, float value) {
    const std::size_t count = count_of(dims);
    return make_tensor(call, std::move(dims), [&](float* into) {
        std::fill_n(into, count, value);
    });
}

Result<Tensor> narrow(
    const Call& call,
    const Tensor& tensor,
    std::size_t dimension,
    std::size_t first,
    std::size_t count
) {
    const Around sizes = around(tensor.dims(), dimension);
    const std::size_t whole = tensor.dims()[dimension] * sizes.inner;
    Dims dims = tensor.dims();
    dims[dimension] = count;
    return make_tensor(call, std::move(dims), [&](float* into) {
        for (std::size_t i = 0; i < sizes.outer; ++i) {
            into = std::copy_n(
                tensor.data() + i * whole + first * sizes.inner, count * sizes.inner, into
            );
        }
    });
}

Result<Tensor> concatenate(
    const Call& call, const std::vector<Tensor>& tensors, std::size_t dimension
) {
    Dims dims = tensors.front().dims();
    if (dimension >= dims.size()) {
        return node_error(
            "IndexError",
            "Dimension out of range (expected to be in range of [-" + std::to_string(dims.size()) +
                ", " + std::to_string(dims.size() - 1) + "], but got " + std::to_string(dimension) +
                ")"
        );
    }
    dims[dimension] = 0;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const Dims& other = tensors[i].dims();
        for (std::size_t k = 0; k < dims.size() && other.size() == dims.size(); ++k) {
            if (k != dimension && other[k] != dims[k]) {
                return node_error(
                    "RuntimeError",
                    "Sizes of tensors must match except in dimension " + std::to_string(dimension) +
                        ". Expected size " + std::to_string(dims[k]) + " but got size " +
                        std::to_string(other[k]) + " for tensor number " + std::to_string(i) +
                        " in the list."
                );
            }
        }
        if (other.size() != dims.size()) {
            return node_error(
                "RuntimeError",
                "Tensors must have same number of dimensions: got " + std::to_string(dims.size()) +
                    " and " + std::to_string(other.size())
            );
        }
        dims[dimension] += other[dimension];
    }
    const Around sizes = around(dims, dimension);
    return make_tensor(call, std::move(dims), [&](float* into) {
        for (std::size_t i = 0; i < sizes.outer; ++i) {
            for (const Tensor& tensor : tensors) {
                const std::size_t block = tensor.dims()[dimension] * sizes.inner;
                into = std::copy_n(tensor.data() + i * block, block, into);
            }
        }
    });
}

Result<Tensor> repeat_to_batch(const Call& call, const Tensor& tensor, std::size_t batch) {
    const std::size_t have = tensor.size(0);
    if (have == batch || have == 0) {
        return tensor;
    }
    Dims dims = tensor.dims();
    dims[0] = batch;
    const std::size_t block = tensor.count() / have;
    return make_tensor(call, std::move(dims), [&](float* into) {
        for (std::size_t i = 0; i < batch; ++i) {
            into = std::copy_n(tensor.data() + i % have * block, block, into);
        }
    });
}

Result<Tensor> remap_planes(
    const Call& call,
    const Tensor& tensor,
    std::size_t height,
    std::size_t width,
    const std::function<std::size_t(std::size_t y, std::size_t x)>& source
) {
    const ImageShape planes = planes_of(tensor);
    const auto space = call.charge(height * width * sizeof(std::size_t));
    if (!space) {
        return fail(space.error());
    }
    std::vector<std::size_t> from(height * width);
    for (std::size_t i = 0; i < from.size(); ++i) {
        from[i] = source(i / width, i % width);
    }
    Dims dims = tensor.dims();
    dims[dims.size() - 2] = height;
    dims[dims.size() - 1] = width;
    return make_tensor(call, std::move(dims), [&](float* into) {
        for (std::size_t plane = 0; plane < planes.batch; ++plane) {
            const float* data = tensor.data() + plane * planes.height * planes.width;
            for (const std::size_t place : from) {
                *into++ = data[place];
            }
        }
    });
}

Result<Tensor> resize_planes(
    const Call& call,
    const Tensor& tensor,
    std::size_t width,
    std::size_t height,
    ResizeMethod method,
    Crop crop
) {
    const ImageShape planes = planes_of(tensor);
    if (tensor.count() == 0 || width == 0 || height == 0) {
        return node_error(
            "RuntimeError",
            "Input and output sizes should be greater than 0, but got input (H: " +
                std::to_string(planes.height) + ", W: " + std::to_string(planes.width) +
                ") output (H: " + std::to_string(height) + ", W: " + std::to_string(width) + ")"
        );
    }
    auto picture = call.new_image(planes);
    if (!picture) {
        return fail(std::move(picture.error()));
    }
    std::copy_n(tensor.data(), tensor.count(), picture->data());
    auto scaled = resize(call, std::move(*picture).finish(), width, height, method, crop);
    if (!scaled) {
        return fail(std::move(scaled.error()));
    }
    Dims dims = tensor.dims();
    dims[dims.size() - 2] = height;
    dims[dims.size() - 1] = width;
    return Tensor(std::move(dims), std::move(*scaled));
}

}  // namespace comfyd::engine::nodes
