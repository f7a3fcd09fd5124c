// The list of GET /api/jobs: what its query asks for, and what a job's entry tells of its outputs.
// Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

#include "base/json.hpp"

namespace comfyd::comfy {

enum class JobStatus { pending, in_progress, completed, failed, cancelled };
std::string_view to_string(JobStatus status);
std::optional<JobStatus> parse_job_status(std::string_view name);

struct JobsQuery {
    std::vector<JobStatus> statuses{};  // empty: all
    std::string workflow_id{};          // empty: any
    bool by_duration = false;           // else by the time of submission
    bool ascending = false;
    std::optional<std::size_t> limit{};
    std::size_t offset = 0;

    bool wants(JobStatus status) const;
};

// The error is the text of a 400 answer.
tl::expected<JobsQuery, std::string> parse_jobs_query(
    const std::vector<std::pair<std::string, std::string>>& query
);

// A whole number as Python reads one of a query: one that is too long is as good as the largest.
std::optional<std::int64_t> python_integer(std::string_view text);

// {"offset", "limit", "total", "has_more"}
json::object pagination(const JobsQuery& query, std::size_t total, bool has_more);

// What a history's `outputs` (node id -> ui) come to.
struct OutputsSummary {
    std::size_t count = 0;
    std::size_t previewable = 0;
    // {filename, subfolder, type, nodeId, mediaType}; of a job that made only texts, which count
    // for nothing, {content, truncated?, nodeId, mediaType}.
    std::optional<json::object> preview;
};
OutputsSummary summarise_outputs(const json::object& outputs);
// outputs_count, previewable_outputs_count and preview_output.
void add_summary(json::object& job, const OutputsSummary& summary);

// extra_pnginfo.workflow.id; empty when there is none.
std::string workflow_id_of(const json::object& extra_data);

}  // namespace comfyd::comfy
