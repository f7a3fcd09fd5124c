// What the scheduler has decided is begun: jobs alone, or together as one prompt, and how those are
// found again after a restart.
#include <algorithm>
#include <map>
#include <utility>

#include "base/log.hpp"
#include "jobs/attempt.hpp"
#include "jobs/dispatcher.hpp"

namespace comfyd::jobs {

void Dispatcher::launch(const scheduler::Decision& decision) {
    const auto worker = placement_.confirm(decision);
    if (!worker) {
        scheduler_.add(decision.job, decision.keys);
        put_riders_back(decision);
        return;
    }
    std::shared_ptr<RunGroup> group;
    SharedRun shared;
    if (placement_.may_share(decision, *worker)) {
        shared.prompt_id = Uuid::make(clock_.now()).to_string();
        group = worker->make_group(shared.prompt_id, 1 + decision.riders.size());
    }
    auto first = make_attempt(decision, worker);
    first->jobs_together = group ? first->jobs_together : 1;
    launch(std::move(first), group, shared);
    if (!group) {
        put_riders_back(decision);
        if (!decision.riders.empty()) {
            // What it takes alone counts now.
            scheduler_.finished(decision.job, 0, clock_.now());
            scheduler_.running(decision.job, decision.worker, decision.keys, clock_.now());
        }
        return;
    }
    log::debug("placed together", {{"job", decision.job}, {"riders", decision.riders.size()}});
    for (const scheduler::Decision::Rider& rider : decision.riders) {
        scheduler::Decision own = decision;
        own.job = rider.job;
        own.keys = rider.keys;
        shared.place += 1;
        launch(make_attempt(own, worker), group, shared);
    }
}

std::shared_ptr<Attempt> Dispatcher::make_attempt(
    const scheduler::Decision& decision, std::shared_ptr<Worker> worker
) {
    auto attempt = std::make_shared<Attempt>(core_, hub_, clock_, decision.job, std::move(worker));
    attempt->keys = decision.keys;
    attempt->expected_load_s = decision.numbers.load_s;
    attempt->jobs_together = 1 + static_cast<int>(decision.riders.size());
    placement_.take_place(*attempt);
    return attempt;
}

void Dispatcher::launch(
    std::shared_ptr<Attempt> attempt, std::shared_ptr<RunGroup> group, SharedRun shared
) {
    if (group) {
        attempt->group = std::move(group);
        attempt->shared = std::move(shared);
    }
    make_attempting(attempt);
    tasks_.spawn("attempt", run_attempt(std::move(attempt), false));
}

void Dispatcher::put_riders_back(const scheduler::Decision& decision) {
    for (const scheduler::Decision::Rider& rider : decision.riders) {
        scheduler_.finished(rider.job, 0, clock_.now());
        scheduler_.add(rider.job, rider.keys);
    }
}

void Dispatcher::count_running(const std::vector<FoundAgain>& together) {
    std::vector<scheduler::Decision::Rider> riders;
    for (std::size_t i = 1; i < together.size(); ++i) {
        riders.push_back({together[i].job.id, make_keys(together[i].job, together[i].profile)});
    }
    const FoundAgain& first = together.front();
    scheduler_.running(
        first.job.id, first.job.worker, make_keys(first.job, first.profile), clock_.now(), riders
    );
}

// Those of a run that have ended already are not waited for.
void Dispatcher::reattach_groups(std::vector<FoundAgain> found) {
    std::map<std::pair<std::string, std::string>, std::vector<FoundAgain>> by_run;
    for (FoundAgain& job : found) {
        by_run[{job.job.worker, job.job.shared->prompt_id}].push_back(std::move(job));
    }
    for (auto& [run, jobs] : by_run) {
        std::size_t places = 0;
        std::set<std::size_t> taken;
        for (const FoundAgain& job : jobs) {
            places = std::max(places, job.job.shared->place + 1);
            taken.insert(job.job.shared->place);
        }
        const auto worker = fleet_.find(run.first);
        const auto group = worker ? worker->make_group(run.second, places) : nullptr;
        if (group) {
            count_running(jobs);
        }
        for (FoundAgain& job : jobs) {
            const JobId id = job.job.id;
            reattach(std::move(job.job), std::move(job.profile), group);
            table_.attempt(id)->jobs_together = group ? static_cast<int>(jobs.size()) : 1;
        }
        for (std::size_t place = 0; group && place < places; ++place) {
            if (!taken.contains(place)) {
                group->leave(place);
            }
        }
    }
}

}  // namespace comfyd::jobs
