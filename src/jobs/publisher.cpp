#include "jobs/publisher.hpp"

#include <memory>

namespace comfyd::jobs {

void Publisher::tell_arrival(const Job& job, events::Arrived::How how) {
    const std::size_t unfinished = ++unfinished_[job.tenant];
    hub_.publish(job, events::Arrived{std::make_shared<const Job>(job), how, unfinished});
}

void Publisher::tell_change(const Change& change) {
    const Job& job = change.job;
    const auto counted = unfinished_.find(job.tenant);
    if (is_terminal(job.state) && counted != unfinished_.end() && --counted->second == 0) {
        unfinished_.erase(counted);
    }
    hub_.publish(
        job,
        events::Changed{
            std::make_shared<const Job>(job),
            std::make_shared<const Event>(change.event),
            unfinished(job.tenant)
        }
    );
}

std::size_t Publisher::unfinished(const std::string& tenant) const {
    const auto counted = unfinished_.find(tenant);
    return counted == unfinished_.end() ? 0 : counted->second;
}

}  // namespace comfyd::jobs
