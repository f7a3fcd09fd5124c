#include "fleet/comfy_worker.hpp"

#include <algorithm>
#include <utility>

#include <boost/asio/post.hpp>

#include "base/cancellable_hop.hpp"
#include "base/hop.hpp"
#include "base/log.hpp"
#include "base/on_executor.hpp"
#include "base/steady_clock.hpp"
#include "fleet/comfy_batch.hpp"
#include "jobs/cause.hpp"
#include "jobs/give_back.hpp"

namespace comfyd::fleet {
namespace {

// One runs while the results of others are fetched; more than that wait for the network.
constexpr std::size_t kAttemptsPerSlot = 4;
constexpr Millis kLongWait = std::chrono::hours(1);

}  // namespace

ComfyWorker::SlotLease::SlotLease(ComfyWorker& worker, const jobs::Assignment& assignment)
    : worker_(&worker), prompt_(assignment.prompt) {
    const Time now = SteadyClock::of_process().now();
    worker_->taken_[prompt_] = Taken{assignment.job};
    worker_->ahead_.add(prompt_, worker_->queues() ? assignment.expected : std::nullopt, now);
    worker_->told_running_ = worker_->prompts() + worker_->groups();  // as who gives it one knows
    worker_->last_active_at_ = worker_->parts_.clock.now();
}

ComfyWorker::SlotLease::SlotLease(SlotLease&& other) noexcept
    : worker_(std::exchange(other.worker_, nullptr)), prompt_(other.prompt_) {}

ComfyWorker::SlotLease::~SlotLease() {
    if (worker_ != nullptr) {
        worker_->taken_.erase(prompt_);
        worker_->ahead_.remove(prompt_, SteadyClock::of_process().now());
        worker_->told_running_ = worker_->running();
        worker_->note_ahead();
        worker_->last_active_at_ = worker_->parts_.clock.now();
        worker_->parts_.changed();
    }
}

ComfyWorker::ComfyWorker(WorkerConfig config, ComfyWorkerParts parts)
    : config_(std::move(config)),
      parts_(std::move(parts)),
      door_(std::make_shared<Door>(this)),
      machine_(std::make_shared<ComfyMachine>(config_, machine_parts())),
      ahead_changed_(parts_.core),
      watch_(parts_.core),
      created_at_(parts_.clock.now()),
      last_active_at_(created_at_),
      breaker_(parts_.options.breaker) {
    known_.classes = config_.classes;
}

ComfyWorker::~ComfyWorker() {
    door_->worker = nullptr;
}

template <class... Said>
std::function<void(Said...)> ComfyWorker::door_to(void (ComfyWorker::*enter)(Said...)) {
    return [core = parts_.core, door = door_, enter](Said... said) {
        boost::asio::post(core, [door, enter, ... said = std::move(said)]() mutable {
            if (door->worker != nullptr) {
                (door->worker->*enter)(std::move(said)...);
            }
        });
    };
}

ComfyMachineParts ComfyWorker::machine_parts() {
    return {
        parts_.lane,
        parts_.clock,
        parts_.http,
        parts_.store,
        parts_.pool,
        parts_.classes,
        parts_.costs,
        parts_.options,
        door_to(&ComfyWorker::take),
        door_to(&ComfyWorker::left),
        door_to(&ComfyWorker::end_process),
    };
}

void ComfyWorker::take(MachineReport report) {
    COMFYD_ON(parts_.core);
    const bool has_other_classes = report.classes != known_.classes;
    const bool has_other_state = report.state != known_.state;
    const bool has_other_wish = report.wants_rest != known_.wants_rest;
    const bool has_other_agent = report.fetches_models != known_.fetches_models ||
                                 report.agent_answers != known_.agent_answers;
    const bool has_other_gpu = report.stats.device != known_.stats.device ||
                               report.stats.vram_total != known_.stats.vram_total;
    const bool has_other_memory = report.stats.ram_total != known_.stats.ram_total ||
                                  report.ram_total_bytes != known_.ram_total_bytes;
    if (known_.is_quarantined && !report.is_quarantined) {
        breaker_.succeeded();
    }
    known_ = std::move(report);
    if (has_other_state && is_up()) {
        failed_in_a_row_ = 0;
    }
    if (has_other_classes || ((has_other_gpu || has_other_agent) && known_.classes != nullptr)) {
        parts_.classes_changed();
    } else if (has_other_state || has_other_wish || has_other_agent || has_other_memory) {
        parts_.changed();
    }
}

void ComfyWorker::left(const PromptId& prompt) {
    COMFYD_ON(parts_.core);
    if (const auto found = taken_.find(prompt); found != taken_.end()) {
        found->second.has_left = true;
        ahead_.remove(prompt, SteadyClock::of_process().now());
        note_ahead();
    }
}

void ComfyWorker::note_ahead() {
    const Time now = SteadyClock::of_process().now();
    if (const std::size_t now_running = running(); now_running != told_running_) {
        told_running_ = now_running;
        parts_.changed();
    }
    if (const auto stuck = ahead_.stuck(now)) {
        Taken& taken = taken_.at(*stuck);
        const auto order = taken.order.lock();
        if (order && !std::exchange(taken.is_asked_back, true)) {
            boost::asio::post(machine_->executor(), [machine = machine_, order, prompt = *stuck] {
                machine->give_back_waiting(order, prompt);
            });
        }
    }
    const auto next = ahead_.next_look(now);
    if (next && (!looks_at_ || *next < *looks_at_)) {
        ahead_changed_.notify();
    }
}

Task<> ComfyWorker::look_ahead() {
    bool goes_on = true;
    while (goes_on) {
        looks_at_.reset();
        note_ahead();
        const Time now = SteadyClock::of_process().now();
        looks_at_ = ahead_.next_look(now);
        co_await ahead_changed_.wait_for(looks_at_ ? *looks_at_ - now : kLongWait);
        const bool stop = co_await is_cancelled();
        goes_on = !stop;
    }
}

void ComfyWorker::end_process() {
    if (is_engine()) {
        config_.process->end_child();
    }
}

void ComfyWorker::start() {
    boost::asio::post(machine_->executor(), [machine = machine_] { machine->start(); });
    watch_.spawn("worker's next prompt", look_ahead());
}

void ComfyWorker::cancel() {
    boost::asio::post(machine_->executor(), [machine = machine_] { machine->cancel(); });
    watch_.cancel();
}

Task<> ComfyWorker::join() {
    const auto machine = machine_;
    co_await await_on(machine->executor(), machine->join());
    while (watch_.size() > 0) {
        co_await watch_.join();
    }
}

void ComfyWorker::set_draining(bool draining) {
    COMFYD_ON(parts_.core);
    draining_ = draining;
    parts_.changed();
}

void ComfyWorker::hear_ready() {
    COMFYD_ON(parts_.core);
    if (!is_up()) {
        boost::asio::post(machine_->executor(), [machine = machine_] { machine->hear_ready(); });
    }
}

void ComfyWorker::give_back() {
    COMFYD_ON(parts_.core);
    gives_back_ = true;
    for (const auto& [prompt, taken] : taken_) {
        give_back(taken);
    }
}

void ComfyWorker::give_back(const Taken& taken) {
    const auto order = taken.order.lock();
    if (order && !taken.has_left) {
        boost::asio::post(machine_->executor(), [order] {
            order->stop.stop(Code::worker_unavailable);
        });
    }
}

jobs::WorkerInfo ComfyWorker::info() const {
    jobs::WorkerInfo info;
    info.id = config_.id;
    info.url = config_.url;
    if (!is_up()) {
        info.status = known_.state == MachineReport::State::starting ? jobs::WorkerStatus::starting
                                                                     : jobs::WorkerStatus::down;
    } else if (draining_ || known_.wants_rest) {
        info.status = jobs::WorkerStatus::draining;
    } else {
        info.status =
            prompts() + groups() > 0 ? jobs::WorkerStatus::running : jobs::WorkerStatus::idle;
    }
    info.version = known_.stats.version;
    info.gpu = gpu_kind();
    info.vram_total = gpu_memory();
    info.vram_free = is_engine() ? 0 : known_.stats.vram_free;
    info.ram_total = is_engine() ? 0 : ram_total();
    info.fetched_outside = known_.fetched_outside;
    info.fetched_from_peers = known_.fetched_from_peers;
    if (is_engine()) {
        info.url = "engine:";
        info.version = COMFYD_VERSION;
    }
    info.node_classes = known_.classes ? known_.classes->size() : 0;
    info.last_error = known_.last_error;
    for (const auto& [prompt, taken] : taken_) {
        if (taken.has_left) {
            continue;
        }
        info.jobs.push_back(taken.job);
        if (ahead_.first() == prompt || !info.current_job) {
            info.current_job = taken.job;
        }
    }
    info.running = prompts() + groups();
    info.created_at = created_at_;
    info.last_active_at = last_active_at_;
    info.completed = completed_;
    info.failed = failed_;
    info.slots = std::max(config_.slots, 1);
    info.gpu_id = config_.gpu;
    info.pool = config_.pool;
    info.region = config_.region;
    info.machine = config_.machine;
    info.model_memory_bytes = config_.model_memory_bytes;
    info.breaker = breaker_.state(SteadyClock::of_process().now());
    return info;
}

std::shared_ptr<void> ComfyWorker::expect_attempt() {
    COMFYD_ON(parts_.core);
    ++expected_;
    return {this, [](ComfyWorker* worker) {
                --worker->expected_;
                worker->parts_.changed();
            }};
}

bool ComfyWorker::available() const {
    COMFYD_ON(parts_.core);
    const auto slots = static_cast<std::size_t>(config_.slots);
    return is_up() && !draining_ && !gives_back_ && !known_.wants_rest && running() < slots &&
           taken_.size() < slots * kAttemptsPerSlot;
}

std::size_t ComfyWorker::running() const {
    const bool may_follow = ahead_.is_about_to_end(SteadyClock::of_process().now());
    return prompts() + groups() - (may_follow ? 1 : 0);
}

std::size_t ComfyWorker::prompts() const {
    return static_cast<std::size_t>(std::ranges::count_if(taken_, [](const auto& entry) {
        return !entry.second.has_left;
    }));
}

std::size_t ComfyWorker::groups() const {
    return static_cast<std::size_t>(std::ranges::count_if(groups_, [](const auto& entry) {
        const auto group = entry.lock();
        return group && group->holds_worker();
    }));
}

// Our own is a process for each prompt at a time, which ends with it where that does not stop; and
// how long a run takes beside others on its GPU is not known. A server that stops whatever runs
// could be told to stop a prompt that has just ended, and stop the one behind it.
bool ComfyWorker::queues() const {
    return config_.slots == 1 && !is_engine() && config_.gpu.empty() &&
           comfy::interrupts_by_id(known_.stats.version);
}

const std::string& ComfyWorker::gpu_kind() const {
    static const std::string kNone = "cpu";
    return is_engine()                   ? kNone
           : known_.stats.device.empty() ? config_.gpu_kind
                                         : known_.stats.device;
}

std::uint64_t ComfyWorker::gpu_memory() const {
    return is_engine() ? 0 : known_.stats.vram_total;
}

MachineFacts ComfyWorker::facts() const {
    return {config_.pool, gpu_kind(), config_.region, gpu_memory()};
}

bool ComfyWorker::can_run(const Requirement& requirement) const {
    return known_.classes != nullptr && requirement.allows(facts()) &&
           known_.classes->has_all(requirement) &&
           (is_engine() || !parts_.left_to_engine(requirement));
}

std::string ComfyWorker::abilities() const {
    // Equal classes are one object, and those that a worker had before are kept as long as it has
    // them. What the engine takes over depends on whether there is one.
    return std::to_string(reinterpret_cast<std::uintptr_t>(known_.classes.get())) +
           (!is_engine() && parts_.left_to_engine({}) ? "+engine" : "") + "/" + config_.pool + "/" +
           config_.region + "/" + gpu_kind() + "/" + std::to_string(gpu_memory());
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
    COMFYD_ON(parts_.core);
    if (assignment.group) {
        auto group = std::static_pointer_cast<ComfyBatch>(assignment.group);  // of make_group()
        ComfyBatch& run = *group;
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
    // The prompt of one that is expected may be there, and must be taken back then.
    if (gives_back_ && (!assignment.reattach || expected_ == 0)) {
        return refuse();
    }
    const bool is_behind = ahead_.first().has_value();
    SlotLease lease(*this, assignment);
    Taken& taken = taken_.at(assignment.prompt);
    auto order = std::make_shared<AttemptOrder>(
        machine_->executor(),
        std::move(assignment),
        std::make_shared<AttemptRelay>(parts_.core, listener),
        std::move(owner_of)
    );
    order->is_behind = is_behind;
    taken.order = order;
    note_ahead();
    if (gives_back_) {
        give_back();
    }
    return run_leased(std::move(order), stop, std::move(lease));
}

Task<Result<jobs::AttemptResult>> ComfyWorker::refuse() const {
    co_return fail(
        Code::worker_unavailable,
        "worker " + config_.id + " has left the fleet",
        {{std::string(jobs::kGivenBack), true}}
    );
}

Task<Result<jobs::AttemptResult>> ComfyWorker::run_leased(
    std::shared_ptr<AttemptOrder> order, jobs::StopRequest& stop, SlotLease lease
) {
    const SlotLease held = std::move(lease);  // released when this frame ends
    const std::uint64_t ends = is_engine() ? config_.process->ends() : 0;
    auto result = co_await run_away(std::move(order), stop);
    if (!result && result.error().code == Code::worker_lost && is_engine() &&
        config_.process->ends() != ends) {
        result = fail(
            Code::worker_lost,
            "the engine's process ended while it ran this job",
            {{std::string(jobs::kEndedWithProcess), true}}
        );
    }
    count(result);
    co_return result;
}

// Lets the machine run it, and passes a stop on to there.
Task<Result<jobs::AttemptResult>> ComfyWorker::run_away(
    std::shared_ptr<AttemptOrder> order, jobs::StopRequest& stop
) {
    std::optional<Result<jobs::AttemptResult>> result;  // lives here until the task has ended
    TaskGroup away(parts_.core);
    away.spawn("attempt on a worker", carry_out(order, result, stop.requested));
    bool is_told = false;
    bool abandoned = false;
    while (!result && !abandoned) {
        if (stop.reason && !is_told) {
            is_told = true;
            boost::asio::post(machine_->executor(), [order, why = *stop.reason] {
                order->stop.stop(why);
            });
        }
        co_await stop.requested.wait_for(kLongWait);
        abandoned = co_await is_cancelled();
    }
    if (!result) {
        away.cancel();
    }
    // A join that is itself cancelled returns early; the task ends all the same.
    while (away.size() > 0) {
        co_await away.join();
    }
    if (!result) {
        co_return fail(Code::internal, "the attempt ended without a result");
    }
    co_return std::move(*result);
}

Task<> ComfyWorker::carry_out(
    std::shared_ptr<AttemptOrder> order,
    std::optional<Result<jobs::AttemptResult>>& result,
    Signal& done
) {
    result = co_await await_cancellable_on(machine_->executor(), machine_->run(std::move(order)));
    done.notify();
}

void ComfyWorker::count(const Result<jobs::AttemptResult>& result) {
    if (!result && result.error().details.contains(jobs::kGivenBack)) {
        return;  // nothing was tried
    }
    const std::optional<Code> code = result ? std::nullopt : std::optional(result.error().code);
    if (!code) {
        ++completed_;
    } else if (*code != Code::cancelled && *code != Code::shutting_down &&
               *code != Code::lead_lost) {
        ++failed_;
    }
    failed_in_a_row_ = code && is_workers_fault(*code) ? failed_in_a_row_ + 1 : 0;
    if (!code) {
        breaker_.succeeded();
    } else if (jobs::info(jobs::cause_of(result.error())).is_workers_fault) {
        count_fault(result.error());
    }
}

void ComfyWorker::count_fault(const Error& error) {
    const Time now = SteadyClock::of_process().now();
    const double jitter =
        static_cast<double>(std::hash<std::string>()(config_.id) % 1'000) / 1'000.0;
    if (jobs::cause_of(error) == jobs::Cause::cuda_fault) {
        breaker_.trip(now, jitter);  // its machine has seen to the rest
        return;
    }
    if (!breaker_.failed(now, jitter)) {
        return;
    }
    if (!parts_.may_rest_one(config_.pool)) {
        breaker_.succeeded();  // it is needed: counted anew
        return;
    }
    log::warning("a worker failed several times in a row and rests", {{"worker", config_.id}});
    boost::asio::post(
        machine_->executor(),
        [machine = machine_, why = error.message, rest = breaker_.wait(now)] {
            machine->quarantine("it failed several times in a row, the last time: " + why, rest);
        }
    );
}

std::shared_ptr<jobs::Batch> ComfyWorker::make_group(PromptId prompt, std::size_t members) {
    COMFYD_ON(parts_.core);
    ComfyBatch::Parts parts{
        parts_.core,
        parts_.clock,
        parts_.pool,
        [this] { return known_.classes; },
        [this](
            jobs::Assignment assignment,
            jobs::AttemptListener& listener,
            jobs::StopRequest& stop,
            OwnerOf owner_of
        ) { return run_prompt(std::move(assignment), listener, stop, std::move(owner_of)); },
    };
    std::erase_if(groups_, [](const auto& group) { return group.expired(); });
    auto group = std::make_shared<ComfyBatch>(std::move(parts), prompt, members);
    groups_.push_back(group);
    return group;
}

Task<Result<std::string>> ComfyWorker::read_file(
    JobId job, jobs::WorkerFile file, std::uint64_t bytes_max
) {
    return await_on(machine_->executor(), machine_->read_file(job, std::move(file), bytes_max));
}

Task<bool> ComfyWorker::has_input(std::string name) {
    return await_on(machine_->executor(), machine_->has_input(std::move(name)));
}

Task<Result<>> ComfyWorker::free_memory(bool models, bool results) {
    return await_on(machine_->executor(), machine_->free_memory(models, results));
}

bool ComfyWorker::can_judge() const {
    return is_up() && known_.classes != nullptr && known_.classes->notes().told;
}

Task<std::optional<workflow::PromptVerdict>> ComfyWorker::judge(
    json::object prompt, std::vector<std::string> targets
) {
    return await_on(machine_->executor(), machine_->judge(std::move(prompt), std::move(targets)));
}

}  // namespace comfyd::fleet
