#include <algorithm>
#include <cctype>
#include <utility>

#include "base/log.hpp"
#include "comfy/members.hpp"
#include "fleet/comfy_attempt.hpp"
#include "jobs/cause.hpp"

namespace comfyd::fleet {
namespace {

constexpr int kRefusalsLost = 3;
constexpr int kHastyLooksMax = 6;
constexpr int kAbsencesLost = 2;

// A process that cannot use its GPU any more is as good as lost, and nobody runs again there.
Code code_of(jobs::Cause cause) {
    switch (cause) {
        case jobs::Cause::out_of_memory:
            return Code::out_of_memory;
        case jobs::Cause::cuda_fault:
            return Code::worker_lost;
        default:
            return Code::node_execution_error;
    }
}

json::object because(jobs::Cause cause) {
    json::object details;
    details[jobs::kCauseKey] = to_string(cause);
    return details;
}

std::string without_trailing_space(std::string text) {
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) {
        text.pop_back();
    }
    return text;
}

Error to_error(const comfy::ExecutionError& error) {
    json::array traceback;
    for (const std::string& line : error.traceback) {
        traceback.emplace_back(line);
    }
    const jobs::Cause cause =
        jobs::cause_of_exception(error.exception_type, error.exception_message);
    json::object details = because(cause);
    details["node_id"] = error.node_id;
    details["node_type"] = error.node_type;
    details["exception_type"] = error.exception_type;
    details["exception_message"] = error.exception_message;
    details["traceback"] = std::move(traceback);
    details["executed"] = json::array(error.executed.begin(), error.executed.end());
    details["current_inputs"] = error.current_inputs;
    details["current_outputs"] = error.current_outputs;
    const std::string where = "node " + error.node_id + " (" + error.node_type + "): ";
    const std::string what =
        error.exception_type + ": " + without_trailing_space(error.exception_message);
    workflow::hide_private_folders(details);
    return {code_of(cause), workflow::without_private_folders(where + what), std::move(details)};
}

}  // namespace

Task<Result<bool>> ComfyAttempt::look_in_history() {
    const std::uint64_t socket = link_.socket;
    auto entry = co_await link_.client.history(prompt_id_);
    if (!entry) {
        co_return fail(std::move(entry.error()));
    }
    if (entry->has_value()) {
        entry_ = std::move(**entry);
        told_over_ = socket;
    }
    co_return entry_.has_value();
}

// The worker moves a prompt from the queue to the history in one step: who looks in this order
// cannot miss it.
Task<Result<ComfyAttempt::Place>> ComfyAttempt::look(bool history_first) {
    if (history_first) {
        auto finished = co_await look_in_history();
        if (!finished) {
            co_return fail(std::move(finished.error()));
        }
        if (*finished) {
            co_return Place::finished;
        }
    }
    auto queue = co_await link_.client.queue();
    if (!queue) {
        co_return fail(std::move(queue.error()));
    }
    queue_idle_ = queue->running.empty();
    if (queue->contains(prompt_id_)) {
        co_return queue->is_running(prompt_id_) ? Place::running : Place::pending;
    }
    auto finished = co_await look_in_history();
    if (!finished) {
        co_return fail(std::move(finished.error()));
    }
    co_return *finished ? Place::finished : Place::absent;
}

Task<Result<ComfyAttempt::Place>> ComfyAttempt::locate() {
    heard();
    int absences = 0;
    while (true) {
        auto place = co_await look(false);
        if (place) {
            heard();
            absences += *place == Place::absent ? 1 : 0;
            if (*place != Place::absent || absences >= kAbsencesLost) {
                co_return *place;
            }
        } else if (place.error().code == Code::cancelled) {
            co_return fail(std::move(place.error()));
        } else if (auto lost = judge_silence(place.error())) {
            co_return fail(std::move(*lost));
        }
        const bool waited = co_await sleep_for(place ? options_.settle : options_.poll_interval);
        if (!waited) {
            co_return fail(Code::cancelled, "the run was stopped");
        }
    }
}

Task<Result<>> ComfyAttempt::follow() {
    heard();
    last_look_ = Ticks::now();
    bool at_end = false;
    while (!entry_) {
        const auto now = Ticks::now();
        if (next_look() > now) {
            co_await wake_.wait_for(std::chrono::ceil<Millis>(next_look() - now));
            const bool stop = co_await is_cancelled();
            if (stop) {
                co_return fail(Code::cancelled, "the run was stopped");
            }
            continue;
        }
        at_end = end_marked_ || ending_at_.has_value();
        if (end_marked_ && take_told_end()) {
            break;
        }
        end_marked_ = look_now_ = false;
        ending_at_.reset();
        auto place = co_await look(at_end);
        last_look_ = Ticks::now();
        looks_in_silence_ = place ? looks_in_silence_ + 1 : 0;
        hasty_looks_ += at_end || hasty_looks_ > 0 ? 1 : 0;
        if (place) {
            heard();
            auto verdict = judge(*place);
            if (!verdict) {
                co_return verdict;
            }
        } else if (place.error().code == Code::cancelled) {
            co_return fail(std::move(place.error()));
        } else if (auto lost = judge_silence(place.error())) {
            co_return fail(std::move(*lost));
        }
    }
    if (!at_end) {
        co_await hear_the_rest();
    }
    co_return Result<>();
}

