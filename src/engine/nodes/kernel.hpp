// For inner loops over pixels. COMFYD_KERNEL compiles a function a second time for processors with
// AVX2 and FMA and picks one at load time; both give the same bits, because COMFYD_NO_CONTRACTION,
// first in the function, keeps the compiler from fusing a multiplication and an addition on its
// own. Where ComfyUI's result does have a fused step, the code says std::fma.
#pragma once

#include <cmath>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define COMFYD_SANITIZED  // sanitizers are not ready yet when the loader picks
#endif
#endif

#if defined(__x86_64__) && defined(__linux__) && !defined(COMFYD_SANITIZED)
#define COMFYD_CLONES __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define COMFYD_CLONES
#endif

#if defined(__clang__)
#define COMFYD_KERNEL COMFYD_CLONES
#define COMFYD_NO_CONTRACTION _Pragma("clang fp contract(off)")
#else
#define COMFYD_KERNEL COMFYD_CLONES __attribute__((optimize("fp-contract=off")))
#define COMFYD_NO_CONTRACTION
#endif

namespace comfyd::engine {

// std::sqrt may have to set errno, which keeps loops around it from being vectorised.
inline float kernel_sqrt(float x) {
#if defined(__clang__)
    return __builtin_elementwise_sqrt(x);
#else
    return std::sqrt(x);
#endif
}

}  // namespace comfyd::engine
