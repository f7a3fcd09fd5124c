#include "jobs/dispatcher.hpp"

#include <algorithm>
#include <utility>

#include "base/crypto.hpp"
#include "base/log.hpp"

namespace comfyd::jobs {
namespace {

constexpr Millis kStoragePause{500};

double random_fraction() {
    std::uint32_t bits = 0;
    random_bytes(&bits, sizeof bits);
    return static_cast<double>(bits) / 4294967296.0;
}

class FreeWorker final : public scheduler::Candidate {
public:
    explicit FreeWorker(std::shared_ptr<Worker> worker) : worker_(std::move(worker)) {}
    bool can_run(const std::string& requirement) const override {
        return worker_->can_run(requirement);
    }
    double load() const override { return worker_->load(); }
    const std::shared_ptr<Worker>& worker() const { return worker_; }

private:
    std::shared_ptr<Worker> worker_;
};

}  // namespace

// One try of a job, from its placement to its outcome. Kept by the attempts_ map and by the
// coroutines that work on it.
class Dispatcher::Attempt final : public AttemptListener {
public:
    Attempt(
        Executor core,
        events::Hub& event_hub,
        Clock& wall_clock,
        JobId job_id,
        std::shared_ptr<Worker> on_worker
    )
        : id(job_id),
          worker(std::move(on_worker)),
          stop(core),
          change_done(core),
          hub_(event_hub),
          clock_(wall_clock) {}

    void on_progress(const Progress& now) override {
        progress = now;
        ++sequence;
        progress_event = make_event(EventType::progress);
        progress_event->data = now.to_json();
        hub_.publish(progress_event);
    }

    void on_preview(std::string bytes, std::string content_type) override {
        ++sequence;
        auto event = make_event(EventType::preview);
        event->preview = std::move(bytes);
        event->preview_type = std::move(content_type);
        event->data = {{"node_id", progress ? progress->current_node : std::string()}};
        preview_event = event;
        hub_.publish(std::move(event));
    }

    void on_output(const Output& output) override {
        ++sequence;
        auto event = make_event(EventType::output);
        event->data = {{"output", output.to_json()}};
        outputs.push_back(std::move(event));
    }

    const JobId id;
    const std::shared_ptr<Worker> worker;
    Job job;  // as the ledger has it; valid once `begun`
    bool begun = false;
    bool gone = false;  // it never began: the job is back in the queue, or ended on the way
    int priority = kPriorityDefault;
    std::string requirement;
    StopRequest stop;
    std::uint64_t sequence = 0;  // of the latest event, stored or not
    std::optional<Progress> progress;
    std::shared_ptr<Event> progress_event;
    std::shared_ptr<Event> preview_event;
    std::vector<std::shared_ptr<Event>>
        outputs;            // told when the job's end is committed: before, nobody could fetch them
    bool changing = false;  // a change of `job` is being committed
    Signal change_done;     // also when `begun` or `gone` is set

private:
    std::shared_ptr<Event> make_event(EventType type) const {
        auto event = std::make_shared<Event>();
        event->job = id;
        event->sequence = sequence;
        event->type = type;
        event->at = clock_.now();
        event->state = State::running;
        return event;
    }

    events::Hub& hub_;
    Clock& clock_;
};

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
    put_back(job, requirement);
    pump();
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
        std::vector<FreeWorker> free;
        for (auto& worker : fleet_.workers()) {
            if (worker->available() && !reserved_.contains(worker->id())) {
                free.emplace_back(std::move(worker));
            }
        }
        if (free.empty()) {
            return;
        }
        std::vector<const scheduler::Candidate*> candidates;
        candidates.reserve(free.size());
        for (const FreeWorker& worker : free) {
            candidates.push_back(&worker);
        }
        const auto placement = ready_.place(candidates);
        if (!placement) {
            return;
        }
        launch(placement->job, free[placement->worker].worker());
    }
}

void Dispatcher::launch(const JobId& id, std::shared_ptr<Worker> worker) {
    reserved_.insert(worker->id());
    auto attempt = std::make_shared<Attempt>(core_, hub_, clock_, id, std::move(worker));
    attempt->requirement = ready_.requirement_of(id);
    attempt->priority = ready_.priority_of(id);
    remove_ready(id);
    attempts_[id] = attempt;
    tasks_.spawn("attempt", run_attempt(std::move(attempt), false));
}

