// Checks a workflow before it is accepted: shape, node classes, links, cycles, an output node, and
// with workers known also the types of links and the limits and choices of values, by ComfyUI's own
// rules. Stricter than ComfyUI, which ignores what no output needs. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"
#include "workflow/catalogue/catalogue.hpp"
#include "workflow/catalogue/worker_lack.hpp"
#include "workflow/files/named_files.hpp"
#include "workflow/rules/issue.hpp"

namespace comfyd::workflow {

inline constexpr std::size_t kNodesMax = 10'000;

struct Checked {
    Requirement requirement;
    int node_count = 0;
};

// True for the editor's own save format ({"nodes": [...], "links": [...]}), which cannot be
// executed as it is.
bool is_ui_format(const json::object& workflow);

Error ui_format_error();

// Accepts {"prompt": {...}}, {"workflow": {...}} and {"output": {...}} wrappers around an
// API-format map; returns the map itself.
const json::object& unwrap(const json::object& workflow);

// All findings, not just the first, as of issues_error().
// Code::workflow_format_ui, Code::invalid_workflow, Code::no_capable_worker (each class and each
// chosen file exists somewhere, but no worker has them all; details also hold "nearest_worker",
// "missing_there" and "missing_files").
// Only workers count that are such a machine, and those that may be there one day; the requirement
// says so. A pool of which no worker is known yet refuses nothing. "other_pools" holds those that
// could run it, "machines" what there is.
// `missing`: inputs that are to be refused because the files that they choose do not exist.
Result<Checked> check(
    const json::object& workflow,
    const Catalogue& catalogue,
    const MachineWish& machine = {},
    const std::vector<MissingFile>& missing = {}
);

// The parts of it. What an output needs is judged as ComfyUI does, and all of it must be good; of
// the rest only the structure counts (loose_ends.hpp).
std::vector<Issue> find_faults(
    const json::object& workflow,
    const Catalogue& catalogue,
    const std::vector<MissingFile>& missing = {}
);
// What the nodes need of a worker, where one has it all.
tl::expected<Requirement, WorkerLack> find_requirement(
    const json::object& workflow, const Catalogue& catalogue, const MachineWish& machine
);

}  // namespace comfyd::workflow
