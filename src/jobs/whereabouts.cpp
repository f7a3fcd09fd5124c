#include "jobs/whereabouts.hpp"

#include "jobs/attempt.hpp"

namespace comfyd::jobs {
namespace {

std::size_t rank_of(const scheduler::JobKeys& keys) {
    return keys.batch ? 0 : static_cast<std::size_t>(keys.priority);
}

}  // namespace

void Whereabouts::put_back(const Job& job, scheduler::ProfilePtr profile, std::uint64_t content) {
    const scheduler::ProfilePtr needed = profile;
    auto keys = ranking_.keys_of(job, std::move(profile));
    if (job.state == State::retry_waiting) {
        make_retry_waiting(job, std::move(keys));
    } else {
        keys.content = content;
        queue_up(job, std::move(keys));
    }
    remember_deadline(job);
    if (waits_) {
        waits_(job, needed->requirement);
    }
}

// Into the queue, or behind one that does the same. One that is to go before it takes its place.
void Whereabouts::queue_up(const Job& job, scheduler::JobKeys keys) {
    const auto leader = job.reuse_key.empty() ? std::nullopt : coalescing_.leader_for(job);
    if (leader && *leader != job.id) {
        const auto& scheduler = placement_.scheduler();
        const bool is_first =
            scheduler.contains(*leader) && is_more_urgent(keys, scheduler.keys_of(*leader));
        if (!is_first) {
            make_following(job, std::move(keys));
            return;
        }
        overtake(*leader, job);
    } else if (!job.reuse_key.empty()) {
        coalescing_.lead(job);
    }
    make_ready(job.id, std::move(keys));
}

void Whereabouts::make_ready(const JobId& id, scheduler::JobKeys keys) {
    leave(id);
    table_.put(id, Ready{}, rank_of(keys));
    changes_.queue(id, std::move(keys));
    if (ready_) {
        ready_();
    }
}

void Whereabouts::make_following(const Job& job, scheduler::JobKeys keys) {
    leave(job.id);
    table_.put(job.id, Coalesced{}, rank_of(keys));
    coalescing_.follow(job, std::move(keys));
}

void Whereabouts::make_retry_waiting(const Job& job, scheduler::JobKeys keys) {
    leave(job.id);
    const Time not_before = job.not_before.value_or(clock_.now());
    const std::size_t rank = rank_of(keys);
    table_.put(job.id, std::make_unique<RetryWaiting>(not_before, std::move(keys)), rank);
    alarms_.set(not_before, job.id);
}

void Whereabouts::make_attempting(std::shared_ptr<Attempt> attempt) {
    const JobId id = attempt->id;
    const std::size_t rank = rank_of(attempt->keys);
    leave(id);
    table_.put(id, std::move(attempt), rank);
}

void Whereabouts::overtake(const JobId& leader, const Job& job) {
    scheduler::JobKeys keys = placement_.scheduler().keys_of(leader);
    leave(leader);
    table_.put(leader, Coalesced{}, rank_of(keys));
    coalescing_.take_lead(job, std::move(keys));
}

void Whereabouts::lead_running(const Job& job) {
    if (job.reuse_key.empty()) {
        return;
    }
    const auto leader = coalescing_.leader_for(job);
    if (!leader) {
        coalescing_.lead(job);
    } else if (placement_.scheduler().contains(*leader)) {
        overtake(*leader, job);
    }
}

void Whereabouts::remember_deadline(const Job& job) {
    if (job.deadline && table_.deadline(job.id) != job.deadline) {
        table_.set_deadline(job.id, *job.deadline);
        alarms_.set(*job.deadline, job.id);
    }
}

void Whereabouts::forget(const JobId& id) {
    if (const auto deadline = table_.deadline(id)) {
        alarms_.clear(*deadline, id);
    }
    leave(id);
    table_.remove(id);
}

void Whereabouts::leave(const JobId& id) {
    if (const auto attempt = table_.attempt(id); attempt && !attempt->begun) {
        placement_.give_up_place(*attempt);
    }
    changes_.unqueue(id);
    coalescing_.drop_follower(id);
}

}  // namespace comfyd::jobs
