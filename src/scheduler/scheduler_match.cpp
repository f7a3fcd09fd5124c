// Which job starts next: the classes in their order, and in a class what is warm or whose turn it
// is.
#include <algorithm>

#include "scheduler/scheduler_impl.hpp"

namespace comfyd::scheduler {
namespace {

// Queues that are looked at for one for which a load pays best.
constexpr int kQueuesLookedAt = 32;
// A worker that stayed with its models looks at the others again after this part of a load.
constexpr double kLookAgain = 0.5;
// A load may be put off for work of a lower class that needs none until this part of the target.
constexpr double kPartOfTarget = 0.2;
// How long it is good to know which class is late.
constexpr Millis kLateFor = std::chrono::seconds(1);

}  // namespace

// The class below the highest that is furthest past its target.
std::optional<WaitClass> Scheduler::Impl::class_to_help(Time now) {
    if (now >= late_asked_at_ && now < late_asked_at_ + kLateFor &&
        (!late_class_ || order_.in_turn(*late_class_).jobs > 0)) {
        return late_class_;
    }
    late_asked_at_ = now;
    std::optional<WaitClass>& helped = late_class_;
    helped.reset();
    double worst = 1;
    bool is_below = false;
    for (const WaitClass wait_class : kInOrder) {
        if (is_below) {
            const auto head = order_.first(wait_class);
            const double late = head ? seconds_between(order_.queued_at(head->turn.job.job), now) *
                                           1000.0 /
                                           static_cast<double>(wait_target(wait_class).count())
                                     : 0;
            if (late > worst) {
                worst = late;
                helped = wait_class;
            }
        }
        is_below = is_below || order_.in_turn(wait_class).jobs > 0;
    }
    return helped;
}

// Strictly by class, but while the first of a lower class is past its target, every so often that
// class goes first.
std::array<WaitClass, kWaitClasses> Scheduler::Impl::class_order(Time now) {
    auto classes = kInOrder;
    if (since_ageing_turn_ + 1 >= options_.ageing_turn) {
        if (const auto helped = class_to_help(now)) {
            const auto place = std::find(classes.begin(), classes.end(), *helped);
            std::rotate(classes.begin(), place, place + 1);
        }
    }
    return classes;
}

std::optional<Decision> Scheduler::Impl::next(Time now) {
    // All are asked again where the clock was set back: they wait for times of before.
    const bool is_set_back = now < asked_at_;
    asked_at_ = now;
    while (!wakes_.empty() && (is_set_back || wakes_.begin()->at <= now)) {
        order_.unblock(wakes_.begin()->group);
        wake_of_.erase(wakes_.begin()->group);
        wakes_.erase(wakes_.begin());
    }
    if (order_.size() == 0) {
        dirty_.clear();
        changed_kinds_.clear();
        return std::nullopt;
    }
    if (!machines_.any_free()) {
        note_expected(now);
        return std::nullopt;
    }
    if (!changed_kinds_.empty()) {
        order_.unblock_if([this](Index requirement) {
            return std::any_of(changed_kinds_.begin(), changed_kinds_.end(), [&](Index kind) {
                return !machines_.kinds()[kind].free.empty() &&
                       machines_.can_run(kind, requirement);
            });
        });
        changed_kinds_.clear();
    }
    const auto classes = class_order(now);
    std::optional<Match> put_off;
    for (const WaitClass wait_class : classes) {
        if (order_.in_turn(wait_class).jobs == 0) {
            continue;
        }
        const bool stays = policy_->stays_with_models();
        auto match = stays ? match_warm(wait_class, now, false) : std::nullopt;
        if (!match) {
            match = match_in_turn(wait_class, now, stays);
        }
        if (!match && stays) {
            match = match_warm(wait_class, now, true);
            if (match) {
                // Looking at the whole class is not done again for every job.
                const double load_s = machines_[match->worker].latest_load_s;
                machines_.stay(match->worker, later(now, kLookAgain * load_s), load_s);
            }
        }
        if (!match && has_passed_over_) {
            match = match_in_turn(wait_class, now, false);
        }
        const bool was_helped = wait_class == classes.front() && classes != kInOrder;
        if (match && match->numbers.load_s > 0 && !was_helped) {
            if (auto above = match_above(*match, wait_class, now)) {
                match = std::move(above);
            }
        }
        if (match && stays && match->numbers.load_s > 0 &&
            (put_off || can_be_put_off(*match, wait_class, now))) {
            put_off = put_off ? std::move(put_off) : std::move(match);
            continue;
        }
        if (match) {
            // A lower class that went first because a load was put off has had its turn by that.
            since_ageing_turn_ =
                was_helped || put_off ? 0 : std::min(since_ageing_turn_ + 1, options_.ageing_turn);
            return decide(*match, now);
        }
    }
    if (put_off) {
        since_ageing_turn_ = std::min(since_ageing_turn_ + 1, options_.ageing_turn);
        return decide(*put_off, now);
    }
    dirty_.clear();
    note_expected(now);
    return std::nullopt;
}

// Near full load every load takes time from all classes, so that loads for jobs that have just come
// would make the lower ones wait without end.
bool Scheduler::Impl::can_be_put_off(const Match& match, WaitClass wait_class, Time now) {
    const double most_s = std::min(
        kPartOfTarget * seconds_between(Time{}, Time{} + wait_target(wait_class)),
        options_.stay_factor * match.numbers.load_s
    );
    const auto is_recent = [&](const JobId& job) {
        return seconds_between(order_.queued_at(job), now) < most_s;
    };
    const auto first = order_.first(wait_class);
    return is_recent(match.job) && (!first || is_recent(first->turn.job.job));
}

// No job of a higher class waits for a worker that has its models while a free one loads them for a
// lower one. That happens because the queue of a lower class is the longer one: it outweighs a load
// sooner. Where the free one's own models are wanted, every load is dear and the higher job is
// better off with its warm worker.
std::optional<Scheduler::Impl::Match> Scheduler::Impl::match_above(
    const Match& lower, WaitClass wait_class, Time now
) {
    const Index anchor = profiles_[lower.profile].anchor;
    std::optional<Match> match;
    if (is_wanted(machines_[lower.worker], WaitClass::batch)) {
        return match;
    }
    for (const WaitClass above : kInOrder) {
        if (match || above >= wait_class) {
            break;
        }
        order_.visit_anchor(above, anchor, [&](const Order::Head& head) {
            const bool saves_no_load =
                machines_.load_s(machines_[lower.worker], order_.group(head.group).profile) <=
                lower.numbers.load_s;
            match = saves_no_load ? weigh(head, now, lower.worker).match : std::nullopt;
            return match ? Order::Visit::stop : Order::Visit::go_on;
        });
    }
    if (match) {
        match->other_worker = lower.other_worker;
        match->other = lower.other;
    }
    return match;
}

// A worker that has just become free goes on with what it has loaded, for a while also when older
// jobs of the class wait for other models.
std::optional<Scheduler::Impl::Match> Scheduler::Impl::match_warm(
    WaitClass wait_class, Time now, bool stays_longer
) {
    for (std::size_t i = 0; i < dirty_.size();) {
        const Index worker = dirty_[i];
        const Machines::Machine& machine = machines_[worker];
        if (!machine.has_room() || !is_wanted(machine, WaitClass::batch)) {
            dirty_[i] = dirty_.back();
            dirty_.pop_back();
            continue;
        }
        if (stays_longer || now < machine.stays_until) {
            if (auto match = best_warm(worker, wait_class, now)) {
                return match;
            }
        }
        ++i;
    }
    return std::nullopt;
}

// Of the jobs that need what the worker has loaded, or nothing at all, the one whose turn it is.
std::optional<Scheduler::Impl::Match> Scheduler::Impl::best_warm(
    Index worker, WaitClass wait_class, Time now
) {
    std::optional<Turn> best;
    std::optional<Match> match;
    const auto consider = [&](const Order::Head& head) {
        if (best && *best < head.turn) {
            return Order::Visit::stop;
        }
        auto weighed = weigh(head, now, worker);
        if (!weighed.match) {
            return Order::Visit::go_on;
        }
        best = head.turn;
        match = std::move(weighed.match);
        return Order::Visit::stop;
    };
    for (const Machines::Loaded& loaded : machines_[worker].loaded) {
        if (order_.in_turn(wait_class, loaded.model).jobs > 0) {
            order_.visit_anchor(wait_class, loaded.model, consider);
        }
    }
    if (order_.in_turn(wait_class, 0).jobs > 0) {
        order_.visit_anchor(wait_class, 0, consider);
    }
    return match;
}

// The first in order that can start. Where models have to be loaded for it, it may be passed over
// for one that came not much later and for which more jobs wait.
std::optional<Scheduler::Impl::Match> Scheduler::Impl::match_in_turn(
    WaitClass wait_class, Time now, bool may_pass_over
) {
    has_passed_over_ = false;
    std::optional<Match> match;
    std::optional<Turn> first;
    int looked_at = 0;
    order_.visit(wait_class, [&](const Order::Head& head) {
        Weighed weighed = weigh(head, now, std::nullopt);
        if (weighed.match && may_pass_over && is_kept_by_own(*weighed.match, head)) {
            has_passed_over_ = true;
        } else if (weighed.match) {
            if (weighed.match->numbers.load_s <= 0 || !may_pass_over) {
                // Unless the worker is to leave what it has for an older job.
                if (!match || match->worker != weighed.match->worker) {
                    match = std::move(weighed.match);
                }
                return Order::Visit::stop;
            }
            if (!match) {
                first = head.turn;
                match = std::move(weighed.match);
            } else if (!is_about_equal(*first, head.turn, match->numbers.load_s)) {
                return Order::Visit::stop;
            } else if (weighed.match->queue_s > match->queue_s) {
                match = std::move(weighed.match);
            }
        } else {
            if (weighed.deferred) {
                remember_to_ask(head.group, std::move(*weighed.deferred));
                return Order::Visit::defer;
            }
            return Order::Visit::block;
        }
        return ++looked_at < kQueuesLookedAt ? Order::Visit::go_on : Order::Visit::stop;
    });
    return match;
}

// Neither came so much later nor has had so much more that it could not go first to save a load.
bool Scheduler::Impl::is_about_equal(const Turn& first, const Turn& other, double load_s) const {
    const double allowed_s = options_.stay_factor * load_s;
    return other.flow.tenant_time - first.flow.tenant_time <= allowed_s &&
           static_cast<double>(other.job.order - first.job.order) <= 1000 * allowed_s;
}

void Scheduler::Impl::remember_to_ask(Index group, Deferred deferred) {
    if (const auto known = wake_of_.find(group); known != wake_of_.end()) {
        wakes_.erase(Wake{known->second.ask_again, group});
    }
    wakes_.insert(Wake{deferred.ask_again, group});
    wake_of_[group] = std::move(deferred);
}

// A worker whose own models are in demand gives them up only for what would otherwise be passed
// over for too long.
bool Scheduler::Impl::is_kept_by_own(const Match& match, const Order::Head& head) {
    const Machines::Machine& machine = machines_[match.worker];
    const WaitClass wait_class = order_.group(head.group).wait_class;
    if (match.numbers.load_s <= 0 || !is_wanted(machine, wait_class)) {
        return false;
    }
    std::optional<Turn> own;
    for (const Machines::Loaded& loaded : machine.loaded) {
        order_.visit_anchor(wait_class, loaded.model, [&own](const Order::Head& first) {
            own = !own || first.turn < *own ? first.turn : *own;
            return Order::Visit::stop;
        });
    }
    return own && is_about_equal(head.turn, *own, match.numbers.load_s);
}

// Whether jobs wait for what the worker has loaded.
bool Scheduler::Impl::is_wanted(const Machines::Machine& machine, WaitClass lowest) const {
    for (const Machines::Loaded& loaded : machine.loaded) {
        for (const WaitClass wait_class : kInOrder) {
            if (wait_class <= lowest && order_.in_turn(wait_class, loaded.model).jobs > 0) {
                return true;
            }
        }
    }
    return false;
}

}  // namespace comfyd::scheduler
