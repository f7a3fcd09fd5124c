#include "jobs/reuse.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/log.hpp"

namespace comfyd::jobs {
namespace {

std::string run_of(const Job& job) {
    return job.reuse_key + job.tenant;  // all keys have one length
}

}  // namespace

bool can_answer(const Job& job) {
    return job.state == State::completed && (!job.outputs.empty() || !job.ui_outputs.empty());
}

Task<Result<std::optional<Job>>> find_answer(
    Ledger& ledger, OutputsKept kept, std::string tenant, std::string reuse_key
) {
    auto found = co_await ledger.find_reusable(tenant, std::move(reuse_key));
    if (!found) {
        co_return fail(std::move(found.error()));
    }
    if (!*found || !can_answer(**found)) {
        co_return std::nullopt;
    }
    if (kept && !(*found)->outputs.empty()) {
        auto there = co_await kept(std::move(tenant), (*found)->outputs);
        if (!there || !*there) {
            log::info("the outputs of a job are gone; it runs again", {{"job", (*found)->id}});
            co_return std::nullopt;
        }
    }
    co_return std::move(*found);
}

bool is_more_urgent(const scheduler::JobKeys& a, const scheduler::JobKeys& b) {
    return std::pair(!a.batch, a.priority) > std::pair(!b.batch, b.priority);
}

std::optional<JobId> Coalescing::leader_for(const Job& job) const {
    const auto run = runs_.find(run_of(job));
    return run == runs_.end() ? std::nullopt : std::optional(run->second.leader);
}

void Coalescing::lead(const Job& job) {
    std::string key = run_of(job);
    const auto [run, is_new] = runs_.try_emplace(key, Run{job.id, {}});
    COMFYD_ASSERT(is_new || run->second.leader == job.id);
    leads_.insert_or_assign(job.id, std::move(key));
}

void Coalescing::follow(const Job& job, scheduler::JobKeys keys) {
    std::string key = run_of(job);
    Run& run = runs_.at(key);
    COMFYD_ASSERT(run.leader != job.id);
    run.followers.insert_or_assign(job.id, std::move(keys));
    follows_.insert_or_assign(job.id, std::move(key));
}

void Coalescing::take_lead(const Job& job, scheduler::JobKeys of_former) {
    std::string key = run_of(job);
    Run& run = runs_.at(key);
    COMFYD_ASSERT(run.leader != job.id);
    leads_.erase(run.leader);
    follows_.insert_or_assign(run.leader, key);
    run.followers.insert_or_assign(run.leader, std::move(of_former));
    run.leader = job.id;
    leads_.insert_or_assign(job.id, std::move(key));
}

std::optional<JobId> Coalescing::followed_by(const JobId& follower) const {
    const auto found = follows_.find(follower);
    return found == follows_.end() ? std::nullopt : std::optional(runs_.at(found->second).leader);
}

std::optional<scheduler::JobKeys> Coalescing::drop_follower(const JobId& follower) {
    const auto found = follows_.extract(follower);
    if (found.empty()) {
        return std::nullopt;
    }
    return std::move(runs_.at(found.mapped()).followers.extract(follower).mapped());
}

std::vector<Coalescing::Follower> Coalescing::end(const JobId& leader) {
    std::vector<Follower> freed;
    const auto led = leads_.extract(leader);
    if (led.empty()) {
        return freed;
    }
    auto run = runs_.extract(led.mapped());
    for (auto& [id, keys] : run.mapped().followers) {
        follows_.erase(id);
        freed.push_back({id, std::move(keys)});
    }
    return freed;
}

std::optional<Coalescing::Follower> Coalescing::pass_on(const JobId& leader) {
    auto led = leads_.extract(leader);
    if (led.empty()) {
        return std::nullopt;
    }
    const auto run = runs_.find(led.mapped());
    auto& followers = run->second.followers;
    if (followers.empty()) {
        runs_.erase(run);
        return std::nullopt;
    }
    auto next = followers.begin();
    for (auto other = std::next(next); other != followers.end(); ++other) {
        if (is_more_urgent(other->second, next->second)) {
            next = other;
        }
    }
    Follower chosen{next->first, std::move(next->second)};
    followers.erase(next);
    follows_.erase(chosen.job);
    run->second.leader = chosen.job;
    leads_.insert_or_assign(chosen.job, std::move(led.mapped()));
    return chosen;
}

}  // namespace comfyd::jobs
