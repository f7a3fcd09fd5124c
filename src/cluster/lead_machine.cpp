#include "cluster/lead_machine.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace comfyd::cluster {
namespace {

constexpr Millis kAtOnce = Millis::min();
constexpr Millis kForOthers = 3 * kTryEvery;

}  // namespace

std::string_view to_string(LeadEnd end) {
    switch (end) {
        case LeadEnd::taken_over:
            return "taken_over";
        case LeadEnd::unconfirmed:
            return "unconfirmed";
        case LeadEnd::session_lost:
            return "session_lost";
        case LeadEnd::resigned:
            return "resigned";
    }
    return "";
}

LeadMachine::Action LeadMachine::next(Millis now) {
    switch (phase_) {
        case Phase::standing_by:
            if (is_asking_) {
                return Wait{};
            }
            if (is_stopping_) {
                phase_ = Phase::at_rest;
                return Rest{};
            }
            if (send(now)) {
                return Take{};
            }
            return Wait{ask_at_};
        case Phase::leading:
            return next_as_leader(now);
        case Phase::stepping_down:
            return Wait{};
        case Phase::giving_back:
            if (send(now)) {
                return Resign{taken_.term};
            }
            return Wait{};
        case Phase::at_rest:
            return Rest{};
    }
    return Rest{};
}

LeadMachine::Action LeadMachine::next_as_leader(Millis now) {
    if (!has_begun_) {
        has_begun_ = true;
        return Begin{taken_};
    }
    if (!end_ && is_stopping_) {
        end_ = LeadEnd::resigned;
    }
    if (!end_ && now >= lease_until_) {
        end_ = LeadEnd::unconfirmed;
    }
    if (end_) {
        phase_ = Phase::stepping_down;
        return StepDown{*end_};
    }
    if (send(now)) {
        return Renew{taken_.term};
    }
    return Wait{is_asking_ ? lease_until_ : std::min(lease_until_, ask_at_)};
}

// True: a request goes out now.
bool LeadMachine::send(Millis now) {
    if (is_asking_ || now < ask_at_) {
        return false;
    }
    is_asking_ = true;
    sent_at_ = now;
    has_broken_ = false;
    asks_again_ = false;
    return true;
}

void LeadMachine::took(const Result<std::optional<Taken>>& answer, Millis now) {
    COMFYD_ASSERT(is_asking_ && phase_ == Phase::standing_by);
    is_asking_ = false;
    ask_at_ = asks_again_ ? kAtOnce : sent_at_ + kTryEvery;
    if (!answer || !*answer) {
        return;
    }
    taken_ = **answer;
    lease_until_ = sent_at_ + kTrust;
    if (is_stopping_ || has_broken_ || now >= lease_until_) {
        // Of no use any more; others need not wait until it runs out.
        phase_ = Phase::giving_back;
        ask_at_ = kAtOnce;
        return;
    }
    phase_ = Phase::leading;
    has_begun_ = false;
    end_.reset();
    ask_at_ = sent_at_ + kRenewEvery;
}

void LeadMachine::renewed(const Result<>& answer, Millis now) {
    COMFYD_ASSERT(is_asking_);
    is_asking_ = false;
    if (phase_ != Phase::leading || end_) {
        return;
    }
    if (now >= lease_until_) {
        // Whoever asked meanwhile was told that it is over.
        end_ = LeadEnd::unconfirmed;
    } else if (answer) {
        lease_until_ = sent_at_ + kTrust;
        ask_at_ = sent_at_ + kRenewEvery;
    } else if (answer.error().code == Code::lead_lost) {
        end_ = LeadEnd::taken_over;
    } else {
        // It may have been done or not. The lease is there as long as it is trusted.
        ask_at_ = sent_at_ + kTryEvery;
    }
}

void LeadMachine::resigned(Millis now) {
    COMFYD_ASSERT(is_asking_ && phase_ == Phase::giving_back);
    is_asking_ = false;
    phase_ = Phase::standing_by;
    ask_at_ = now + kForOthers;
}

void LeadMachine::stepped_down(Millis now) {
    COMFYD_ASSERT(phase_ == Phase::stepping_down);
    // Nothing is sent under the term any more: only now others may hear that it is over.
    const bool gives_back = is_stopping_ || end_ == LeadEnd::resigned;
    phase_ = gives_back ? Phase::giving_back : Phase::standing_by;
    ask_at_ = gives_back ? kAtOnce : now + kTryEvery;
}

void LeadMachine::session_lost() {
    has_broken_ = true;
    if (phase_ == Phase::leading && !end_) {
        end_ = LeadEnd::session_lost;
    }
}

void LeadMachine::may_be_free() {
    if (phase_ == Phase::standing_by) {
        ask_at_ = kAtOnce;
        asks_again_ = is_asking_;
    }
}

void LeadMachine::refused(std::uint64_t epoch) {
    if (phase_ == Phase::leading && epoch == taken_.term.epoch && !end_) {
        end_ = LeadEnd::taken_over;
    }
}

void LeadMachine::let_go() {
    if (phase_ == Phase::leading && !end_) {
        end_ = LeadEnd::resigned;
    }
}

void LeadMachine::stop() {
    is_stopping_ = true;
}

std::optional<Millis> LeadMachine::trusted_until() const {
    const bool is_trusted = phase_ == Phase::leading && !end_ && !is_stopping_;
    return is_trusted ? std::optional(lease_until_) : std::nullopt;
}

}  // namespace comfyd::cluster
