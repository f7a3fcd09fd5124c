#include <algorithm>
#include <limits>
#include <utility>

#include "ledger/codec.hpp"
#include "ledger/postgres/workflow_store.hpp"

namespace comfyd::ledger::postgres {
namespace {

#define COMFYD_WORKFLOW_COLUMNS                                                                    \
    "SELECT w.number, w.name, w.tag, w.created_at, w.updated_at, w.last_version, v.version, "      \
    "v.description, v.content_hash, (SELECT count(*) FROM workflow_versions c WHERE c.workflow = " \
    "w.number), (SELECT json_object_agg(l.label, l.version)::text FROM workflow_labels l "         \
    "WHERE l.workflow = w.number) FROM workflows w LEFT JOIN LATERAL (SELECT version, "            \
    "description, content_hash FROM workflow_versions n WHERE n.workflow = w.number "              \
    "ORDER BY version DESC LIMIT 1) v ON true "
#define COMFYD_VERSION_COLUMNS \
    "SELECT v.version, v.created_at, v.node_count, v.content_hash, v.description, v.parameters"
#define COMFYD_VERSIONS_OF                                                                         \
    " FROM workflows w JOIN workflow_versions v ON v.workflow = w.number WHERE w.tenant = $1 AND " \
    "w.name = $2 "

constexpr char kFind[] = COMFYD_WORKFLOW_COLUMNS "WHERE w.tenant = $1 AND w.name = $2";
constexpr char kList[] =
    COMFYD_WORKFLOW_COLUMNS "WHERE w.tenant = $1 AND w.name > $2 ORDER BY w.name LIMIT $3";
constexpr char kFindVersion[] =
    COMFYD_VERSION_COLUMNS ", v.workflow_text, v.prompt" COMFYD_VERSIONS_OF "AND v.version = $3";
constexpr char kListVersions[] =
    COMFYD_VERSION_COLUMNS COMFYD_VERSIONS_OF "AND v.version < $3 ORDER BY v.version DESC LIMIT $4";

int page_of(int limit) {
    return std::clamp(limit, 1, jobs::kWorkflowPageMax);
}

}  // namespace

Statement find_workflow(const jobs::WorkflowName& of) {
    return {kFind, {of.tenant, of.name}};
}

Statement list_workflows(const std::string& tenant, const std::string& after, int limit) {
    return {kList, {tenant, after, page_of(limit) + 1}};
}

Result<WorkflowRow> read_workflow(const Row& row) {
    WorkflowRow found;
    found.number = row.integer(0);
    found.workflow.name = row.text(1);
    found.workflow.tag = row.text(2);
    found.workflow.created_at = row.time(3);
    found.workflow.updated_at = row.time(4);
    found.last_version = static_cast<int>(row.integer(5));
    found.workflow.latest = static_cast<int>(row.integer(6));
    found.workflow.description = row.text(7);
    found.content_hash = row.text(8);
    found.workflow.version_count = static_cast<int>(row.integer(9));
    const auto labels = decode_object(row.text(10));
    if (!labels) {
        return fail(labels.error());
    }
    for (const auto& [label, version] : *labels) {
        const std::string_view stored(label.data(), label.size());
        auto restored = read_stored(stored);
        found.workflow.labels[restored ? *restored : std::string(stored)] =
            static_cast<int>(version.to_number<std::int64_t>());
    }
    return found;
}

Result<jobs::WorkflowPage> read_workflow_page(const Rows& rows, int limit) {
    auto found = rows.all(read_workflow);
    if (!found) {
        return fail(std::move(found.error()));
    }
    jobs::WorkflowPage page;
    for (WorkflowRow& row : *found) {
        if (page.workflows.size() == static_cast<std::size_t>(page_of(limit))) {
            page.next_cursor = page.workflows.back().name;
            break;
        }
        page.workflows.push_back(std::move(row.workflow));
    }
    return page;
}

Statement find_workflow_version(const jobs::WorkflowName& of, int version) {
    return {kFindVersion, {of.tenant, of.name, version}};
}

Statement list_workflow_versions(
    const jobs::WorkflowName& of, std::optional<int> before, int limit
) {
    return {
        kListVersions,
        {of.tenant, of.name, before.value_or(std::numeric_limits<int>::max()), page_of(limit) + 1}
    };
}

jobs::WorkflowVersion read_workflow_version(const Row& row) {
    jobs::WorkflowVersion version;
    version.version = static_cast<int>(row.integer(0));
    version.created_at = row.time(1);
    version.node_count = static_cast<int>(row.integer(2));
    version.content_hash = row.text(3);
    version.description = row.text(4);
    version.parameters = row.text(5);
    return version;
}

std::optional<jobs::WorkflowVersion> read_whole_version(const Rows& rows) {
    if (rows.empty()) {
        return std::nullopt;
    }
    auto version = read_workflow_version(rows[0]);
    version.workflow = rows[0].text(6);
    version.prompt = rows[0].text(7);
    return version;
}

jobs::WorkflowVersionPage read_version_page(const Rows& rows, int limit) {
    jobs::WorkflowVersionPage page;
    for (int i = 0; i < rows.size(); ++i) {
        if (page.versions.size() == static_cast<std::size_t>(page_of(limit))) {
            page.next_cursor = page.versions.back().version;
            break;
        }
        page.versions.push_back(read_workflow_version(rows[i]));
    }
    return page;
}

}  // namespace comfyd::ledger::postgres
