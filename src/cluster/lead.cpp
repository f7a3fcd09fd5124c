#include "cluster/lead.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/log.hpp"
#include "base/on_executor.hpp"

namespace comfyd::cluster {

Lead::Lead(
    Executor executor,
    Leases& leases,
    const BootClock& clock,
    std::string domain,
    NodeId node,
    LeadHooks hooks
)
    : executor_(executor),
      leases_(leases),
      clock_(clock),
      domain_(std::move(domain)),
      node_(node),
      hooks_(std::move(hooks)),
      came_(executor),
      has_ended_(executor),
      tasks_(executor) {}

Lead::~Lead() = default;

void Lead::start() {
    COMFYD_ON(executor_);
    tasks_.spawn("lead", run());
}

Task<> Lead::resign() {
    COMFYD_ON(executor_);
    machine_.stop();
    look();
    co_await tasks_.join();
}

void Lead::let_go() {
    COMFYD_ON(executor_);
    machine_.let_go();
    look();
}

void Lead::may_be_free() {
    COMFYD_ON(executor_);
    machine_.may_be_free();
    look();
}

void Lead::session_lost() {
    COMFYD_ON(executor_);
    machine_.session_lost();
    look();
}

void Lead::refused(std::uint64_t epoch) {
    COMFYD_ON(executor_);
    machine_.refused(epoch);
    look();
}

void Lead::look() {
    // At once, and not when run() has its turn: whoever sends asks it in between.
    if (trust_) {
        trust_->set(machine_.trusted_until().value_or(Millis::min()));
    }
    came_.notify();
}

Task<> Lead::run() {
    for (;;) {
        const Millis now = clock_.now();
        const LeadMachine::Action action = machine_.next(now);
        if (const auto* wait = std::get_if<LeadMachine::Wait>(&action)) {
            const Millis pause =
                wait->until ? std::max(*wait->until - now, Millis(0)) : Millis::max();
            co_await came_.wait_for(pause);
        } else if (std::holds_alternative<LeadMachine::Rest>(action)) {
            co_return;
        } else {
            act(action);
        }
    }
}

void Lead::act(const LeadMachine::Action& action) {
    if (std::holds_alternative<LeadMachine::Take>(action)) {
        tasks_.spawn("take the lead", take());
    } else if (const auto* renewal = std::get_if<LeadMachine::Renew>(&action)) {
        tasks_.spawn("renew the lead", renew(renewal->term));
    } else if (const auto* resignation = std::get_if<LeadMachine::Resign>(&action)) {
        tasks_.spawn("resign the lead", give_back(resignation->term));
    } else if (const auto* begin = std::get_if<LeadMachine::Begin>(&action)) {
        trust_ = std::make_shared<Trust>(clock_);
        look();
        tasks_.spawn("term of a leader", live_through(begin->taken, trust_));
    } else if (const auto* end = std::get_if<LeadMachine::StepDown>(&action)) {
        look();
        trust_.reset();
        ended_ = end->why;
        has_ended_.notify();
    }
}

Task<> Lead::take() {
    const auto answer = co_await leases_.take(domain_, node_);
    machine_.took(answer, clock_.now());
    look();
}

Task<> Lead::renew(jobs::Term term) {
    const std::uint64_t queued = hooks_.queued ? hooks_.queued() : 0;
    const auto answer = co_await leases_.renew(std::move(term), queued);
    if (!answer) {
        log::warning(
            "the lead could not be renewed",
            {{"domain", domain_}, {"error", answer.error().message}}
        );
    }
    machine_.renewed(answer, clock_.now());
    look();
}

Task<> Lead::give_back(jobs::Term term) {
    const auto answer = co_await leases_.resign(std::move(term));
    if (!answer) {
        log::warning(
            "nobody could be told that the lead is free; others wait until the lease has run out",
            {{"domain", domain_}, {"error", answer.error().message}}
        );
    }
    machine_.resigned(clock_.now());
    look();
}

Task<> Lead::live_through(Taken taken, std::shared_ptr<const Trust> trust) {
    counts_.taken += 1;
    counts_.epoch = taken.term.epoch;
    log::info(
        "leads",
        {{"domain", domain_}, {"epoch", taken.term.epoch}, {"quiet_in_ms", taken.quiet_in.count()}}
    );
    co_await hooks_.on_taken(std::move(taken), std::move(trust));
    while (!ended_) {
        co_await has_ended_.wait();
    }
    const LeadEnd why = *std::exchange(ended_, std::nullopt);
    count(why);
    log::info(
        "leads no more", {{"domain", domain_}, {"epoch", counts_.epoch}, {"why", to_string(why)}}
    );
    co_await hooks_.on_lost(why);
    machine_.stepped_down(clock_.now());
    look();
}

void Lead::count(LeadEnd why) {
    switch (why) {
        case LeadEnd::taken_over:
            counts_.taken_over += 1;
            break;
        case LeadEnd::unconfirmed:
            counts_.unconfirmed += 1;
            break;
        case LeadEnd::session_lost:
            counts_.session_lost += 1;
            break;
        case LeadEnd::resigned:
            counts_.resigned += 1;
            break;
    }
}

}  // namespace comfyd::cluster
