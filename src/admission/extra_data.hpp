// extra_data as a client sends it, and as it may be kept. Pure; any thread.
#pragma once

#include "jobs/job.hpp"

namespace comfyd::admission {

// Takes what is for the worker alone, the credentials of API nodes, into spec.secret_extra_data,
// and drops what would make a worker's own list of jobs fail for as long as it knows the prompt.
void settle_extra_data(jobs::Spec& spec);

}  // namespace comfyd::admission
