// Changes of jobs, and when they are due: cancel, retry, alarms for retries and deadlines.
#include <algorithm>
#include <utility>

#include "jobs/attempt.hpp"
#include "jobs/dispatcher.hpp"

namespace comfyd::jobs {
namespace {

// Another writer may be faster so many times in a row; then something is wrong.
constexpr int kRoundsMax = 100;

tl::unexpected<Error> on_a_worker() {
    return fail(Code::conflict, "the job is on a worker already");
}

}  // namespace

void Dispatcher::hold(const JobId& id) {
    auto& keys = changing_[id];
    if (scheduler_.contains(id)) {
        keys = scheduler_.keys_of(id);
        scheduler_.remove(id);
    }
}

void Dispatcher::release(const JobId& id) {
    auto held = changing_.extract(id);
    if (held.mapped()) {
        scheduler_.add(id, std::move(*held.mapped()));
        pump();
    }
    change_done_.notify();
}

Task<Result<Job>> Dispatcher::change(JobId id, Step step) {
    while (changing_.contains(id)) {
        const bool is_told = co_await change_done_.wait();
        if (!is_told) {
            co_return fail(Code::shutting_down, "comfyd is shutting down");
        }
    }
    hold(id);
    auto changed = co_await change_held(id, std::move(step));
    release(id);
    co_return changed;
}

Task<Result<Job>> Dispatcher::change_held(JobId id, Step step) {
    for (int round = 0; round < kRoundsMax; ++round) {
        const auto attempt = table_.attempt(id);
        Job job;
        if (attempt && attempt->begun && round == 0) {
            job = attempt->job;
        } else {
            auto found = co_await ledger_.find(id);
            if (!found || !*found) {
                co_return found ? fail(Code::not_found, "no job has this id")
                                : fail(std::move(found.error()));
            }
            job = std::move(**found);
        }
        const auto sequence = std::max(job.sequence, attempt ? attempt->sequence : 0) + 1;
        auto change = step(job, sequence);
        if (!change) {
            co_return fail(std::move(change.error()));
        }
        if (attempt) {
            attempt->sequence = sequence;
            attempt->changing = true;
        }
        auto stored = co_await ledger_.commit(*change);
        if (attempt) {
            attempt->changing = false;
        }
        if (stored) {
            if (attempt) {
                attempt->job = change->job;
                attempt->begun = attempt->begun || change->job.state == State::running;
            }
            if (attempt && change->job.state == State::completed) {
                for (auto& output : attempt->outputs) {
                    hub_.publish(std::move(output));
                }
            }
            committed(*change);
            co_return std::move(change->job);
        }
        if (stored.error().code != Code::conflict) {
            co_return fail(std::move(stored.error()));
        }
    }
    co_return fail(Code::storage_unavailable, "the job is changed by others all the time");
}

Task<Result<>> Dispatcher::cancel(JobId id) {
    auto changed = co_await change(id, [this](const Job& job, std::uint64_t sequence) {
        return request_cancel(job, sequence, clock_.now());
    });
    if (!changed) {
        co_return fail(std::move(changed.error()));
    }
    if (const auto attempt = table_.attempt(id); attempt && changed->cancel_requested) {
        attempt->stop.stop(Code::cancelled);
    }
    co_return Result<>();
}

Task<Result<>> Dispatcher::cancel_waiting(JobId id) {
    auto changed =
        co_await change(id, [this](const Job& job, std::uint64_t sequence) -> Result<Change> {
            if (job.state == State::running) {
                return on_a_worker();
            }
            return request_cancel(job, sequence, clock_.now());
        });
    co_return changed ? Result<>() : fail(std::move(changed.error()));
}

Task<Result<>> Dispatcher::retry(JobId id) {
    auto spec = co_await ledger_.find_spec(id);
    if (!spec || !*spec) {
        co_return spec ? fail(Code::not_found, "no job has this id")
                       : fail(std::move(spec.error()));
    }
    auto revived = co_await change(id, [this](const Job& job, std::uint64_t sequence) {
        return revive(job, sequence, clock_.now());
    });
    if (!revived) {
        co_return fail(std::move(revived.error()));
    }
    enqueue(
        *revived, known_profile((*spec)->profile, (*spec)->requirement), {}, content_of(**spec)
    );
    start_waiting();
    co_return Result<>();
}

Task<> Dispatcher::watch_time() {
    for (;;) {
        const Time now = clock_.now();
        while (!alarms_.empty() && alarms_.begin()->first <= now) {
            const JobId id = alarms_.begin()->second;
            alarms_.erase(alarms_.begin());
            ring(id, now);
        }
        if (rests_until_ && *rests_until_ <= now) {
            rests_until_.reset();
            pump();
        }
        if (wake_at_ && *wake_at_ <= now) {
            pump();
        }
        Millis pause(60'000);
        if (!alarms_.empty()) {
            pause = std::min(pause, alarms_.begin()->first - now);
        }
        for (const auto& wake : {wake_at_, rests_until_}) {
            if (wake) {
                pause = std::min(pause, *wake - now);
            }
        }
        pause = std::max(pause, Millis(1));
        co_await time_changed_.wait_for(pause);
        const bool stop = co_await is_cancelled();
        if (stop || stopping_) {
            co_return;
        }
    }
}

void Dispatcher::ring(const JobId& id, Time now) {
    const auto deadline = table_.deadline(id);
    const auto attempt = table_.attempt(id);
    if (deadline && *deadline <= now) {
        if (attempt && attempt->begun) {
            attempt->stop.stop(Code::deadline_exceeded);
        } else {
            tasks_.spawn("expiry", expire_now(id));
        }
        return;
    }
    const RetryWaiting* waiting = table_.retry_waiting(id);
    if (waiting != nullptr && waiting->not_before <= now) {
        tasks_.spawn("retry", requeue_now(id));
    }
}

Task<> Dispatcher::requeue_now(JobId id) {
    auto changed = co_await change(id, [this](const Job& job, std::uint64_t sequence) {
        return requeue(job, sequence, clock_.now());
    });
    const RetryWaiting* waiting = table_.retry_waiting(id);
    if (waiting == nullptr) {
        co_return;
    }
    if (changed) {
        put_back(*changed, scheduler::ProfilePtr(waiting->keys.profile));
        pump();
    } else if (changed.error().code == Code::conflict || changed.error().code == Code::not_found) {
        forget(id);
    } else {
        set_alarm(clock_.now() + kStoragePause, id);
    }
}

Task<> Dispatcher::expire_now(JobId id) {
    auto changed =
        co_await change(id, [this](const Job& job, std::uint64_t sequence) -> Result<Change> {
            const Time now = clock_.now();
            if (job.state == State::running) {
                return on_a_worker();
            }
            if (!job.deadline || *job.deadline > now) {
                return fail(Code::conflict, "the job was brought back without a deadline");
            }
            return expire(job, sequence, now);
        });
    if (!changed && table_.contains(id)) {
        set_alarm(clock_.now() + kStoragePause, id);
    }
}

}  // namespace comfyd::jobs
