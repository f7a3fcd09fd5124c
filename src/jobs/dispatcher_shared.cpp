// Jobs that run together as one prompt: when they may, and how they are found again after a
// restart.
#include <algorithm>
#include <map>
#include <utility>

#include "base/log.hpp"
#include "jobs/attempt.hpp"
#include "jobs/dispatcher.hpp"

namespace comfyd::jobs {

bool Dispatcher::may_share(const scheduler::Decision& decision, const Worker& worker) const {
    return !decision.riders.empty() && worker.merges() &&
           !lone_shapes_.contains(decision.keys.profile->shape, clock_.now());
}

void Dispatcher::put_riders_back(const scheduler::Decision& decision) {
    for (const scheduler::Decision::Rider& rider : decision.riders) {
        scheduler_.finished(rider.job, 0, clock_.now());
        scheduler_.add(rider.job, rider.keys);
    }
}

// Its latest start tells.
Task<std::optional<SharedRun>> Dispatcher::shared_run_of(JobId id) {
    auto events = co_await ledger_.events(id, 0);
    if (!events) {
        log::warning("events of a job cannot be read", {{"job", id}});
        co_return std::nullopt;
    }
    const auto started = std::find_if(events->rbegin(), events->rend(), [](const Event& event) {
        return event.type == EventType::started;
    });
    co_return started == events->rend() ? std::nullopt : SharedRun::from_event(started->data);
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
        by_run[{job.job.worker, job.shared.prompt_id}].push_back(std::move(job));
    }
    for (auto& [run, jobs] : by_run) {
        std::size_t places = 0;
        std::set<std::size_t> taken;
        for (const FoundAgain& job : jobs) {
            places = std::max(places, job.shared.place + 1);
            taken.insert(job.shared.place);
        }
        const auto worker = fleet_.find(run.first);
        const auto group = worker ? worker->make_group(run.second, places) : nullptr;
        if (group) {
            count_running(jobs);
        }
        for (FoundAgain& job : jobs) {
            const JobId id = job.job.id;
            reattach(
                std::move(job.job),
                std::move(job.profile),
                group,
                group ? std::optional(job.shared) : std::nullopt
            );
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
