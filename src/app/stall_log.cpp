#include "app/stall_log.hpp"

#include <utility>

#include "base/log.hpp"

namespace comfyd::app {
namespace {

constexpr Millis kPause{1'000};

}  // namespace

bool StallLog::tell(const Stall& stall) {
    const Time now = clock_.now();
    // A clock that was set back does not silence it.
    if (told_at_ && now >= *told_at_ && now - *told_at_ < kPause) {
        ++untold_;
        return false;
    }
    told_at_ = now;
    log::warning(
        "the core was held up",
        {{"ms", stall.length.count()},
         {"by", *stall.doing == '\0' ? "unnamed work" : stall.doing},
         {"others_untold", std::exchange(untold_, 0)}}
    );
    return true;
}

}  // namespace comfyd::app
