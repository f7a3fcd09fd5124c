// How a prompt is taken back from the worker: by its attempt, wherever it is, or only as long as it
// waits.
#include <algorithm>
#include <utility>

#include "base/deadline.hpp"
#include "base/log.hpp"
#include "fleet/comfy_attempt.hpp"
#include "fleet/comfy_machine.hpp"

namespace comfyd::fleet {
namespace {

constexpr Millis kInterruptAgain{2'000};
constexpr int kRefusalsGone = 3;

}  // namespace

// Takes the prompt off the worker and waits until it is gone, but no longer than cancel_grace,
// whatever the worker does with our questions.
Task<> ComfyAttempt::withdraw() {
    if (!sent_ && !sought_) {
        co_return;
    }
    if (link_.is_engine && sent_ && !accepted_ && !seen_message_) {
        // It may be taken after any look for it, and then nobody would stop it.
        blockage_ = Blockage{"a submission to it was broken off", ""};
        co_return;
    }
    orphaned_ = true;
    const Deadline deadline = Deadline::in(options_.cancel_grace);
    TaskGroup work(link_.executor);
    work.spawn("withdraw", push_until_gone());
    bool abandoned = false;
    while (orphaned_ && !abandoned && !deadline.has_passed()) {
        co_await gone_.wait_for(deadline.left());
        abandoned = co_await is_cancelled();
    }
    work.cancel();
    while (work.size() > 0) {
        co_await work.join();
    }
    if (!orphaned_ || abandoned) {
        co_return;
    }
    log::warning(
        "a prompt does not stop",
        {{"job", assignment_.job}, {"worker", link_.worker_id}, {"prompt", prompt_id_}}
    );
    blockage_ = Blockage{"prompt " + prompt_id_ + " does not stop", prompt_id_};
}

// Until it is cancelled, or the worker has let go of the prompt: then it is no orphan any more.
Task<> ComfyAttempt::push_until_gone() {
    Ticks::time_point interrupted_at = Ticks::now() - kInterruptAgain;
    int absences = 0;
    int refusals = 0;
    bool abandoned = false;
    while (!abandoned) {
        auto place = co_await push_out(interrupted_at);
        if (!place && place.error().code == Code::lead_lost) {
            lead_lost_ = std::move(place.error());
            orphaned_ = false;  // another node looks after it
            gone_.notify();
            co_return;
        }
        refusals = !place && comfy::is_refused(place.error()) ? refusals + 1 : 0;
        absences = place && *place == Place::absent ? absences + 1 : 0;
        // A submission whose answer never came may still arrive: that takes two looks.
        if (refusals >= kRefusalsGone || absences >= (accepted_ ? 1 : 2)) {
            orphaned_ = false;
            gone_.notify();
            co_return;
        }
        if (!place || *place != Place::pending) {
            co_await wake_.wait_for(absences > 0 ? options_.settle : options_.cancel_poll);
        }
        abandoned = co_await is_cancelled();
    }
}

// One look, and what it calls for. Old workers interrupt whatever runs, whichever prompt they are
// told: so only ours.
Task<Result<ComfyAttempt::Place>> ComfyAttempt::push_out(Ticks::time_point& interrupted_at) {
    auto queue = co_await link_.client.queue();
    if (!queue) {
        co_return fail(std::move(queue.error()));
    }
    if (queue->is_pending(prompt_id_)) {
        accepted_ = true;
        if (auto may = may_send(); !may) {
            co_return fail(std::move(may.error()));
        }
        auto deleted = co_await link_.client.delete_queued(prompt_id_);
        if (!deleted) {
            co_return fail(std::move(deleted.error()));
        }
        co_return Place::pending;
    }
    if (!queue->is_running(prompt_id_)) {
        co_return Place::absent;
    }
    accepted_ = true;
    if (Ticks::now() - interrupted_at >= kInterruptAgain) {
        if (auto may = may_send(); !may) {
            co_return fail(std::move(may.error()));
        }
        interrupted_at = Ticks::now();
        auto interrupted = co_await link_.client.interrupt(prompt_id_);
        if (!interrupted) {
            co_return fail(std::move(interrupted.error()));
        }
    }
    co_return Place::running;
}

void ComfyMachine::give_back_waiting(std::shared_ptr<AttemptOrder> order, const PromptId& prompt) {
    COMFYD_ON(parts_.executor);
    loops_.spawn("prompt given back", take_out_of_queue(std::move(order), prompt.to_string()));
}

bool ComfyMachine::may_wait_still(const std::string& prompt) const {
    const auto attempt = attempts_.find(prompt);
    return attempt != attempts_.end() && !attempt->second->has_begun();
}

Task<> ComfyMachine::take_out_of_queue(std::shared_ptr<AttemptOrder> order, std::string prompt) {
    bool goes_on = may_wait_still(prompt);
    while (goes_on) {
        auto taken = co_await take_if_pending(prompt);
        if (taken && *taken) {
            order->stop.stop(Code::worker_unavailable);
            co_return;
        }
        // Otherwise it is not there yet, or nobody knows.
        goes_on = false;
        if (!taken) {  // not there yet, or nobody knows
            const bool waited = co_await sleep_for(options_.settle);
            goes_on = waited && may_wait_still(prompt);
        }
    }
}

// False: it has begun. The worker moves a prompt from the queue to the history in one step: one
// that was deleted is in neither.
Task<Result<bool>> ComfyMachine::take_if_pending(std::string prompt) {
    const auto unknown = [] {
        return fail(Code::not_found, "the worker does not have the prompt yet");
    };
    auto queue = co_await link_.client.queue();
    if (!queue) {
        co_return fail(std::move(queue.error()));
    }
    if (!queue->is_pending(prompt)) {
        co_return queue->is_running(prompt) ? Result<bool>(false) : unknown();
    }
    if (auto may = may_send(options_.mandate, current(options_.mandate)); !may) {
        co_return fail(std::move(may.error()));
    }
    auto deleted = co_await link_.client.delete_queued(prompt);
    if (!deleted) {
        co_return fail(std::move(deleted.error()));
    }
    auto after = co_await link_.client.queue();
    if (!after) {
        co_return fail(std::move(after.error()));
    }
    if (after->is_running(prompt) || after->is_pending(prompt)) {
        co_return false;
    }
    auto entry = co_await link_.client.history(prompt);
    if (!entry) {
        co_return fail(std::move(entry.error()));
    }
    co_return !entry->has_value();
}

}  // namespace comfyd::fleet
