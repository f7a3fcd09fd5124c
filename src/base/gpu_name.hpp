// Names of GPUs, which everybody spells otherwise: "RTX 4090", "rtx_4090" and "NVIDIA GeForce RTX
// 4090" are one kind; "L40" and "L40S" are two. Pure; any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace comfyd {

// `name` is of the kind that was wished for: the same words, but for who makes it, how much memory
// it has and how it is built in.
bool is_gpu(std::string_view wished, std::string_view name);
// And it has what the wish says of those, too: "A100 80GB" is an "NVIDIA A100 80GB PCIe".
bool is_exact_gpu(std::string_view wished, std::string_view name);

// What the name says of its memory, or the most that cards of a well-known kind are sold with; 0:
// not known.
int usual_gpu_memory_gb(std::string_view kind);

// A GPU that is sold with so many gigabytes has at least this: drivers keep some of it.
std::uint64_t least_gpu_memory(double gigabytes);

}  // namespace comfyd
