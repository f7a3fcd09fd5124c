#include "jobs/batches.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/log.hpp"
#include "jobs/attempt.hpp"

namespace comfyd::jobs {

void Batches::launch(const scheduler::Decision& decision) {
    const auto worker = placement_.confirm(decision);
    if (!worker) {
        placement_.scheduler().add(decision.job, decision.keys);
        put_batched_back(decision);
        return;
    }
    std::shared_ptr<Batch> group;
    BatchPlace shared;
    if (placement_.may_share(decision, *worker)) {
        shared.prompt = PromptId::make(clock_.now());
        group = worker->make_group(shared.prompt, 1 + decision.batched.size());
    }
    if (!group) {
        launch_alone(decision, worker);
        return;
    }
    log::debug("placed together", {{"job", decision.job}, {"batched", decision.batched.size()}});
    scheduler::Decision own = decision;
    const auto launch_one = [&] {
        auto attempt = attempts_.make(own, worker);
        attempt->group = group;
        attempt->shared = shared;
        attempts_.launch(std::move(attempt));
        shared.place += 1;
    };
    launch_one();
    for (const scheduler::Decision::Batched& other : decision.batched) {
        own.job = other.job;
        own.keys = other.keys;
        launch_one();
    }
}

void Batches::launch_alone(const scheduler::Decision& decision, std::shared_ptr<Worker> worker) {
    put_batched_back(decision);
    if (!decision.batched.empty()) {
        // What it takes alone counts now. Before it is launched: it may be back in the queue when
        // that returns.
        auto& scheduler = placement_.scheduler();
        scheduler.finished(decision.job, 0, clock_.now());
        scheduler.running(decision.job, decision.worker, decision.keys, clock_.now());
    }
    auto attempt = attempts_.make(decision, std::move(worker));
    attempt->jobs_together = 1;
    attempts_.launch(std::move(attempt));
}

void Batches::put_batched_back(const scheduler::Decision& decision) {
    for (const scheduler::Decision::Batched& other : decision.batched) {
        placement_.scheduler().finished(other.job, 0, clock_.now());
        placement_.scheduler().add(other.job, other.keys);
    }
}

void Batches::reattach(std::vector<FoundAgain> found) {
    std::map<std::pair<std::string, PromptId>, std::vector<FoundAgain>> by_run;
    for (FoundAgain& job : found) {
        by_run[{job.job.worker, job.job.shared->prompt}].push_back(std::move(job));
    }
    for (auto& [run, jobs] : by_run) {
        reattach_together(std::move(jobs));
    }
}

// Those of a run that have ended already are not waited for.
void Batches::reattach_together(std::vector<FoundAgain> together) {
    std::size_t places = 0;
    std::set<std::size_t> taken;
    for (const FoundAgain& each : together) {
        places = std::max(places, each.job.shared->place + 1);
        taken.insert(each.job.shared->place);
    }
    const Job& first = together.front().job;
    const auto worker = fleet_.find(first.worker);
    const auto group = worker ? worker->make_group(first.shared->prompt, places) : nullptr;
    if (group) {
        count_running(together);
    }
    for (FoundAgain& each : together) {
        // All of one worker, also where it has left the fleet when the first of them has ended.
        const auto attempt =
            attempts_.reattach(std::move(each.job), std::move(each.profile), worker, group);
        attempt->jobs_together = group ? static_cast<int>(together.size()) : 1;
    }
    for (std::size_t place = 0; group && place < places; ++place) {
        if (!taken.contains(place)) {
            group->leave(place);
        }
    }
}

void Batches::count_running(const std::vector<FoundAgain>& together) {
    std::vector<scheduler::Decision::Batched> batched;
    for (std::size_t i = 1; i < together.size(); ++i) {
        batched.push_back(
            {together[i].job.id, ranking_.keys_of(together[i].job, together[i].profile)}
        );
    }
    const FoundAgain& first = together.front();
    placement_.scheduler().running(
        first.job.id,
        first.job.worker,
        ranking_.keys_of(first.job, first.profile),
        clock_.now(),
        batched
    );
}

}  // namespace comfyd::jobs
