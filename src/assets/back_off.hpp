// How long to wait before something that failed is tried again.
#pragma once

#include <algorithm>

#include "base/time.hpp"

namespace comfyd::assets {

struct BackOff {
    Millis first;
    Millis most;

    // Twice as long after each failure. `failed`: how many there were before this one.
    constexpr Millis after(int failed) const {
        constexpr int kDoublingsMax = 30;
        return std::min<Millis>(most, first * (1LL << std::min(failed, kDoublingsMax)));
    }
};

}  // namespace comfyd::assets
