// How an attempt finds a prompt that was sent before it began, perhaps by another node.
#include <utility>

#include "base/log.hpp"
#include "fleet/comfy_attempt.hpp"

namespace comfyd::fleet {

Task<Result<ComfyAttempt::Place>> ComfyAttempt::find_again() {
    while (true) {
        const bool is_quiet = !mandate_ || Ticks::now() >= mandate_->quiet_at;
        auto place = co_await locate();
        if (!place || *place != Place::absent || is_quiet) {
            co_return place;
        }
        // An earlier leader may be about to send it. A fence keeps that out.
        auto known = co_await announce(link_, mandate_);
        if (!known && known.error().code == Code::lead_lost) {
            co_return fail(lose_lead(std::move(known.error())));
        }
        if (known && *known) {
            co_return place;
        }
        log::debug(
            "a prompt is not there; it is looked for again when no earlier leader can send it",
            {{"job", assignment_.job}, {"worker", link_.worker_id}}
        );
        const auto left = std::chrono::ceil<Millis>(mandate_->quiet_at - Ticks::now());
        const bool waited = co_await sleep_for(std::max(left, Millis(0)));
        if (!waited) {
            co_return fail(Code::cancelled, "the run was stopped");
        }
    }
}

Error ComfyAttempt::lose_lead(Error error) const {
    if (mandate_) {
        mandate_->refused();
    }
    return error;
}

Task<Result<bool>> announce(ComfyLink& link, MandatePtr mandate) {
    if (!mandate) {
        co_return false;
    }
    if (link.known_epoch == mandate->epoch) {
        co_return true;
    }
    auto known = co_await link.client.announce({mandate->domain, mandate->epoch});
    if (known && *known) {
        link.known_epoch = mandate->epoch;
    }
    co_return known;
}

}  // namespace comfyd::fleet
