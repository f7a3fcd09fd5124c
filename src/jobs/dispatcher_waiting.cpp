// What is asked of jobs that wait, and what is due: cancel, retry, deadlines.
#include <utility>

#include "jobs/attempt.hpp"
#include "jobs/dispatcher.hpp"

namespace comfyd::jobs {
namespace {

tl::unexpected<Error> on_a_worker() {
    return fail(Code::conflict, "the job is on a worker already");
}

}  // namespace

Task<Result<>> Dispatcher::cancel(JobId id) {
    auto changed = co_await changes_.make(id, [this](const Job& job, std::uint64_t sequence) {
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
    auto changed = co_await changes_.make(
        id,
        [this](const Job& job, std::uint64_t sequence) -> Result<Change> {
            if (job.state == State::running) {
                return on_a_worker();
            }
            return request_cancel(job, sequence, clock_.now());
        }
    );
    co_return changed ? Result<>() : fail(std::move(changed.error()));
}

Task<Result<>> Dispatcher::retry(JobId id) {
    auto spec = co_await ledger_.find_spec(id);
    if (!spec || !*spec) {
        co_return spec ? fail(Code::not_found, "no job has this id")
                       : fail(std::move(spec.error()));
    }
    auto revived = co_await changes_.make(id, [this](const Job& job, std::uint64_t sequence) {
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

void Dispatcher::ring(const JobId& id, Time now) {
    if (stopping_) {
        return;
    }
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
    auto changed = co_await changes_.make(id, [this](const Job& job, std::uint64_t sequence) {
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
        alarms_.set_soon(id);
    }
}

Task<> Dispatcher::expire_now(JobId id) {
    auto changed = co_await changes_.make(
        id,
        [this](const Job& job, std::uint64_t sequence) -> Result<Change> {
            const Time now = clock_.now();
            if (job.state == State::running) {
                return on_a_worker();
            }
            if (!job.deadline || *job.deadline > now) {
                return fail(Code::conflict, "the job was brought back without a deadline");
            }
            return expire(job, sequence, now);
        }
    );
    if (!changed && table_.contains(id)) {
        alarms_.set_soon(id);
    }
}

}  // namespace comfyd::jobs
