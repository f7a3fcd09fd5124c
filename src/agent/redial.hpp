// When the agent calls its gateway again after a call that ended or was not taken, and which of its
// nodes. Time and chance are the caller's: it only reckons.
#pragma once

#include <algorithm>
#include <cstddef>

#include "base/time.hpp"

namespace comfyd::agent {

struct RedialPauses {
    Millis min{250};  // doubles
    Millis max{4'000};
    Millis elsewhere_max{1'000};  // of nodes that know of another: who leads may be changing
};

// From half of it to all, by a chance of 0 to 1: those who lost their gateway at once do not come
// back at once.
inline Millis jittered(Millis pause, double chance) {
    return Millis(static_cast<Millis::rep>(static_cast<double>(pause.count()) * (1 + chance) / 2));
}

class Redial {
public:
    enum class Called { was_up, elsewhere, failed };

    explicit Redial(std::size_t nodes, RedialPauses pauses = {})
        : nodes_(nodes), pauses_(pauses), pause_(pauses.min) {}

    std::size_t node() const { return node_; }

    // What became of the call of node(); how long to wait before the next, 0 while some were not
    // asked.
    Millis after(Called called, double chance) {
        if (called == Called::was_up) {
            pause_ = pauses_.min;
            asked_ = 0;
        } else {
            node_ = (node_ + 1) % nodes_;
            if (++asked_ % nodes_ != 0) {
                return Millis(0);
            }
            pause_ = std::min(
                pause_ * 2, called == Called::elsewhere ? pauses_.elsewhere_max : pauses_.max
            );
        }
        return jittered(pause_, chance);
    }

private:
    const std::size_t nodes_;
    const RedialPauses pauses_;
    Millis pause_;
    std::size_t node_ = 0;
    std::size_t asked_ = 0;  // since the last that took the call
};

}  // namespace comfyd::agent
