#include "fleet/comfy_worker.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "comfy/members.hpp"
#include "fleet/merged_run.hpp"

namespace comfyd::fleet {
namespace {

// One runs while the results of others are fetched; more than that wait for the network.
constexpr std::size_t kAttemptsPerSlot = 4;

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

// The worker itself failed, not what it was asked to do.
bool is_workers_fault(Code code) {
    return code == Code::worker_lost || code == Code::worker_unavailable ||
           code == Code::out_of_memory;
}

}  // namespace

ComfyWorker::Seat::Seat(ComfyWorker& worker, ComfyAttempt* attempt)
    : worker_(&worker), prompt_id_(attempt->assignment().prompt_id) {
    worker_->attempts_[prompt_id_] = attempt;
    worker_->last_active_at_ = worker_->parts_.clock.now();
}

ComfyWorker::Seat::Seat(Seat&& other) noexcept
    : worker_(std::exchange(other.worker_, nullptr)), prompt_id_(std::move(other.prompt_id_)) {}

ComfyWorker::Seat::~Seat() {
    if (worker_ != nullptr) {
        worker_->attempts_.erase(prompt_id_);
        worker_->last_active_at_ = worker_->parts_.clock.now();
        worker_->parts_.changed();
    }
}

ComfyWorker::ComfyWorker(WorkerConfig config, ComfyWorkerParts parts)
    : config_(std::move(config)),
      parts_(std::move(parts)),
      options_(parts_.options),
      link_{
          parts_.core,
          comfy::Client(parts_.http, parts_.pool, config_.url, options_.timeouts),
          parts_.store,
          parts_.pool,
          options_,
          config_.id,
          new_client_id(parts_.clock),
          {},
          parts_.changed,
          parts_.costs,
      },
      check_(parts_.core),
      reachable_changed_(parts_.core),
      socket_changed_(parts_.core),
      created_at_(parts_.clock.now()),
      last_active_at_(created_at_) {
    link_.gpu_second_usd = config_.gpu_second_usd;
    link_.shares_gpu = !config_.gpu.empty();
    link_.is_engine = is_engine();
    classes_ = config_.classes;
    link_.look_at_machine = [this] { look_at_machine(); };
}

void ComfyWorker::start(TaskGroup& group) {
    group.spawn("worker health", watch_health());
    group.spawn("worker socket", keep_socket());
}

void ComfyWorker::set_draining(bool draining) {
    draining_ = draining;
    parts_.changed();
}

jobs::WorkerInfo ComfyWorker::info() const {
    jobs::WorkerInfo info;
    info.id = config_.id;
    info.url = config_.url;
    if (state_ != State::up) {
        info.status =
            state_ == State::starting ? jobs::WorkerStatus::starting : jobs::WorkerStatus::down;
    } else if (draining_) {
        info.status = jobs::WorkerStatus::draining;
    } else {
        info.status = running() > 0 ? jobs::WorkerStatus::running : jobs::WorkerStatus::idle;
    }
    info.version = stats_.version;
    info.gpu = stats_.device;
    info.vram_total = stats_.vram_total;
    info.vram_free = stats_.vram_free;
    if (is_engine()) {
        info.url = "engine:";
        info.version = COMFYD_VERSION;
        info.gpu = "cpu";
        info.vram_total = info.vram_free = 0;
    }
    info.node_classes = classes_ ? classes_->size() : 0;
    info.last_error = last_error_;
    for (const auto& [prompt, attempt] : attempts_) {
        if (!attempt->has_left_worker()) {
            info.current_job = attempt->assignment().job;
        }
    }
    info.created_at = created_at_;
    info.last_active_at = last_active_at_;
    info.completed = completed_;
    info.failed = failed_;
    info.slots = std::max(config_.slots, 1);
    info.gpu_id = config_.gpu;
    info.pool = config_.pool;
    info.model_memory_bytes = config_.model_memory_bytes;
    return info;
}

bool ComfyWorker::available() const {
    const auto slots = static_cast<std::size_t>(config_.slots);
    return state_ == State::up && !draining_ && running() < slots &&
           attempts_.size() < slots * kAttemptsPerSlot;
}

std::size_t ComfyWorker::running() const {
    const auto prompts = std::ranges::count_if(attempts_, [](const auto& entry) {
        return !entry.second->has_left_worker();
    });
    const auto groups = std::ranges::count_if(groups_, [](const auto& entry) {
        const auto group = entry.lock();
        return group && group->holds_worker();
    });
    return static_cast<std::size_t>(prompts + groups);
}

bool ComfyWorker::can_run(const std::string& requirement) const {
    return classes_ != nullptr && workflow::allows_pool(requirement, config_.pool) &&
           classes_->has_all(requirement) && (is_engine() || !parts_.left_to_engine(requirement));
}

std::string ComfyWorker::abilities() const {
    // Equal classes are one object, and those that a worker had before are kept as long as it has
    // them. What the engine takes over depends on whether there is one.
    return std::to_string(reinterpret_cast<std::uintptr_t>(classes_.get())) +
           (!is_engine() && parts_.left_to_engine("") ? "+engine" : "") + "/" + config_.pool;
}

double ComfyWorker::load() const {
    constexpr double kFailureWeight = 0.1;
    constexpr int kFailuresCounted = 5;
    const double busy = static_cast<double>(running()) / std::max(config_.slots, 1);
    return busy + kFailureWeight * std::min(failed_in_a_row_, kFailuresCounted);
}

Task<Result<jobs::AttemptResult>> ComfyWorker::run(
    jobs::Assignment assignment, jobs::AttemptListener& listener, jobs::StopRequest& stop
) {
    if (assignment.group) {
        auto group = std::static_pointer_cast<MergedRun>(assignment.group);  // of make_group()
        MergedRun& run = *group;
        return run.join(std::move(group), std::move(assignment), listener, stop);
    }
    return run_prompt(std::move(assignment), listener, stop, {});
}

Task<Result<jobs::AttemptResult>> ComfyWorker::run_prompt(
    jobs::Assignment assignment,
    jobs::AttemptListener& listener,
    jobs::StopRequest& stop,
    OwnerOf owner_of
) {
    auto attempt = std::make_unique<ComfyAttempt>(
        link_, std::move(assignment), listener, stop, std::move(owner_of)
    );
    Seat seat(*this, attempt.get());
    return run_attempt(std::move(attempt), std::move(seat));
}

std::shared_ptr<jobs::RunGroup> ComfyWorker::make_group(
    std::string prompt_id, std::size_t members
) {
    MergedRun::Parts parts{
        parts_.core,
        parts_.clock,
        [this] { return classes_; },
        [this](
            jobs::Assignment assignment,
            jobs::AttemptListener& listener,
            jobs::StopRequest& stop,
            OwnerOf owner_of
        ) { return run_prompt(std::move(assignment), listener, stop, std::move(owner_of)); },
    };
    std::erase_if(groups_, [](const auto& group) { return group.expired(); });
    auto group = std::make_shared<MergedRun>(std::move(parts), std::move(prompt_id), members);
    groups_.push_back(group);
    return group;
}

Task<Result<std::string>> ComfyWorker::read_file(
    JobId job, jobs::WorkerFile file, std::uint64_t bytes_max
) {
    std::optional<comfy::FileName> made;
    for (const auto& [prompt, attempt] : attempts_) {
        made = made ? std::move(made) : attempt->find_made(job, file);
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
    co_return bytes;
}

Task<bool> ComfyWorker::has_input(std::string name) {
    if (state_ != State::up) {
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

Task<Result<>> ComfyWorker::free_memory(bool models, bool results) {
    return link_.client.free(models, results);
}

Task<Result<jobs::AttemptResult>> ComfyWorker::run_attempt(
    std::unique_ptr<ComfyAttempt> attempt, Seat seat
) {
    const Seat held = std::move(seat);  // released before the attempt goes, when this frame ends
    const auto& assignment = attempt->assignment();
    if (state_ != State::up && !assignment.reattach) {
        co_return fail(
            Code::worker_unavailable, "worker " + config_.id + " is down: " + last_error_
        );
    }
    log::debug(
        "attempt starts",
        {{"job", assignment.job},
         {"worker", config_.id},
         {"attempt", assignment.attempt},
         {"prompt", assignment.prompt_id}}
    );
    orphans_.erase(assignment.prompt_id);
    const std::uint64_t socket = socket_number_;
    const std::uint64_t ends = is_engine() ? config_.process->ends() : 0;
    auto result = co_await attempt->run();
    attempt->tell_usage(result);
    if (!result && result.error().code == Code::worker_lost && is_engine() &&
        config_.process->ends() != ends) {
        result = fail(
            Code::worker_lost,
            "the engine's process ended while it ran this job",
            {{std::string(jobs::kEndedWithProcess), true}}
        );
    }
    settle(*attempt, result, socket);
    co_return result;
}

// What an attempt's end says about the worker. `socket`: the WebSocket at its start.
void ComfyWorker::settle(
    const ComfyAttempt& attempt, const Result<jobs::AttemptResult>& result, std::uint64_t socket
) {
    const auto& assignment = attempt.assignment();
    const std::optional<Code> code = result ? std::nullopt : std::optional(result.error().code);
    log::debug(
        "attempt ended",
        {{"job", assignment.job},
         {"worker", config_.id},
         {"result", code ? to_string(*code) : "success"}}
    );
    if (!code) {
        ++completed_;
    } else if (*code != Code::cancelled && *code != Code::shutting_down) {
        ++failed_;
    }
    failed_in_a_row_ = code && is_workers_fault(*code) ? failed_in_a_row_ + 1 : 0;
    if (attempt.is_orphaned()) {
        orphans_.insert(assignment.prompt_id);
    }
    if (attempt.blockage()) {
        blockage_ = attempt.blockage();
        go_down(blockage_->reason);
        end_process();
    } else if (code && is_workers_fault(*code)) {
        check_soon();
    } else if (code && names_missing_class(result.error())) {
        classes_stale_ = true;
        check_soon();
    }
    if (!code && attempt.was_silent() && socket != 0 && socket == socket_number_ && events_) {
        // An earlier socket of our id took this one with it when the worker noticed its end. A new
        // id has no past.
        log::warning("worker's WebSocket is silent, it gets a new one", {{"worker", config_.id}});
        link_.client_id = new_client_id(parts_.clock);
        events_->abort();
    }
}

}  // namespace comfyd::fleet
