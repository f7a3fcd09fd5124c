// Whether prompts run on a server that answers: after a fault of its GPU everything there goes on
// answering, and nothing runs any more. A small prompt of our own shows it.
#include <utility>

#include "base/crypto.hpp"
#include "base/deadline.hpp"
#include "base/log.hpp"
#include "base/on_executor.hpp"
#include "comfy/fence.hpp"
#include "fleet/comfy_machine.hpp"

namespace comfyd::fleet {
namespace {

constexpr int kAbsencesGone = 2;

// Of classes that every ComfyUI has, and with a colour of its own: what was kept of another one
// must not answer it.
json::object make_probe() {
    std::uint32_t colour = 0;
    random_bytes(&colour, sizeof colour);
    return {
        {"1",
         json::object{
             {"class_type", "EmptyImage"},
             {"inputs",
              json::object{
                  {"width", 8}, {"height", 8}, {"batch_size", 1}, {"color", colour & 0xFFFFFFU}
              }},
         }},
        {"2",
         json::object{
             {"class_type", "PreviewImage"},
             {"inputs", json::object{{"images", json::array{"1", 0}}}},
         }},
    };
}

}  // namespace

void ComfyMachine::block(Blockage blockage) {
    blockage_ = std::move(blockage);
    known_.is_quarantined = true;
    go_down(blockage_->reason);
    parts_.end_process();
}

void ComfyMachine::unblock() {
    blockage_.reset();
    known_.is_quarantined = false;
}

void ComfyMachine::quarantine(std::string reason, Millis rest) {
    COMFYD_ON(parts_.executor);
    probe_at_ = Ticks::now() + rest;
    block({.reason = std::move(reason), .prompt_id = {}, .needs_probe = true});
    check_soon();
}

Task<> ComfyMachine::free_after_failure() {
    auto freed = co_await free_memory(true, true);
    if (!freed) {
        log::info(
            "a worker that ran out of memory did not give any back",
            {{"worker", id_}, {"error", freed.error().message}}
        );
    }
}

// A prompt that is nobody's job.
Task<Result<>> ComfyMachine::send_own(std::string id, json::object prompt) {
    const MandatePtr mandate = current(options_.mandate);
    if (auto may = may_send(options_.mandate, mandate); !may) {
        co_return may;
    }
    json::object extra;
    if (mandate) {
        extra[comfy::kLeadKey] = comfy::LeadMark{mandate->domain, mandate->epoch}.to_json();
    }
    auto sent = co_await link_.client.submit(
        comfy::Submission{id, link_.client_id, json::serialize(prompt), std::move(extra), {}}
    );
    co_return sent ? Result<>() : fail(std::move(sent.error()));
}

// The memory is given back first: that goes through the GPU, which the prompt may not.
Task<Result<>> ComfyMachine::send_probe() {
    auto freed = co_await free_memory(true, true);
    if (!freed) {
        co_return freed;
    }
    const std::string id = Uuid::make(parts_.clock.now()).to_string();
    auto sent = co_await send_own(id, make_probe());
    if (!sent) {
        co_return sent;
    }
    blockage_->probe_id = id;
    co_return Result<>();
}

// One that does not run stays in the queue, and is looked for again the next time.
Task<Result<>> ComfyMachine::probe() {
    if (Ticks::now() < probe_at_) {
        co_return fail(Code::worker_unavailable, blockage_->reason);
    }
    if (blockage_->probe_id.empty()) {
        auto sent = co_await send_probe();
        if (!sent) {
            co_return sent;
        }
    }
    const std::string id = blockage_->probe_id;
    const Deadline deadline = Deadline::in(options_.probe_wait);
    int absences = 0;
    while (!deadline.has_passed() && absences < kAbsencesGone) {
        auto entry = co_await link_.client.history(id);
        if (!entry) {
            co_return fail(std::move(entry.error()));
        }
        if (*entry) {
            // Another failure may have come to the same end meanwhile.
            const bool is_ours = std::exchange(blockage_->probe_id, {}) == id;
            if (!is_ours || !(*entry)->success) {
                co_return fail(
                    Code::worker_unavailable, blockage_->reason + "; a test prompt fails there"
                );
            }
            log::info("a worker runs prompts again", {{"worker", id_}});
            unblock();
            co_return Result<>();
        }
        auto queue = co_await link_.client.queue();
        if (!queue) {
            co_return fail(std::move(queue.error()));
        }
        absences = queue->contains(id) ? 0 : absences + 1;
        const bool waited = co_await sleep_for(options_.cancel_poll);
        if (!waited) {
            co_return fail(Code::cancelled, "the worker is not watched any more");
        }
    }
    if (absences >= kAbsencesGone) {
        blockage_->probe_id.clear();  // it was started anew meanwhile
    }
    co_return fail(
        Code::worker_unavailable, blockage_->reason + "; a test prompt does not run there"
    );
}

}  // namespace comfyd::fleet
