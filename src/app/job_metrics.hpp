// What the series of Prometheus tell of jobs.
#pragma once

#include "jobs/service.hpp"
#include "observe/metrics.hpp"

namespace comfyd::app {

// From now on jobs that end and what they used are counted, by tenant and workflow where those may
// be named. Before recover(); `metrics` outlives the service.
void count_jobs(jobs::Service& service, observe::Metrics& metrics, bool names_tenants);

}  // namespace comfyd::app
