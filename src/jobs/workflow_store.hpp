// What named workflows ask of durable storage. Implemented by the ledger room.
//
// A name belongs to one tenant and holds versions, numbered from 1 and never changed, and labels
// that point to versions. Every change of a name gives it a new tag; a change that expects a tag is
// refused with Code::conflict when it has another one by now. Writes return after the data is on
// disk, reads see every write that returned before them. All members may be called on any executor;
// a Task continues on the executor that awaited it. Failures besides those named at the members:
// Code::storage_full, Code::storage_unavailable; nothing is half-written then.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/task.hpp"
#include "base/time.hpp"

namespace comfyd::jobs {

inline constexpr std::size_t kWorkflowNamesMax = 10'000;  // of a tenant
inline constexpr std::size_t kWorkflowVersionsMax = 1'000;
inline constexpr std::size_t kWorkflowLabelsMax = 50;
inline constexpr int kWorkflowPageMax = 1'000;

struct NamedWorkflow {
    std::string name;
    std::string tag;
    Time created_at{};
    Time updated_at{};
    int latest = 0;           // the highest version that is there
    int version_count = 0;    // those that were not removed
    std::string description;  // of the latest version
    std::map<std::string, int> labels;
};

struct WorkflowVersion {
    int version = 0;
    Time created_at{};
    int node_count = 0;
    std::string content_hash;  // the same for the same content
    std::string description;
    std::string parameters;  // JSON text
    std::string workflow;    // JSON text, as it came
    std::string prompt;      // its API format, JSON text; empty: it is in API format itself
};

// Whose name it is.
struct WorkflowName {
    std::string tenant;
    std::string name;
};

struct WorkflowSave {
    WorkflowName of;
    WorkflowVersion version;  // its number and time are given by the store
    // The tag that the name must have; empty text: the name must not be there yet.
    std::optional<std::string> expected_tag;
};
struct WorkflowSaved {
    NamedWorkflow workflow;
    int version = 0;
    bool created = false;  // false: the latest version has the same content hash
};

struct WorkflowPage {
    std::vector<NamedWorkflow> workflows;  // by name
    std::optional<std::string> next_cursor;
};
struct WorkflowVersionPage {
    std::vector<WorkflowVersion> versions;  // the newest first, without workflow and prompt
    std::optional<int> next_cursor;
};

class WorkflowStore {
public:
    virtual ~WorkflowStore() = default;

    // Code::conflict also when the tenant or the name holds as many as it may.
    virtual Task<Result<WorkflowSaved>> save_workflow(WorkflowSave save) = 0;
    virtual Task<Result<std::optional<NamedWorkflow>>> find_workflow(WorkflowName of) = 0;
    virtual Task<Result<std::optional<WorkflowVersion>>> find_workflow_version(
        WorkflowName of, int version
    ) = 0;
    // `after`: the last name of the page before; empty: from the beginning.
    virtual Task<Result<WorkflowPage>> list_workflows(
        std::string tenant, std::string after, int limit
    ) = 0;
    // `before`: the last version of the page before. Empty where there is no such name.
    virtual Task<Result<WorkflowVersionPage>> list_workflow_versions(
        WorkflowName of, std::optional<int> before, int limit
    ) = 0;
    // nullopt takes the label away. Code::not_found: there is no such name, version or label;
    // Code::conflict also for too many labels.
    virtual Task<Result<NamedWorkflow>> set_workflow_label(
        WorkflowName of,
        std::string label,
        std::optional<int> version,
        std::optional<std::string> expected_tag
    ) = 0;
    // Code::conflict also when a label points to it, or when it is the only one.
    virtual Task<Result<NamedWorkflow>> remove_workflow_version(
        WorkflowName of, int version, std::optional<std::string> expected_tag
    ) = 0;
    // With all its versions and labels. Code::not_found.
    virtual Task<Result<>> remove_workflow(
        WorkflowName of, std::optional<std::string> expected_tag
    ) = 0;
};

}  // namespace comfyd::jobs