void Dispatcher::reattach(Job job) {
    auto worker = fleet_.find(job.worker);
    auto attempt = std::make_shared<Attempt>(core_, hub_, clock_, job.id, std::move(worker));
    attempt->sequence = next_sequence_block(job.sequence);
    if (job.cancel_requested) {
        attempt->stop.stop(Code::cancelled);
    }
    attempt->job = std::move(job);
    attempt->begun = true;
    attempts_[attempt->id] = attempt;
    tasks_.spawn("attempt", run_attempt(std::move(attempt), true));
}

Task<> Dispatcher::run_attempt(std::shared_ptr<Attempt> attempt, bool is_reattached) {
    auto assignment = co_await begin(attempt, is_reattached);
    if (attempt->worker) {
        reserved_.erase(attempt->worker->id());
    }
    if (!assignment) {
        attempt->gone = true;
        attempts_.erase(attempt->id);
        attempt->change_done.notify();
        if (assignment.error().code == Code::not_found ||
            assignment.error().code == Code::conflict) {
            // The job ended while it was on its way here; there is nothing to run.
            log::debug("placed job is no longer waiting", {{"job", attempt->id}});
            pump();
            co_return;
        }
        // Storage trouble: the job goes back to where it was, after a rest instead of spinning.
        log::warning(
            "a job could not be started",
            {{"job", attempt->id}, {"error", assignment.error().message}}
        );
        pump_paused_ = true;
        co_await sleep_for(kStoragePause);
        pump_paused_ = false;
        if (stopping_) {
            co_return;
        }
        if (attempt->begun) {
            reattach(attempt->job);
        } else {
            add_ready(attempt->id, attempt->priority, attempt->requirement);
        }
        pump();
        co_return;
    }
    Result<AttemptResult> outcome = fail(
        Code::worker_lost, "the worker '" + attempt->job.worker + "' is no longer part of the fleet"
    );
    if (attempt->worker) {
        outcome = co_await attempt->worker->run(std::move(*assignment), *attempt, attempt->stop);
    }
    co_await conclude(attempt, std::move(outcome));
    attempts_.erase(attempt->id);
    pump();
}

Task<Result<Assignment>> Dispatcher::begin(std::shared_ptr<Attempt> attempt, bool is_reattached) {
    auto spec = co_await ledger_.find_spec(attempt->id);
    if (!spec) {
        co_return fail(std::move(spec.error()));
    }
    if (!*spec) {
        co_return fail(Code::not_found, "the job's workflow is gone");
    }
    if (!is_reattached) {
        auto found = co_await ledger_.find(attempt->id);
        if (!found) {
            co_return fail(std::move(found.error()));
        }
        if (!*found) {
            co_return fail(Code::not_found, "the job is gone");
        }
        attempt->job = std::move(**found);
        attempt->sequence = attempt->job.sequence;
        const std::string worker = attempt->worker->id();
        const Time now = clock_.now();
        auto started =
            co_await change_attempt(attempt, [worker, now](const Job& job, std::uint64_t sequence) {
                return jobs::start(job, worker, sequence, now);
            });
        if (!started) {
            co_return fail(std::move(started.error()));
        }
        attempt->begun = true;
        attempt->change_done.notify();
    }
    Assignment assignment;
    assignment.job = attempt->id;
    assignment.attempt = attempt->job.attempt;
    assignment.prompt_id = prompt_id(attempt->id, attempt->job.attempt);
    assignment.tenant = attempt->job.tenant;
    assignment.workflow = std::move((*spec)->workflow);
    assignment.extra_data = std::move((*spec)->extra_data);
    if (const auto secret = secrets_.find(attempt->id); secret != secrets_.end()) {
        for (const auto& entry : secret->second) {
            assignment.extra_data[entry.key()] = entry.value();
        }
    }
    assignment.timeout = attempt->job.timeout;
    assignment.reattach = is_reattached;
    attempt->requirement = std::move((*spec)->requirement);
    co_return assignment;
}

