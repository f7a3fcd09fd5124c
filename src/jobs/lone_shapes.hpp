// Shapes of jobs whose merged run failed: for a while such jobs run alone. Not for ever, because
// what failed may have been one job among them, such as one with an unusually long text. Core
// executor.
#pragma once

#include <string_view>

#include "base/lru_map.hpp"
#include "base/time.hpp"

namespace comfyd::jobs {

class LoneShapes {
public:
    static constexpr Millis kFor = std::chrono::minutes(10);

    void add(std::string_view shape, Time now) { until_.use(shape) = now + kFor; }
    bool contains(std::string_view shape, Time now) const {
        const Time* until = until_.find(shape);
        return until != nullptr && now < *until;
    }

private:
    static constexpr std::size_t kShapesMax = 10'000;
    LruMap<Time> until_{kShapesMax};
};

}  // namespace comfyd::jobs
