// Models that are loaded ahead of jobs: a prompt of a workflow's loaders alone, which ComfyUI runs
// like any other. A job that comes meanwhile waits behind it, for the rest of one file at most
// where the server can be told to stop this very prompt.
#include <boost/asio/post.hpp>

#include "base/cancellable_hop.hpp"
#include "base/deadline.hpp"
#include "base/log.hpp"
#include "base/on_executor.hpp"
#include "fleet/comfy_worker.hpp"
#include "fleet/worker_classes.hpp"
#include "workflow/plan/loaders.hpp"

namespace comfyd::fleet {
namespace {

// In a row, until it is known that a prompt is neither there nor done.
constexpr int kAbsencesGone = 2;

}  // namespace

Task<Result<>> ComfyMachine::warm(std::shared_ptr<WarmOrder> order) {
    COMFYD_ON(parts_.executor);
    const auto self = shared_from_this();
    if (known_.state != State::up || !known_.warms) {
        co_return fail(Code::worker_unavailable, "worker " + id_ + " is not up");
    }
    json::object prompt =
        co_await parts_.pool.run([order, classes = WorkerClasses(known_.classes)] {
            const auto workflow = json::parse_object(order->workflow);
            return workflow ? workflow::loaders_of(*workflow, classes) : json::object();
        });
    if (prompt.empty()) {
        co_return fail(Code::not_found, "the workflow has no loaders that are known");
    }
    if (order->stop.reason) {
        co_return fail(*order->stop.reason, "a job came first");
    }
    const std::string id = Uuid::make(parts_.clock.now()).to_string();
    auto sent = co_await send_own(id, std::move(prompt));
    if (!sent) {
        co_return sent;
    }
    auto done = co_await follow_warming(order, id);
    co_return done;
}

// Looks at the history, and at the queue where that knows nothing.
Task<Result<>> ComfyMachine::follow_warming(std::shared_ptr<WarmOrder> order, std::string id) {
    const Deadline deadline = Deadline::in(order->patience);
    const Deadline grace = Deadline::in(order->patience + options_.cancel_grace);
    int absences = 0;
    bool is_called_back = false;
    while (absences < kAbsencesGone) {
        const bool shall_end = order->stop.reason || deadline.has_passed();
        if (shall_end && !is_called_back) {
            is_called_back = true;
            auto ended = co_await end_warming(id);
            if (!ended) {
                orphans_.insert(id);
                co_return ended;
            }
        }
        auto entry = co_await link_.client.history(id);
        if (entry && *entry && (*entry)->success) {
            co_return Result<>();
        }
        if (entry && *entry) {
            const Code code = order->stop.reason ? *order->stop.reason
                              : is_called_back   ? Code::execution_timeout
                                                 : Code::node_execution_error;
            co_return fail(code, "worker " + id_ + " did not load models ahead of jobs");
        }
        auto queue = co_await link_.client.queue();
        if (!queue && known_.state != State::up) {
            orphans_.insert(id);
            co_return fail(Code::worker_lost, "worker " + id_ + " is down");
        }
        absences = queue && !queue->contains(id) ? absences + 1 : 0;
        if (grace.has_passed()) {
            const std::string reason = "prompt " + id + ", which loads models, does not stop";
            log::warning("a prompt does not stop", {{"worker", id_}, {"prompt", id}});
            block({.reason = reason, .prompt_id = id});
            co_return fail(Code::execution_timeout, reason);
        }
        co_await order->stop.requested.wait_for(options_.cancel_poll);
        const bool stop = co_await is_cancelled();
        if (stop) {
            co_return fail(Code::cancelled, "nobody waits for the models any more");
        }
    }
    co_return fail(order->stop.reason.value_or(Code::worker_lost), "the prompt is gone");
}

// Old servers stop whatever runs, and by now that may be a job: what they load they load to its
// end.
Task<Result<>> ComfyMachine::end_warming(std::string id) {
    if (auto may = may_send(options_.mandate, current(options_.mandate)); !may) {
        co_return may;
    }
    auto deleted = co_await link_.client.delete_queued(id);
    if (deleted && comfy::interrupts_by_id(known_.stats.version)) {
        deleted = co_await link_.client.interrupt(id);
    }
    co_return deleted;
}

Task<Result<>> ComfyWorker::warm(std::string workflow, Millis patience) {
    COMFYD_ON(parts_.core);
    if (!available() || !warming_.expired()) {
        co_return fail(Code::worker_unavailable, "worker " + config_.id + " takes nothing now");
    }
    auto order = std::make_shared<WarmOrder>(machine_->executor(), std::move(workflow), patience);
    warming_ = order;
    auto warmed = co_await await_cancellable_on(machine_->executor(), machine_->warm(order));
    co_return warmed;
}

void ComfyWorker::stop_warming() {
    COMFYD_ON(parts_.core);
    if (auto order = warming_.lock()) {
        boost::asio::post(machine_->executor(), [order = std::move(order)] {
            order->stop.stop(Code::cancelled);
        });
    }
}

}  // namespace comfyd::fleet