Task<> Dispatcher::conclude(std::shared_ptr<Attempt> attempt, Result<AttemptResult> outcome) {
    if (outcome) {
        auto result = std::make_shared<AttemptResult>(std::move(*outcome));
        co_await settle(attempt, [this, result](const Job& job, std::uint64_t sequence) {
            return complete(job, result->outputs, result->ui_outputs, sequence, clock_.now());
        });
        co_return;
    }
    const Error& error = outcome.error();
    if (error.code == Code::shutting_down) {
        co_return;  // the next start re-attaches
    }
    if (error.code == Code::cancelled && attempt->job.cancel_requested) {
        co_await settle(attempt, [this](const Job& job, std::uint64_t sequence) {
            return confirm_cancel(job, sequence, clock_.now());
        });
        co_return;
    }
    if (error.code == Code::deadline_exceeded) {
        co_await settle(attempt, [this](const Job& job, std::uint64_t sequence) {
            return expire(job, sequence, clock_.now());
        });
        co_return;
    }
    const Failure failure = Failure::from(error);
    log::info(
        "attempt failed",
        {{"job", attempt->id},
         {"attempt", attempt->job.attempt},
         {"worker", attempt->job.worker},
         {"code", to_string(failure.code)},
         {"error", failure.message}}
    );
    const Millis delay = retry_delay(attempt->job.attempt, random_fraction());
    co_await settle(
        attempt,
        [this, failure, delay](const Job& job, std::uint64_t sequence) -> Result<Change> {
            const Time now = clock_.now();
            if (job.cancel_requested) {
                return confirm_cancel(job, sequence, now);
            }
            if (may_retry(job, failure)) {
                return retry_later(job, failure, now + delay, sequence, now);
            }
            return fail_job(job, failure, sequence, now);
        }
    );
}

// Commits the end of an attempt. A full or locked disk must not lose a finished picture: it is
// tried until it works or the process stops (then the job is still `running` in the ledger, and the
// next start finds the result on the worker).
Task<> Dispatcher::settle(std::shared_ptr<Attempt> attempt, Step step) {
    for (;;) {
        auto done = co_await change_attempt(attempt, step);
        if (done) {
            break;
        }
        if (done.error().code == Code::conflict) {
            log::error(
                "the end of an attempt does not fit the job",
                {{"job", attempt->id}, {"error", done.error().message}}
            );
            co_return;
        }
        log::warning(
            "the end of a job could not be stored yet",
            {{"job", attempt->id}, {"error", done.error().message}}
        );
        const bool goes_on = co_await sleep_for(kStoragePause);
        if (!goes_on) {
            co_return;
        }
    }
    if (attempt->job.state == State::retry_waiting) {
        put_back(attempt->job, attempt->requirement);
    }
}

// One change of an attempt's job at a time: a cancel may come while its end is being committed.
Task<Result<>> Dispatcher::change_attempt(std::shared_ptr<Attempt> attempt, Step step) {
    while (attempt->changing) {
        co_await attempt->change_done.wait();
    }
    auto change = step(attempt->job, attempt->sequence + 1);
    if (!change) {
        co_return fail(std::move(change.error()));
    }
    attempt->changing = true;
    auto stored = co_await ledger_.commit(*change);
    attempt->changing = false;
    attempt->change_done.notify();
    if (!stored) {
        co_return fail(std::move(stored.error()));
    }
    attempt->job = change->job;
    attempt->sequence = std::max(attempt->sequence, change->event.sequence);
    if (change->job.state == State::completed) {
        for (auto& output : attempt->outputs) {
            hub_.publish(std::move(output));
        }
    }
    committed(*change);
    co_return Result<>();
}

// A change of a job that is not on a worker. Between the read and the commit nobody else may take
// the job.
Task<Result<>> Dispatcher::change_waiting(JobId id, Step step) {
    if (!changing_.insert(id).second) {
        co_return fail(Code::conflict, "the job is being changed right now; try again");
    }
    auto found = co_await ledger_.find(id);
    if (!found || !*found) {
        changing_.erase(id);
        co_return found ? fail(Code::not_found, "no job has this id")
                        : fail(std::move(found.error()));
    }
    auto change = step(**found, (*found)->sequence + 1);
    if (!change) {
        changing_.erase(id);
        co_return fail(std::move(change.error()));
    }
    auto stored = co_await ledger_.commit(*change);
    changing_.erase(id);
    if (!stored) {
        co_return fail(std::move(stored.error()));
    }
    committed(*change);
    co_return Result<>();
}

