// The median of the latest few samples, and how far they spread. A plain value.
//
// Why a median over a window: up to half of its samples may be arbitrarily wrong (a worker that
// swapped, a clock that jumped) and it does not move; after a real change it has followed when half
// of the window is new. A running mean does neither, however its weight is chosen.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace comfyd {

template <std::size_t kSamplesMax>
class RecentMedian {
public:
    void add(double sample) {
        samples_[next_] = static_cast<float>(sample);
        next_ = static_cast<std::uint8_t>((next_ + 1) % kSamplesMax);
        count_ = static_cast<std::uint8_t>(std::min<std::size_t>(count_ + 1U, kSamplesMax));
    }
    void clear() { next_ = count_ = 0; }

    bool empty() const { return count_ == 0; }
    std::size_t count() const { return count_; }
    // REQUIRES: index < count(). The oldest first.
    double sample(std::size_t index) const {
        const std::size_t first = count_ < kSamplesMax ? 0 : next_;
        return static_cast<double>(samples_[(first + index) % kSamplesMax]);
    }
    // 0 when empty.
    double median() const { return median_of(samples_); }
    // The standard deviation that normal samples with this median deviation would have.
    double spread() const {
        const auto middle = static_cast<float>(median());
        auto deviations = samples_;
        for (float& deviation : deviations) {
            deviation = std::abs(deviation - middle);
        }
        return 1.4826 * median_of(deviations);
    }

private:
    static_assert(kSamplesMax > 0 && kSamplesMax < 256);

    double median_of(std::array<float, kSamplesMax> of) const {
        if (count_ == 0) {
            return 0;
        }
        std::sort(of.begin(), of.begin() + count_);
        return 0.5 *
               (static_cast<double>(of[(count_ - 1U) / 2U]) + static_cast<double>(of[count_ / 2U]));
    }

    std::array<float, kSamplesMax> samples_{};
    std::uint8_t next_ = 0;
    std::uint8_t count_ = 0;
};

}  // namespace comfyd
