#include "fleet/engine_worker.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "base/log.hpp"
#include "engine/files.hpp"

namespace comfyd::fleet {
namespace {

namespace fs = std::filesystem;

Result<std::string> read_whole(const fs::path& path, std::uint64_t bytes_max) {
    std::error_code error;
    const auto size = fs::is_regular_file(path, error) ? fs::file_size(path, error) : 0;
    std::ifstream in(path, std::ios::binary);
    if (error || !in || size == 0) {
        return fail(Code::not_found, "there is no such file");
    }
    if (size > bytes_max) {
        return fail(Code::payload_too_large, "the file is too large to be shown while it runs");
    }
    return std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
}

Task<Result<jobs::AttemptResult>> ended_with_process() {
    co_return fail(
        Code::worker_lost,
        "comfyd itself ended while it ran this job",
        {{std::string(jobs::kEndedWithProcess), true}}
    );
}

}  // namespace

EngineWorker::Seat::Seat(EngineWorker& worker, const EngineAttempt* attempt)
    : worker_(&worker), attempt_(attempt) {
    worker_->attempts_.insert(attempt_);
    worker_->last_active_at_ = worker_->clock_.now();
}

EngineWorker::Seat::Seat(Seat&& other) noexcept
    : worker_(std::exchange(other.worker_, nullptr)), attempt_(other.attempt_) {}

EngineWorker::Seat::~Seat() {
    if (worker_ != nullptr) {
        worker_->attempts_.erase(attempt_);
        worker_->last_active_at_ = worker_->clock_.now();
        worker_->changed_();
    }
}

EngineWorker::EngineWorker(
    EngineConfig config,
    engine::Core& engine,
    Executor core,
    const Clock& clock,
    assets::Store& store,
    Pool& disk,
    std::function<void()> changed
)
    : config_(std::move(config)),
      clock_(clock),
      changed_(std::move(changed)),
      created_at_(clock.now()),
      last_active_at_(created_at_),
      threads_(static_cast<unsigned>(std::max(config_.slots, 1))),
      link_{core, engine, config_.folders, config_.tenants, store, disk, threads_, {}} {
    auto classes = workflow::NodeClasses::from_object_info(engine.object_info());
    if (classes) {
        classes_ = std::move(*classes);
    } else {
        log::error(
            "the engine's node classes cannot be read", {{"error", classes.error().message}}
        );
    }
}

void EngineWorker::set_draining(bool draining) {
    draining_ = draining;
    changed_();
}

jobs::WorkerInfo EngineWorker::info() const {
    jobs::WorkerInfo info;
    info.id = config_.id;
    info.url = "engine:";
    info.status = draining_ ? "draining" : attempts_.empty() ? "idle" : "running";
    info.version = COMFYD_VERSION;
    info.gpu = "cpu";
    info.node_classes = classes_ ? classes_->size() : 0;
    if (!attempts_.empty()) {
        info.current_job = (*attempts_.begin())->assignment().job;
    }
    info.created_at = created_at_;
    info.last_active_at = last_active_at_;
    info.completed = completed_;
    info.failed = failed_;
    info.slots = std::max(config_.slots, 1);
    info.pool = config_.pool;
    return info;
}

bool EngineWorker::available() const {
    return !draining_ && attempts_.size() < static_cast<std::size_t>(std::max(config_.slots, 1));
}

bool EngineWorker::can_run(const std::string& requirement) const {
    return classes_ != nullptr && workflow::allows_pool(requirement, config_.pool) &&
           classes_->has_all(requirement);
}

double EngineWorker::load() const {
    return static_cast<double>(attempts_.size()) / std::max(config_.slots, 1);
}

Task<Result<jobs::AttemptResult>> EngineWorker::run(
    jobs::Assignment assignment, jobs::AttemptListener& listener, jobs::StopRequest& stop
) {
    if (assignment.reattach && config_.process_died) {
        return ended_with_process();
    }
    auto attempt = std::make_unique<EngineAttempt>(link_, std::move(assignment), listener, stop);
    Seat seat(*this, attempt.get());
    return run_attempt(std::move(attempt), std::move(seat));
}

Task<Result<std::string>> EngineWorker::read_file(
    JobId job, jobs::WorkerFile file, std::uint64_t bytes_max
) {
    std::optional<fs::path> made;
    for (const EngineAttempt* attempt : attempts_) {
        if (attempt->assignment().job == job) {
            made = attempt->find_made(file);
        }
    }
    if (!made) {
        co_return fail(Code::not_found, "there is no such file");
    }
    auto read = co_await link_.disk.run([path = std::move(*made), bytes_max] {
        return read_whole(path, bytes_max);
    });
    co_return read;
}

Task<bool> EngineWorker::has_input(std::string name) {
    const bool found = co_await link_.disk.run([name = std::move(name), folders = config_.folders] {
        return engine::find_input_file(name + " [input]", folders).has_value();
    });
    co_return found;
}

Task<Result<>> EngineWorker::free_memory(bool, bool results) {
    if (results) {
        link_.engine.free_memory();
    }
    co_return Result<>();
}

Task<Result<jobs::AttemptResult>> EngineWorker::run_attempt(
    std::unique_ptr<EngineAttempt> attempt, Seat seat
) {
    const Seat held = std::move(seat);  // released before the attempt goes, when this frame ends
    auto result = co_await attempt->run();
    attempt->tell_usage(result);
    const auto& assignment = attempt->assignment();
    log::debug(
        "attempt ended",
        {{"job", assignment.job},
         {"worker", config_.id},
         {"result", result ? std::string_view("success") : to_string(result.error().code)}}
    );
    if (result) {
        ++completed_;
    } else if (result.error().code != Code::cancelled &&
               result.error().code != Code::shutting_down) {
        ++failed_;
    }
    co_return result;
}

}  // namespace comfyd::fleet
