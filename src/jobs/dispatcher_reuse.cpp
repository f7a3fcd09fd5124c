// Jobs that are answered with the outputs of another one: those that wait for one that does the
// same, and those whose turn comes when it has ended (docs/reuse.md).
#include <memory>
#include <utility>

#include "base/log.hpp"
#include "jobs/attempt.hpp"
#include "jobs/dispatcher.hpp"

namespace comfyd::jobs {

// Into the queue, or behind one that does the same. One that is to go before it takes its place.
void Dispatcher::queue_up(const Job& job, scheduler::JobKeys keys) {
    const auto leader = job.reuse_key.empty() ? std::nullopt : in_flight_.leader_for(job);
    if (leader && *leader != job.id) {
        const bool is_first =
            scheduler_.contains(*leader) && is_more_urgent(keys, scheduler_.keys_of(*leader));
        if (!is_first) {
            make_following(job, std::move(keys));
            return;
        }
        overtake(*leader, job);
    } else if (!job.reuse_key.empty()) {
        in_flight_.lead(job);
    }
    make_ready(job.id, std::move(keys));
}

// The leader waits in the queue, and from now on for the job.
void Dispatcher::overtake(const JobId& leader, const Job& job) {
    scheduler::JobKeys keys = scheduler_.keys_of(leader);
    leave(leader);
    table_.put(leader, Following{}, rank_of(keys));
    in_flight_.take_lead(job, std::move(keys));
}

// After a restart: it runs already.
void Dispatcher::lead_running(const Job& job) {
    if (job.reuse_key.empty()) {
        return;
    }
    const auto leader = in_flight_.leader_for(job);
    if (!leader) {
        in_flight_.lead(job);
    } else if (scheduler_.contains(*leader)) {
        overtake(*leader, job);
    }
}

// The job has ended, or where `ended` is nullptr it is lost to this process.
void Dispatcher::leave_run(const JobId& id, const Job* ended) {
    if (stopping_) {
        return;  // the next start finds them queued
    }
    if (ended != nullptr && can_answer(*ended)) {
        const auto source = std::make_shared<const Job>(*ended);
        for (InFlight::Follower& follower : in_flight_.end(id)) {
            tasks_.spawn("reuse", finish_follower(follower.job, std::move(follower.keys), source));
        }
    } else if (auto next = in_flight_.pass_on(id)) {
        make_ready(next->job, std::move(next->keys));
        pump();
    }
}

Task<> Dispatcher::finish_follower(
    JobId id, scheduler::JobKeys keys, std::shared_ptr<const Job> source
) {
    auto stored = co_await changes_.make(id, [this, source](const Job& job, std::uint64_t next) {
        return complete_from(job, *source, next, clock_.now());
    });
    if (stored || stopping_ || !table_.is<Following>(id)) {
        co_return;
    }
    // The disk is full: what becomes of it is seen when its turn comes.
    log::info(
        "a job could not be answered at once", {{"job", id}, {"error", stored.error().message}}
    );
    make_ready(id, std::move(keys));
    pump();
}

// REQUIRES: attempt->spec.
Task<Result<bool>> Dispatcher::answer_from_store(std::shared_ptr<Attempt> attempt) {
    auto source = co_await find_answer(
        ledger_, outputs_kept_, attempt->spec->tenant, attempt->spec->reuse_key
    );
    if (!source) {
        co_return fail(std::move(source.error()));
    }
    if (!*source) {
        co_return false;
    }
    const auto found = std::make_shared<const Job>(std::move(**source));
    auto stored =
        co_await changes_.make(attempt->id, [this, found](const Job& job, std::uint64_t next) {
            return complete_from(job, *found, next, clock_.now());
        });
    if (!stored && stored.error().code == Code::output_unavailable) {
        co_return false;  // they have gone in this moment
    }
    if (!stored) {
        co_return fail(std::move(stored.error()));
    }
    co_return true;
}

void Dispatcher::accepted_with_outputs(const Job& queued, const Change& completed) {
    announce(queued, true);
    committed(completed);
}

}  // namespace comfyd::jobs
