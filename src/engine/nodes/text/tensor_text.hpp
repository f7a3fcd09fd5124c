// str() of a PyTorch tensor of floats: "tensor([[0.5000, 1.0000]])", with the middle of large ones
// left out.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace comfyd::engine::nodes {

std::string tensor_text(const std::vector<std::size_t>& dims, const float* data);

}  // namespace comfyd::engine::nodes