bool ComfyAttempt::take_told_end() {
    if (auto told = told_run_.take_success()) {
        entry_ = std::move(*told);
        told_over_ = link_.socket;
    }
    return entry_.has_value();
}

// Found by a look: the last messages may still be on their way, and listeners want them all. The
// worker has sent them before, so of a run whose messages come, that of its end comes, too, however
// long an overloaded machine is silent in between. Of others none may ever come: they are behind
// what its socket still brings, of whichever prompt, or there are none.
Task<> ComfyAttempt::hear_the_rest() {
    constexpr int kSettlesMax = 10;
    const auto found_at = Ticks::now();
    look_now_ = false;  // set when the socket is lost
    bool goes_on = seen_message_ || !reattached_;
    while (goes_on && !end_marked_ && !ending_at_ && !look_now_) {
        auto until = found_at + kSettlesMax * options_.settle;
        if (!seen_message_) {
            until = std::min(until, link_.socket_heard_at + options_.settle);
        }
        const auto now = Ticks::now();
        if (now >= until) {
            break;
        }
        co_await wake_.wait_for(std::chrono::ceil<Millis>(until - now));
        const bool stop = co_await is_cancelled();
        goes_on = !stop;
    }
}

// When to look, unless something happens before: soon after a sign of the end, at times otherwise.
// A worker that tells of its steps is not asked what it does.
ComfyAttempt::Ticks::time_point ComfyAttempt::next_look() const {
    if (end_marked_ || look_now_) {
        return Ticks::time_point::min();
    }
    constexpr int kDoublingsMax = 10;
    const auto pause = std::min(
        options_.poll_interval_slow,
        options_.poll_interval * (1 << std::min(looks_in_silence_, kDoublingsMax))
    );
    auto at = std::max(last_look_, last_message_) + pause;
    if (absences_ > 0) {
        at = std::min(at, last_look_ + options_.settle);
    }
    if (hasty_looks_ > 0 && hasty_looks_ <= kHastyLooksMax) {
        at = std::min(at, last_look_ + options_.end_grace * (1 << (hasty_looks_ - 1)));
    }
    if (ending_at_) {
        at = std::min(at, *ending_at_ + options_.end_grace);
    }
    return at;
}

Result<> ComfyAttempt::judge(Place place) {
    if (place == Place::running) {
        meter_->started(seconds_now());
    }
    absences_ = place == Place::absent ? absences_ + 1 : 0;
    if (absences_ >= kAbsencesLost) {
        return fail(
            Code::worker_lost,
            "the worker does not know the prompt any more; it must have restarted"
        );
    }
    const auto now = Ticks::now();
    // Of one that never told anything it is not known whether its messages come at all.
    if (place == Place::running && seen_message_ && options_.silent_after > Millis(0) &&
        now - last_message_ >= options_.silent_after) {
        return fail(
            Code::worker_lost,
            "the run has said nothing for " +
                std::to_string(
                    std::chrono::floor<std::chrono::seconds>(options_.silent_after).count()
                ) +
                " s: it hangs",
            because(jobs::Cause::hung)
        );
    }
    if (place != Place::pending || !queue_idle_) {
        unstarted_since_.reset();
        return {};
    }
    if (!unstarted_since_) {
        unstarted_since_ = now;
    }
    if (now - *unstarted_since_ < options_.dead_after) {
        return {};
    }
    // The prompt stays in the queue: while it waits there, it shows that the worker is still dead.
    blockage_ =
        Blockage{"its execution thread is dead: prompts wait and none is started; restart it", ""};
    return fail(
        Code::worker_lost,
        "the worker accepts prompts and does not start them; it must be restarted",
        because(jobs::Cause::worker_refused)
    );
}

std::optional<Error> ComfyAttempt::judge_silence(const Error& error) {
    const auto now = Ticks::now();
    if (!comfy::is_refused(error)) {
        silence_.refusals = 0;
    } else if (silence_.refusals++ == 0) {
        silence_.refused_since = now;
    }
    const bool gone =
        silence_.refusals >= kRefusalsLost && now - silence_.refused_since >= options_.refused_span;
    if (!gone && now - silence_.since < options_.lost_after) {
        return std::nullopt;
    }
    orphaned_ = true;
    return Error(Code::worker_lost, "the worker cannot be reached any more: " + error.message);
}

void ComfyAttempt::heard() {
    silence_.since = Ticks::now();
    silence_.refusals = 0;
}

Result<> ComfyAttempt::read_ending() const {
    if (entry_->success) {
        return {};
    }
    if (entry_->error) {
        return fail(to_error(*entry_->error));
    }
    if (entry_->interrupted) {
        return fail(
            Code::worker_lost,
            "the run was interrupted on the worker by somebody else",
            because(jobs::Cause::interrupted)
        );
    }
    return fail(
        Code::node_execution_error, "the worker says that the run failed and gives no reason"
    );
}

}  // namespace comfyd::fleet
