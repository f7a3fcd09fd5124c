#include "jobs/dues.hpp"

#include "jobs/attempt.hpp"

namespace comfyd::jobs {

void Dues::ring(const JobId& id, Time now) {
    if (is_stopping_) {
        return;
    }
    const auto deadline = table_.deadline(id);
    const auto attempt = table_.attempt(id);
    if (deadline && *deadline <= now) {
        if (attempt && attempt->begun) {
            attempt->stop.stop(Code::deadline_exceeded);
        } else {
            tasks_.spawn("expiry", expire_now(id, now));
        }
        return;
    }
    const RetryWaiting* waiting = table_.retry_waiting(id);
    if (waiting != nullptr && waiting->not_before <= now) {
        tasks_.spawn("retry", requeue_now(id));
    }
}

Task<> Dues::requeue_now(JobId id) {
    auto changed = co_await changes_.make(id, [this](const Job& job, std::uint64_t sequence) {
        return requeue(job, sequence, clock_.now());
    });
    const RetryWaiting* waiting = table_.retry_waiting(id);
    if (waiting == nullptr) {
        co_return;
    }
    if (changed) {
        whereabouts_.put_back(*changed, scheduler::ProfilePtr(waiting->keys.profile));
        queued_();
    } else if (changed.error().code == Code::conflict || changed.error().code == Code::not_found) {
        whereabouts_.forget(id);
    } else {
        alarms_.set_soon(id);
    }
}

// `due`: the clock may be behind it, where it was set back.
Task<> Dues::expire_now(JobId id, Time due) {
    auto changed = co_await changes_.make(
        id,
        [this, due](const Job& job, std::uint64_t sequence) -> Result<Change> {
            if (job.state == State::running) {
                return fail(Code::conflict, "the job is on a worker already");
            }
            if (!job.deadline || *job.deadline > due) {
                return fail(Code::conflict, "the job was brought back without a deadline");
            }
            return expire(job, sequence, clock_.now());
        }
    );
    if (!changed && table_.contains(id)) {
        alarms_.set_soon(id);
    }
}

}  // namespace comfyd::jobs
