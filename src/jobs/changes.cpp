#include "jobs/changes.hpp"

#include <algorithm>
#include <utility>

#include "jobs/attempt.hpp"

namespace comfyd::jobs {
namespace {

// Another writer may be faster so many times in a row; then something is wrong.
constexpr int kRoundsMax = 100;

}  // namespace

void Changes::queue(const JobId& id, scheduler::JobKeys keys) {
    if (const auto held = held_.find(id); held != held_.end()) {
        held->second = std::move(keys);
    } else {
        scheduler_.add(id, std::move(keys));
    }
}

void Changes::unqueue(const JobId& id) {
    scheduler_.remove(id);
    if (const auto held = held_.find(id); held != held_.end()) {
        held->second.reset();
    }
}

void Changes::hold(const JobId& id) {
    auto& keys = held_[id];
    if (scheduler_.contains(id)) {
        keys = scheduler_.keys_of(id);
        scheduler_.remove(id);
    }
}

void Changes::release(const JobId& id) {
    auto held = held_.extract(id);
    if (held.mapped()) {
        scheduler_.add(id, std::move(*held.mapped()));
        queued_();
    }
    done_.notify();
}

Task<Result<Job>> Changes::make(JobId id, Step step) {
    while (held_.contains(id)) {
        const bool is_told = co_await done_.wait();
        if (!is_told) {
            co_return fail(Code::shutting_down, "comfyd is shutting down");
        }
    }
    hold(id);
    auto changed = co_await make_held(id, std::move(step));
    release(id);
    co_return changed;
}

Task<Result<Job>> Changes::make_held(JobId id, Step step) {
    for (int round = 0; round < kRoundsMax; ++round) {
        const auto attempt = table_.attempt(id);
        Job job;
        if (attempt && attempt->begun && round == 0) {
            job = attempt->job;
        } else {
            auto found = co_await read(id);
            if (!found) {
                co_return fail(std::move(found.error()));
            }
            job = std::move(*found);
        }
        const auto sequence =
            std::max({job.sequence, attempt ? attempt->sequence : 0, table_.told(id)}) + 1;
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
            tell(*change);
            co_return std::move(change->job);
        }
        if (stored.error().code != Code::conflict) {
            co_return fail(std::move(stored.error()));
        }
    }
    co_return fail(Code::storage_unavailable, "the job is changed by others all the time");
}

Task<Result<Job>> Changes::read(JobId id) {
    auto found = co_await ledger_.find(id);
    if (!found) {
        co_return fail(std::move(found.error()));
    }
    if (!*found) {
        co_return fail(Code::not_found, "no job has this id");
    }
    co_return std::move(**found);
}

void Changes::tell(const Change& change) {
    if (const auto attempt = table_.attempt(change.job.id)) {
        attempt->job = change.job;
        attempt->begun = attempt->begun || change.job.state == State::running;
        if (is_terminal(change.job.state) && !change.job.outputs.empty()) {
            for (auto& output : attempt->outputs) {
                hub_.publish(change.job, events::Shown{std::move(output)});
            }
        }
    }
    committed_(change);
}

}  // namespace comfyd::jobs
