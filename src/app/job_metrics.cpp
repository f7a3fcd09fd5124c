#include "app/job_metrics.hpp"

#include <chrono>
#include <optional>

namespace comfyd::app {
namespace {

double seconds(Millis time) {
    return std::chrono::duration<double>(time).count();
}

// Those that never ran, or were answered with stored outputs, say nothing of it.
double seconds_or_none(std::optional<Millis> time) {
    return time ? seconds(*time) : -1.0;
}

}  // namespace

void count_jobs(jobs::Service& service, observe::Metrics& metrics) {
    service.on_used([&metrics](const std::string& worker, const jobs::Usage& usage) {
        metrics.worker_used(
            worker,
            {seconds(usage.gpu),
             seconds(usage.model_load),
             static_cast<double>(usage.images),
             usage.cost_usd}
        );
    });
    service.on_attempt_failed([&metrics](const jobs::Job& job, jobs::Cause cause) {
        metrics.attempt_failed(to_string(cause), !is_terminal(job.state));
    });
    service.on_finished([&metrics](const jobs::Job& job) {
        metrics.job_finished(
            to_string(job.state),
            seconds_or_none(job.queue_time()),
            seconds_or_none(job.execution_time())
        );
    });
}

}  // namespace comfyd::app
