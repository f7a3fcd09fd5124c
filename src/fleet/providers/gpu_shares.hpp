// What is left of a GPU that machines of several pools share: of those of which n may share one,
// each has the n-th part. Pure.
#pragma once

#include <algorithm>
#include <cmath>

namespace comfyd::fleet {

class GpuShares {
public:
    // One is there of which so many may share it.
    void take(int per_gpu) { taken_ += 1.0 / std::max(per_gpu, 1); }
    double taken() const { return taken_; }
    // More for which there is room, of which so many may share it.
    int left_for(int per_gpu) const {
        constexpr double kRounding = 1e-6;  // three thirds are all of it
        return std::max(0, static_cast<int>(std::floor((1 - taken_) * per_gpu + kRounding)));
    }

private:
    double taken_ = 0;
};

}  // namespace comfyd::fleet
