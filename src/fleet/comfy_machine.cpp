#include "fleet/comfy_machine.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "base/on_executor.hpp"
#include "comfy/members.hpp"
#include "jobs/cause.hpp"
#include "jobs/give_back.hpp"

namespace comfyd::fleet {
namespace {

std::string new_client_id(const Clock& clock) {
    return "comfyd-" + Uuid::make(clock.now()).to_string();
}

// The worker lacks a node class that we thought it had. Servers before 0.12 have no word of their
// own for it.
bool names_missing_class(const Error& error) {
    const json::object* answer = comfy::object_of(error.details, "error");
    const std::string type = answer == nullptr ? "" : comfy::text_of(*answer, "type");
    return error.code == Code::worker_rejected &&
           (type == "missing_node_type" || type == "invalid_prompt");
}

}  // namespace

ComfyMachine::Hearing::Hearing(ComfyMachine& machine, ComfyAttempt& attempt)
    : machine_(machine), prompt_id_(attempt.prompt_id()) {
    machine_.attempts_[prompt_id_] = &attempt;
}

ComfyMachine::Hearing::~Hearing() {
    machine_.attempts_.erase(prompt_id_);
}

ComfyMachine::ComfyMachine(const WorkerConfig& config, ComfyMachineParts parts)
    : id_(config.id),
      parts_(std::move(parts)),
      options_(parts_.options),
      link_{
          parts_.executor,
          comfy::Client(parts_.http, parts_.pool, config.url, options_.timeouts, config.token),
          parts_.store,
          parts_.pool,
          options_,
          config.id,
          new_client_id(parts_.clock),
          {},
          parts_.prompt_left,
          parts_.costs,
      },
      loops_(parts_.executor),
      check_(parts_.executor),
      reachable_changed_(parts_.executor),
      socket_changed_(parts_.executor),
      is_held_(parts_.executor) {
    link_.gpu_second_usd = config.gpu_second_usd;
    link_.shares_gpu = !config.gpu.empty();
    link_.is_engine = config.process != nullptr;
    known_.classes = config.classes;
    link_.look_at_machine = [this] { look_at_machine(); };
}

void ComfyMachine::start() {
    COMFYD_ON(parts_.executor);
    loops_.spawn("worker health", watch_health());
    loops_.spawn("worker socket", keep_socket());
    loops_.spawn("worker progress", tell_later());
}

Task<bool> ComfyMachine::join() {
    // A join that is itself cancelled returns early; the loops end all the same.
    while (loops_.size() > 0) {
        co_await loops_.join();
    }
    co_return true;
}

// Where one lies in the worker's queue behind it, the one that has told something.
ComfyAttempt* ComfyMachine::find_running() const {
    std::vector<ComfyAttempt*> there;
    for (const auto& [prompt, attempt] : attempts_) {
        if (!attempt->has_left_worker()) {
            there.push_back(attempt);
        }
    }
    if (there.size() > 1) {
        std::erase_if(there, [](const ComfyAttempt* attempt) { return !attempt->has_begun(); });
    }
    return there.size() == 1 ? there.front() : nullptr;
}

Task<Result<jobs::AttemptResult>> ComfyMachine::run(std::shared_ptr<AttemptOrder> order) {
    COMFYD_ON(parts_.executor);
    const auto self = shared_from_this();
    ComfyAttempt attempt(
        link_, std::move(order->assignment), *order->relay, order->stop, std::move(order->owner_of)
    );
    const Hearing hearing(*this, attempt);
    const auto& assignment = attempt.assignment();
    if (known_.state != State::up && !assignment.reattach) {
        co_return fail(
            Code::worker_unavailable, "worker " + id_ + " is down: " + known_.last_error
        );
    }
    log::debug(
        "attempt starts",
        {{"job", assignment.job},
         {"worker", id_},
         {"attempt", assignment.attempt},
         {"prompt", attempt.prompt_id()}}
    );
    orphans_.erase(attempt.prompt_id());
    const std::uint64_t socket = link_.socket;
    auto result = co_await attempt.run();
    attempt.tell_usage(result);
    // The job has had no attempt: its prompt waited when the worker was lost.
    if (!result && result.error().code == Code::worker_lost && order->is_behind &&
        !attempt.has_begun()) {
        result.error().details[jobs::kGivenBack] = true;
    }
    settle(attempt, result, socket);
    co_return result;
}

// What an attempt's end says about the machine. `socket`: the WebSocket at its start.
void ComfyMachine::settle(
    const ComfyAttempt& attempt, const Result<jobs::AttemptResult>& result, std::uint64_t socket
) {
    COMFYD_ON(parts_.executor);
    const auto& assignment = attempt.assignment();
    const std::optional<Code> code = result ? std::nullopt : std::optional(result.error().code);
    log::debug(
        "attempt ended",
        {{"job", assignment.job}, {"worker", id_}, {"result", code ? to_string(*code) : "success"}}
    );
    if (attempt.is_orphaned()) {
        orphans_.insert(attempt.prompt_id());
    }
    const std::optional<jobs::Cause> cause =
        result ? std::nullopt : std::optional(jobs::cause_of(result.error()));
    if (attempt.blockage()) {
        block(*attempt.blockage());
    } else if (cause == jobs::Cause::cuda_fault) {
        quarantine("its GPU failed: " + result.error().message, Millis(0));
    } else if (cause == jobs::Cause::out_of_memory) {
        loops_.spawn("free memory", free_after_failure());
        check_soon();
    } else if (code && is_workers_fault(*code)) {
        check_soon();
    } else if (cause == jobs::Cause::model_missing ||
               (code && names_missing_class(result.error()))) {
        classes_stale_ = true;
        check_soon();
    }
    if (!code && attempt.was_silent() && socket != 0 && socket == link_.socket && events_) {
        // An earlier socket of our id took this one with it when the worker noticed its end. A new
        // id has no past.
        log::warning("worker's WebSocket is silent, it gets a new one", {{"worker", id_}});
        link_.client_id = new_client_id(parts_.clock);
        events_->abort();
    }
}

Task<Result<std::string>> ComfyMachine::read_file(
    JobId job, jobs::WorkerFile file, std::uint64_t bytes_max
) {
    COMFYD_ON(parts_.executor);
    const auto self = shared_from_this();
    std::optional<comfy::FileName> made;
    std::string made_by;
    std::uint64_t told_over = 0;
    for (const auto& [prompt, attempt] : attempts_) {
        made = attempt->find_made(job, file);
        if (made) {
            made_by = prompt;
            told_over = attempt->told_over();
            break;
        }
    }
    if (!made) {
        co_return fail(Code::not_found, "there is no such file");
    }
    std::string bytes;
    // Lives in this frame until view() is done with it.
    const auto take = [&bytes, bytes_max](std::string_view piece) -> Result<> {
        if (bytes.size() + piece.size() > bytes_max) {
            return fail(Code::payload_too_large, "the file is too large to be shown while it runs");
        }
        bytes += piece;
        return {};
    };
    auto type = co_await link_.client.view(std::move(*made), take);
    if (!type) {
        co_return fail(std::move(type.error()));
    }
    auto confirmed = co_await confirm_same_process(link_, std::move(made_by), told_over);
    if (!confirmed) {
        co_return fail(Code::not_found, "there is no such file any more");
    }
    co_return bytes;
}

Task<bool> ComfyMachine::has_input(std::string name) {
    COMFYD_ON(parts_.executor);
    const auto self = shared_from_this();
    if (known_.state != State::up) {
        co_return false;
    }
    const auto slash = name.rfind('/');
    const std::size_t start = slash == std::string::npos ? 0 : slash + 1;
    comfy::FileName file{name.substr(start), name.substr(0, start == 0 ? 0 : slash), "input"};
    auto found = co_await link_.client.has_file(std::move(file));
    // Only files directly in the folder are in its lists.
    if (found && *found && start == 0 && !lists_stale_) {
        lists_stale_ = true;
        check_soon();
    }
    co_return found && *found;
}

Task<Result<>> ComfyMachine::free_memory(bool models, bool results) {
    COMFYD_ON(parts_.executor);
    const auto self = shared_from_this();
    if (auto may = may_send(options_.mandate, current(options_.mandate)); !may) {
        co_return may;
    }
    auto freed = co_await link_.client.free(models, results);
    co_return freed;
}

}  // namespace comfyd::fleet