void Dispatcher::committed(const Change& change) {
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

Task<Result<>> Dispatcher::cancel(JobId id) {
    const auto request = [this](const Job& job, std::uint64_t sequence) {
        return request_cancel(job, sequence, clock_.now());
    };
    if (const auto found = attempts_.find(id); found != attempts_.end()) {
        auto attempt = found->second;
        while (!attempt->begun && !attempt->gone) {
            co_await attempt->change_done.wait();
        }
        if (attempt->gone) {
            auto again = co_await cancel(id);
            co_return again;
        }
        if (attempt->job.cancel_requested) {
            co_return Result<>();
        }
        auto stored = co_await change_attempt(attempt, request);
        if (stored) {
            attempt->stop.stop(Code::cancelled);
        }
        co_return stored;
    }
    const bool was_ready = ready_.contains(id);
    const int priority = was_ready ? ready_.priority_of(id) : 0;
    const std::string requirement = was_ready ? ready_.requirement_of(id) : std::string();
    remove_ready(id);
    const auto waiting = waiting_.extract(id);
    auto stored = co_await change_waiting(id, request);
    if (!stored && was_ready) {
        add_ready(id, priority, requirement);
        pump();
    } else if (!stored && !waiting.empty()) {
        waiting_[id] = waiting.mapped();
        alarms_.emplace(waiting.mapped().not_before, id);
        time_changed_.notify();
    }
    co_return stored;
}

Task<Result<>> Dispatcher::retry(JobId id) {
    auto spec = co_await ledger_.find_spec(id);
    if (!spec || !*spec) {
        co_return spec ? fail(Code::not_found, "no job has this id")
                       : fail(std::move(spec.error()));
    }
    auto revived = std::make_shared<Job>();
    auto stored =
        co_await change_waiting(id, [this, revived](const Job& job, std::uint64_t sequence) {
            auto change = revive(job, sequence, clock_.now());
            if (change) {
                *revived = change->job;
            }
            return change;
        });
    if (stored) {
        enqueue(*revived, (*spec)->requirement, {});
    }
    co_return stored;
}

Task<> Dispatcher::watch_time() {
    for (;;) {
        const Time now = clock_.now();
        while (!alarms_.empty() && alarms_.begin()->first <= now) {
            const JobId id = alarms_.begin()->second;
            alarms_.erase(alarms_.begin());
            if (const auto waiting = waiting_.find(id);
                waiting != waiting_.end() && waiting->second.not_before <= now) {
                tasks_.spawn("retry", requeue_later(id));
            }
            const auto deadline = deadlines_.find(id);
            if (deadline == deadlines_.end() || deadline->second > now) {
                continue;
            }
            if (const auto attempt = attempts_.find(id); attempt != attempts_.end()) {
                attempt->second->stop.stop(Code::deadline_exceeded);
            } else {
                tasks_.spawn("expiry", expire_waiting(id));
            }
        }
        const Millis pause =
            alarms_.empty() ? Millis(60'000)
                            : std::clamp(alarms_.begin()->first - now, Millis(1), Millis(60'000));
        co_await time_changed_.wait_for(pause);
        const bool stop = co_await is_cancelled();
        if (stop || stopping_) {
            co_return;
        }
    }
}

Task<> Dispatcher::requeue_later(JobId id) {
    const auto waiting = waiting_.extract(id);
    if (waiting.empty()) {
        co_return;
    }
    auto job = std::make_shared<Job>();
    auto stored =
        co_await change_waiting(id, [this, job](const Job& current, std::uint64_t sequence) {
            auto change = requeue(current, sequence, clock_.now());
            if (change) {
                *job = change->job;
            }
            return change;
        });
    if (stored) {
        put_back(*job, waiting.mapped().requirement);
        pump();
    } else if (stored.error().code != Code::conflict && stored.error().code != Code::not_found) {
        waiting_[id] = Waiting{clock_.now() + kStoragePause, waiting.mapped().requirement};
        alarms_.emplace(waiting_[id].not_before, id);
        time_changed_.notify();
    }
}

Task<> Dispatcher::expire_waiting(JobId id) {
    const bool was_ready = ready_.contains(id);
    const int priority = was_ready ? ready_.priority_of(id) : 0;
    const std::string requirement = was_ready ? ready_.requirement_of(id) : std::string();
    remove_ready(id);
    waiting_.erase(id);
    auto stored = co_await change_waiting(id, [this](const Job& job, std::uint64_t sequence) {
        return expire(job, sequence, clock_.now());
    });
    if (!stored && was_ready && stored.error().code != Code::conflict) {
        add_ready(id, priority, requirement);
        alarms_.emplace(clock_.now() + kStoragePause, id);
        time_changed_.notify();
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
        if (found->second->progress_event) {
            latest.push_back(found->second->progress_event);
        }
        if (found->second->preview_event) {
            latest.push_back(found->second->preview_event);
        }
    }
    return latest;
}

}  // namespace comfyd::jobs
