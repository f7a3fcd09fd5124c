// Where the bytes of a file are that a job has just made, before there is a record of it.
#pragma once

#include "assets/store.hpp"
#include "base/task.hpp"
#include "jobs/job.hpp"
#include "media/helpers.hpp"

namespace comfyd::media {

// A file, or the bytes. Any executor. Code::output_unavailable, Code::payload_too_large where it
// lies on another machine and is too large to be fetched, Code::storage_unavailable.
Task<Result<Source>> locate(assets::Store& store, const jobs::Output& output);

}  // namespace comfyd::media
