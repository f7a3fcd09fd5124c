// Functions of PyTorch and its vector library whose last bits can be seen in pictures.
#pragma once

#include <cstddef>

namespace comfyd::engine {

// The sum in PyTorch's order.
float torch_sum(const float* values, std::size_t count);

// For x <= 0.
float torch_exp(float x);
// For 0 <= x <= 100.
float torch_sin(float x);

}  // namespace comfyd::engine
