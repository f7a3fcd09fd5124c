// Changes of jobs that are not on a worker: cancel, retry, alarms for retries and deadlines.
#include <algorithm>
#include <utility>

#include "jobs/attempt.hpp"
#include "jobs/dispatcher.hpp"

namespace comfyd::jobs {

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
    const bool was_ready = scheduler_.contains(id);
    const scheduler::JobKeys keys = was_ready ? scheduler_.keys_of(id) : scheduler::JobKeys{};
    remove_ready(id);
    const auto waiting = waiting_.extract(id);
    auto stored = co_await change_waiting(id, request);
    if (!stored && was_ready) {
        add_ready(id, keys);
        pump();
    } else if (!stored && !waiting.empty()) {
        waiting_[id] = waiting.mapped();
        alarms_.emplace(waiting.mapped().not_before, id);
        time_changed_.notify();
    }
    co_return stored;
}

Task<Result<>> Dispatcher::cancel_waiting(JobId id) {
    if (attempts_.contains(id)) {
        co_return fail(Code::conflict, "the job is on a worker already");
    }
    auto stored = co_await cancel(id);
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
        enqueue(
            *revived, known_profile((*spec)->profile, (*spec)->requirement), {}, content_of(**spec)
        );
        start_waiting();
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
        if (wake_at_ && *wake_at_ <= now) {
            pump();
        }
        Millis pause(60'000);
        if (!alarms_.empty()) {
            pause = std::min(pause, alarms_.begin()->first - now);
        }
        if (wake_at_) {
            pause = std::min(pause, *wake_at_ - now);
        }
        pause = std::max(pause, Millis(1));
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
        put_back(*job, waiting.mapped().keys.profile);
        pump();
    } else if (stored.error().code != Code::conflict && stored.error().code != Code::not_found) {
        waiting_[id] = Waiting{clock_.now() + kStoragePause, waiting.mapped().keys};
        alarms_.emplace(waiting_[id].not_before, id);
        time_changed_.notify();
    }
}

Task<> Dispatcher::expire_waiting(JobId id) {
    const bool was_ready = scheduler_.contains(id);
    const scheduler::JobKeys keys = was_ready ? scheduler_.keys_of(id) : scheduler::JobKeys{};
    remove_ready(id);
    waiting_.erase(id);
    auto stored = co_await change_waiting(id, [this](const Job& job, std::uint64_t sequence) {
        return expire(job, sequence, clock_.now());
    });
    const bool is_waiting = was_ready || in_flight_.followed_by(id);
    if (!stored && is_waiting && stored.error().code != Code::conflict) {
        if (was_ready) {
            add_ready(id, keys);
        }
        alarms_.emplace(clock_.now() + kStoragePause, id);
        time_changed_.notify();
    }
}

}  // namespace comfyd::jobs
