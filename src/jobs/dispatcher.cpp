// The queue: what waits, what is placed next, what is known of a job. dispatcher_attempts.cpp
// follows jobs on workers, dispatcher_waiting.cpp changes those that wait.
#include "jobs/dispatcher.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "jobs/attempt.hpp"

namespace comfyd::jobs {
namespace {

class FreeWorker final : public scheduler::Candidate {
public:
    explicit FreeWorker(const std::shared_ptr<Worker>& worker) : worker_(worker.get()) {}
    bool can_run(const std::string& requirement) const override {
        return worker_->can_run(requirement);
    }
    double load() const override { return worker_->load(); }

private:
    const Worker* worker_;
};

}  // namespace

Dispatcher::Dispatcher(Executor core, Clock& clock, Ledger& ledger, Fleet& fleet, events::Hub& hub)
    : core_(core),
      clock_(clock),
      ledger_(ledger),
      fleet_(fleet),
      hub_(hub),
      tasks_(core),
      time_changed_(core) {}

Dispatcher::~Dispatcher() = default;

void Dispatcher::start() {
    fleet_.on_change([this] { pump(); });
    tasks_.spawn("job alarms", watch_time());
    pump();
}

Task<Result<>> Dispatcher::recover() {
    constexpr int kPage = 1000;
    std::optional<JobId> after;
    std::size_t queued = 0;
    std::size_t reattached = 0;
    for (;;) {
        auto page = co_await ledger_.unfinished(after, kPage);
        if (!page) {
            co_return fail(std::move(page.error()));
        }
        for (Unfinished& entry : *page) {
            Job& job = entry.job;
            after = job.id;
            remember_deadline(job);
            announce(job, false);
            if (job.state == State::running) {
                ++reattached;
                reattach(std::move(job));
            } else {
                ++queued;
                put_back(job, entry.requirement);
            }
        }
        if (page->size() < static_cast<std::size_t>(kPage)) {
            break;
        }
    }
    if (queued + reattached > 0) {
        log::info("unfinished jobs are back", {{"queued", queued}, {"running", reattached}});
    }
    co_return Result<>();
}

Task<> Dispatcher::stop(Millis grace) {
    stopping_ = true;
    const auto give_up = std::chrono::steady_clock::now() + grace;
    while (!attempts_.empty() && std::chrono::steady_clock::now() < give_up) {
        const bool goes_on = co_await sleep_for(Millis(20));
        if (!goes_on) {
            break;
        }
    }
    for (auto& [id, attempt] : attempts_) {
        attempt->stop.stop(Code::shutting_down);
    }
    time_changed_.notify();
    tasks_.cancel();
    co_await tasks_.join();
    hub_.end_all(Code::shutting_down);
}

void Dispatcher::enqueue(
    const Job& job, const std::string& requirement, json::object secret_extra_data
) {
    if (!secret_extra_data.empty()) {
        secrets_[job.id] = std::move(secret_extra_data);
    }
    remember_deadline(job);
    announce(job, true);
    put_back(job, requirement);
    pump();
}

void Dispatcher::announce(const Job& job, bool is_new) {
    if (hub_.observer() != nullptr) {
        hub_.observer()->on_job(job, is_new);
    }
}

std::shared_ptr<Worker> Dispatcher::worker_of(const JobId& id) const {
    const auto found = attempts_.find(id);
    return found == attempts_.end() ? nullptr : found->second->worker;
}

void Dispatcher::add_ready(const JobId& id, int priority, const std::string& requirement) {
    ready_.add(id, priority, requirement);
    queued_by_priority_[static_cast<std::size_t>(priority)].fetch_add(1, std::memory_order_relaxed);
}

void Dispatcher::remove_ready(const JobId& id) {
    if (ready_.contains(id)) {
        const auto priority = static_cast<std::size_t>(ready_.priority_of(id));
        queued_by_priority_[priority].fetch_sub(1, std::memory_order_relaxed);
        ready_.remove(id);
    }
}

std::size_t Dispatcher::queued_at_least(int priority) const {
    std::size_t count = 0;
    for (auto p = static_cast<std::size_t>(priority); p < queued_by_priority_.size(); ++p) {
        count += queued_by_priority_[p].load(std::memory_order_relaxed);
    }
    return count;
}

void Dispatcher::put_back(const Job& job, const std::string& requirement) {
    if (job.state == State::retry_waiting) {
        const Time due = job.not_before.value_or(clock_.now());
        waiting_[job.id] = Waiting{due, requirement};
        alarms_.emplace(due, job.id);
        time_changed_.notify();
    } else if (!ready_.contains(job.id)) {
        add_ready(job.id, job.priority, requirement);
    }
}

void Dispatcher::remember_deadline(const Job& job) {
    if (job.deadline) {
        deadlines_[job.id] = *job.deadline;
        alarms_.emplace(*job.deadline, job.id);
        time_changed_.notify();
    }
}

void Dispatcher::forget(const JobId& id) {
    deadlines_.erase(id);
    secrets_.erase(id);
}

void Dispatcher::pump() {
    if (stopping_ || pump_paused_) {
        return;
    }
    while (ready_.size() > 0) {
        const std::vector<std::shared_ptr<Worker>> workers = free_workers();
        if (workers.empty()) {
            return;
        }
        const std::vector<FreeWorker> free(workers.begin(), workers.end());
        std::vector<const scheduler::Candidate*> candidates;
        candidates.reserve(free.size());
        for (const FreeWorker& worker : free) {
            candidates.push_back(&worker);
        }
        const auto placement = ready_.place(candidates);
        if (!placement) {
            return;
        }
        launch(placement->job, workers[placement->worker]);
    }
}

std::vector<std::shared_ptr<Worker>> Dispatcher::free_workers() const {
    std::vector<std::shared_ptr<Worker>> free;
    for (auto& worker : fleet_.workers()) {
        if (worker->available() && !reserved_.contains(worker->id())) {
            free.push_back(std::move(worker));
        }
    }
    return free;
}

std::shared_ptr<Worker> Dispatcher::find_free(const std::string& requirement) const {
    std::shared_ptr<Worker> best;
    for (auto& worker : free_workers()) {
        if (worker->can_run(requirement) && (!best || worker->load() < best->load())) {
            best = std::move(worker);
        }
    }
    return best;
}

void Dispatcher::committed(const Change& change) {
    if (hub_.observer() != nullptr) {
        hub_.observer()->on_change(change.job, change.event);
    }
    hub_.publish(std::make_shared<Event>(change.event));
    if (change.job.has_webhook && webhook_) {
        webhook_();
    }
    if (!is_terminal(change.job.state)) {
        return;
    }
    forget(change.job.id);
    if (change.job.state == State::completed) {
        const double ms =
            static_cast<double>(change.job.execution_time().value_or(Millis(0)).count());
        mean_execution_ms_ = mean_execution_ms_ == 0 ? ms : 0.9 * mean_execution_ms_ + 0.1 * ms;
    }
    if (finished_) {
        finished_(change.job);
    }
}

Dispatcher::Live Dispatcher::live(const JobId& id) const {
    Live live;
    const auto seconds = [](double ms) { return static_cast<int>(ms / 1000.0 + 0.999); };
    if (const auto found = attempts_.find(id); found != attempts_.end()) {
        const Attempt& attempt = *found->second;
        live.progress = attempt.progress;
        if (!attempt.job.started_at) {
            return live;
        }
        const double elapsed_ms =
            static_cast<double>((clock_.now() - *attempt.job.started_at).count());
        if (attempt.progress && attempt.progress->value > 0.05) {
            live.estimated_remaining_s =
                seconds(elapsed_ms * (1 - attempt.progress->value) / attempt.progress->value);
        } else if (mean_execution_ms_ > 0) {
            live.estimated_remaining_s = seconds(std::max(0.0, mean_execution_ms_ - elapsed_ms));
        }
        return live;
    }
    live.queue_position = ready_.position(id);
    if (live.queue_position && mean_execution_ms_ > 0) {
        const auto workers = std::max<std::size_t>(1, fleet_.workers().size());
        const double wait_ms = mean_execution_ms_ *
                               (static_cast<double>(*live.queue_position) - 1) /
                               static_cast<double>(workers);
        live.estimated_wait_s = seconds(wait_ms);
        live.estimated_remaining_s = seconds(wait_ms + mean_execution_ms_);
    }
    return live;
}

std::vector<events::EventPtr> Dispatcher::latest(const JobId& id) const {
    std::vector<events::EventPtr> latest;
    if (const auto found = attempts_.find(id); found != attempts_.end()) {
        if (found->second->progress) {
            latest.push_back(found->second->progress_event());
        }
        if (found->second->preview_event) {
            latest.push_back(found->second->preview_event);
        }
    }
    return latest;
}

}  // namespace comfyd::jobs
