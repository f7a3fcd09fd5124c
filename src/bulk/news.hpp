// How the end of a bulk is told, by its webhook and at the end of its stream.
#pragma once

#include "base/task.hpp"
#include "jobs/bulk_store.hpp"
#include "notify/announcement.hpp"

namespace comfyd::bulk {

inline constexpr int kFailuresTold = 50;

// {"total", "completed", "failed", "cancelled", "running", "waiting"}
json::object encode_counts(const jobs::ItemCounts& counts);
// What clients see of its state: "paused" too.
std::string_view status_of(const jobs::Bulk& bulk);
// {"index", "custom_id", "job_id", "error"}
json::object encode_item_failure(const jobs::BulkItem& item);

// "batch.completed", "batch.cancelled"
std::string end_event_of(const jobs::Bulk& bulk);
// {"batch_id", "status", …, "failures": […]}; the first kFailuresTold of them.
Task<Result<json::object>> describe_end(jobs::BulkStore& store, jobs::Bulk bulk);
// The message about a bulk that has ended; the same each time.
Task<Result<notify::Announcement>> make_news(jobs::BulkStore& store, jobs::Bulk bulk);

}  // namespace comfyd::bulk
