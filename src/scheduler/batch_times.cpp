#include "scheduler/batch_times.hpp"

#include <algorithm>
#include <cmath>

#include "base/learned_json.hpp"

namespace comfyd::scheduler {
namespace {

// Of the time of a job alone, what each further one adds, until it was measured.
constexpr double kBatchedPart = 0.2;

}  // namespace

void BatchTimes::learn(int jobs, double seconds) {
    if (jobs > 1 && jobs <= kJobsMax && std::isfinite(seconds) && seconds > 0) {
        sizes_[jobs].add(std::log(seconds));
    }
}

double BatchTimes::seconds(int jobs, double alone_s) const {
    struct Point {
        int jobs;
        double seconds;
    };
    Point below{1, alone_s};
    double slope = kBatchedPart * alone_s;
    for (const auto& [size, recent] : sizes_) {
        if (recent.count() < kSamplesMin || jobs <= below.jobs) {
            continue;
        }
        // More jobs never take less time; where it seems so, the measurements are apart.
        const double measured = std::max(std::exp(recent.median()), below.seconds);
        slope = (measured - below.seconds) / (size - below.jobs);
        if (size >= jobs) {
            break;
        }
        below = Point{size, measured};
    }
    return below.seconds + slope * (jobs - below.jobs);
}

std::optional<double> BatchTimes::alone_seconds() const {
    if (sizes_.empty()) {
        return std::nullopt;
    }
    const auto& [jobs, recent] = *sizes_.begin();
    return std::exp(recent.median()) / (1 + kBatchedPart * (jobs - 1));
}

json::array BatchTimes::to_json() const {
    json::array sizes;
    for (const auto& [jobs, recent] : sizes_) {
        sizes.emplace_back(json::array{jobs, samples_json(recent)});
    }
    return sizes;
}

BatchTimes BatchTimes::from_json(const json::value& from) {
    BatchTimes made;
    const json::array* sizes = from.if_array();
    for (std::size_t i = 0; sizes != nullptr && i < sizes->size(); ++i) {
        const json::array* fields = (*sizes)[i].if_array();
        if (fields == nullptr || fields->size() != 2 || !fields->front().is_int64()) {
            continue;
        }
        const std::int64_t jobs = fields->front().get_int64();
        if (jobs > 1 && jobs <= kJobsMax) {
            made.sizes_[static_cast<int>(jobs)] = read_samples<kRecent>(fields->back());
        }
    }
    return made;
}

}  // namespace comfyd::scheduler
