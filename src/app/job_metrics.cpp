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

void count_jobs(jobs::Service& service, observe::Metrics& metrics, bool names_tenants) {
    service.on_used([&metrics, names_tenants](const jobs::Job& job, const jobs::Usage& usage) {
        if (names_tenants) {
            metrics.job_used(
                job.tenant, job.workflow_id, static_cast<double>(usage.images), usage.cost_usd
            );
        }
        metrics.worker_used(
            job.worker,
            {seconds(usage.gpu),
             seconds(usage.model_load),
             static_cast<double>(usage.images),
             usage.cost_usd}
        );
    });
    service.on_attempt_failed([&metrics](const jobs::Job& job, jobs::Cause cause) {
        metrics.attempt_failed(to_string(cause), !is_terminal(job.state));
    });
    service.on_prewarmed([&metrics](std::string_view outcome) { metrics.prewarmed(outcome); });
    service.on_finished([&metrics](const jobs::Job& job) {
        metrics.job_finished(
            to_string(job.state),
            seconds_or_none(job.queue_time()),
            seconds_or_none(job.execution_time())
        );
    });
}

}  // namespace comfyd::app
