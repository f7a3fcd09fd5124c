// The GPUs of this computer (base/gpus.hpp) that ComfyUI may use, and how they are told of.
#pragma once

#include <string_view>
#include <vector>

#include "base/gpus.hpp"
#include "base/json.hpp"

namespace comfyd::agent {

// Those that `visible`, as of CUDA_VISIBLE_DEVICES, names by number or UUID (or its beginning); all
// where it is empty.
std::vector<Gpu> only_visible(std::vector<Gpu> gpus, std::string_view visible);

// {"uuid","name","memory_total_bytes","memory_free_bytes","processes":[{"pid","memory_bytes"}]}
json::object to_json(const Gpu& gpu);

}  // namespace comfyd::agent
