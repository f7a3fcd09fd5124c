// PyTorch's arithmetic on single values, for loops that the compiler turns into vector code.
#pragma once

namespace comfyd::engine {

// clamp(0, 1) and clamp(low, high), which let NaN through.
inline float clamp_unit(float x) {
    return x < 0.0F ? 0.0F : x > 1.0F ? 1.0F : x;
}
inline float clamp_between(float x, float low, float high) {
    return x < low ? low : x > high ? high : x;
}

// max() and min() of which NaN wins.
inline float larger(float a, float b) {
    return a > b || a != a ? a : b;
}
inline float smaller(float a, float b) {
    return a < b || a != a ? a : b;
}

}  // namespace comfyd::engine
