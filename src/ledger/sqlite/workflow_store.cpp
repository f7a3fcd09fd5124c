#include "ledger/sqlite/workflow_store.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/id.hpp"
#include "ledger/sqlite/asset_uses.hpp"
#include "ledger/workflow_refusals.hpp"

namespace comfyd::ledger::sqlite {
namespace {

constexpr char kFind[] =
    "SELECT number, tag, created_at, updated_at, last_version FROM workflows "
    "WHERE tenant = ? AND name = ?";
constexpr char kLatest[] =
    "SELECT version, description, content_hash FROM workflow_versions "
    "WHERE workflow = ? ORDER BY version DESC LIMIT 1";
constexpr char kCountVersions[] = "SELECT count(*) FROM workflow_versions WHERE workflow = ?";
constexpr char kLabels[] = "SELECT label, version FROM workflow_labels WHERE workflow = ?";
constexpr char kNames[] =
    "SELECT name FROM workflows WHERE tenant = ? AND name > ? ORDER BY name LIMIT ?";
constexpr char kCountNames[] = "SELECT count(*) FROM workflows WHERE tenant = ?";
constexpr char kFindVersion[] =
    "SELECT version, created_at, node_count, content_hash, description, parameters, workflow_text, "
    "prompt FROM workflow_versions WHERE workflow = ? AND version = ?";
constexpr char kListVersions[] =
    "SELECT version, created_at, node_count, content_hash, description, parameters "
    "FROM workflow_versions WHERE workflow = ? AND version < ? ORDER BY version DESC LIMIT ?";

constexpr char kInsert[] =
    "INSERT INTO workflows (tenant, name, tag, created_at, updated_at, last_version) "
    "VALUES (?, ?, ?, ?, ?, 0)";
constexpr char kInsertVersion[] =
    "INSERT INTO workflow_versions (workflow, version, created_at, node_count, content_hash, "
    "description, parameters, workflow_text, prompt) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
constexpr char kLastInserted[] = "SELECT last_insert_rowid()";
constexpr char kTouch[] =
    "UPDATE workflows SET tag = ?, updated_at = ?, last_version = max(last_version, ?) "
    "WHERE number = ?";
constexpr char kSetLabel[] =
    "INSERT OR REPLACE INTO workflow_labels (workflow, label, version) VALUES (?, ?, ?)";
constexpr char kRemoveLabel[] = "DELETE FROM workflow_labels WHERE workflow = ? AND label = ?";
constexpr char kRemoveVersion[] =
    "DELETE FROM workflow_versions WHERE workflow = ? AND version = ?";
constexpr char kRemoveLabels[] = "DELETE FROM workflow_labels WHERE workflow = ?";
constexpr char kRemoveVersions[] = "DELETE FROM workflow_versions WHERE workflow = ?";
constexpr char kRemove[] = "DELETE FROM workflows WHERE number = ?";

// A name as it is stored.
struct Row {
    std::int64_t number = 0;
    int last_version = 0;      // that was ever given
    std::string content_hash;  // of the latest
    jobs::NamedWorkflow workflow;
};

Result<> read_latest(Database& db, Row& row) {
    Query query(db, kLatest);
    const auto found = query.bind(row.number).next();
    if (!found) {
        return fail(found.error());
    }
    if (*found) {
        row.workflow.latest = static_cast<int>(query.integer(0));
        row.workflow.description = query.text(1);
        row.content_hash = query.text(2);
    }
    return {};
}

Result<> read_labels(Database& db, Row& row) {
    Query query(db, kLabels);
    query.bind(row.number);
    return each_row(query, [&] {
        row.workflow.labels[query.string(0)] = static_cast<int>(query.integer(1));
    });
}

template <class Value>
Result<std::int64_t> count(Database& db, const char* sql, const Value& of) {
    Query query(db, sql);
    const auto row = query.bind(of).next();
    if (!row) {
        return fail(row.error());
    }
    return query.integer(0);
}

Result<std::optional<Row>> find_row(Database& db, const jobs::WorkflowName& of) {
    Row row;
    {
        Query query(db, kFind);
        const auto found = query.bind(of.tenant, of.name).next();
        if (!found) {
            return fail(found.error());
        }
        if (!*found) {
            return std::nullopt;
        }
        row.number = query.integer(0);
        row.workflow.name = of.name;
        row.workflow.tag = query.text(1);
        row.workflow.created_at = query.time(2);
        row.workflow.updated_at = query.time(3);
        row.last_version = static_cast<int>(query.integer(4));
    }
    if (auto read = read_latest(db, row); !read) {
        return fail(std::move(read.error()));
    }
    if (auto read = read_labels(db, row); !read) {
        return fail(std::move(read.error()));
    }
    const auto versions = count(db, kCountVersions, row.number);
    if (!versions) {
        return fail(versions.error());
    }
    row.workflow.version_count = static_cast<int>(*versions);
    return row;
}

// The row of a change that needs one.
Result<Row> get_row(
    Database& db, const jobs::WorkflowName& of, const std::optional<std::string>& expected_tag
) {
    auto row = find_row(db, of);
    if (!row) {
        return fail(std::move(row.error()));
    }
    if (!*row) {
        return fail(no_workflow(of.name));
    }
    if (auto checked = check_tag(of.name, (*row)->workflow.tag, expected_tag); !checked) {
        return fail(std::move(checked.error()));
    }
    return std::move(**row);
}

Result<Row> add_row(Session& session, const jobs::WorkflowName& of) {
    const auto names = count(session.db, kCountNames, of.tenant);
    if (!names) {
        return fail(names.error());
    }
    if (*names >= static_cast<std::int64_t>(jobs::kWorkflowNamesMax)) {
        return fail(too_many_workflows(*names));
    }
    Row row;
    row.workflow.name = of.name;
    row.workflow.created_at = session.now;
    auto added = Query(session.db, kInsert)
                     .bind(of.tenant, of.name, std::string_view(), session.now, session.now)
                     .run();
    if (!added) {
        return fail(std::move(added.error()));
    }
    const auto number = session.db.integer(kLastInserted);
    if (!number) {
        return fail(number.error());
    }
    row.number = *number;
    return row;
}

// Every change ends so.
Result<> touch(Session& session, Row& row) {
    row.workflow.tag = Uuid::make(session.now).to_string();
    row.workflow.updated_at = session.now;
    return Query(session.db, kTouch)
        .bind(row.workflow.tag, session.now, row.last_version, row.number)
        .run();
}

Result<> add_version(Session& session, Row& row, const jobs::WorkflowVersion& version) {
    row.last_version += 1;
    auto added = Query(session.db, kInsertVersion)
                     .bind(
                         row.number,
                         row.last_version,
                         session.now,
                         version.node_count,
                         version.content_hash,
                         version.description,
                         version.parameters,
                         version.workflow,
                         version.prompt
                     )
                     .run();
    if (!added) {
        return added;
    }
    const auto number = session.db.integer(kLastInserted);
    if (!number) {
        return fail(number.error());
    }
    for (const std::string* text : {&version.workflow, &version.prompt}) {
        if (auto noted = add_uses(session.db, *number, mentioned_assets(*text)); !noted) {
            return noted;
        }
    }
    row.workflow.latest = row.last_version;
    row.workflow.version_count += 1;
    row.workflow.description = version.description;
    return touch(session, row);
}

jobs::WorkflowVersion read_version(const Query& row) {
    jobs::WorkflowVersion version;
    version.version = static_cast<int>(row.integer(0));
    version.created_at = row.time(1);
    version.node_count = static_cast<int>(row.integer(2));
    version.content_hash = row.text(3);
    version.description = row.text(4);
    version.parameters = row.text(5);
    return version;
}

Result<bool> has_version(Database& db, std::int64_t number, int version) {
    Query query(db, kFindVersion);
    return query.bind(number, version).next();
}

Result<std::vector<std::string>> find_names(
    Database& db, const std::string& tenant, const std::string& after, int limit
) {
    Query query(db, kNames);
    query.bind(tenant, after, limit);
    return all_rows(query, [](const Query& row) -> Result<std::string> { return row.string(0); });
}

}  // namespace

std::size_t SaveWorkflow::bytes() const {
    const jobs::WorkflowVersion& version = save.version;
    return 512 + version.workflow.size() + version.prompt.size() + version.parameters.size() +
           version.description.size();
}

Result<jobs::WorkflowSaved> SaveWorkflow::operator()(Session& session) {
    auto found = find_row(session.db, save.of);
    if (!found) {
        return fail(std::move(found.error()));
    }
    const std::string tag = *found ? (*found)->workflow.tag : std::string();
    if (auto checked = check_tag(save.of.name, tag, save.expected_tag); !checked) {
        return fail(std::move(checked.error()));
    }
    if (*found && (*found)->content_hash == save.version.content_hash) {
        const int latest = (*found)->workflow.latest;
        return Value{std::move((*found)->workflow), latest, false};
    }
    if (*found &&
        (*found)->workflow.version_count >= static_cast<int>(jobs::kWorkflowVersionsMax)) {
        return fail(too_many_versions(save.of.name, (*found)->workflow.version_count));
    }
    Row row;
    if (*found) {
        row = std::move(**found);
    } else {
        auto added = add_row(session, save.of);
        if (!added) {
            return fail(std::move(added.error()));
        }
        row = std::move(*added);
    }
    if (auto added = add_version(session, row, save.version); !added) {
        return fail(std::move(added.error()));
    }
    return Value{std::move(row.workflow), row.last_version, true};
}

Result<jobs::NamedWorkflow> SetWorkflowLabel::operator()(Session& session) {
    auto row = get_row(session.db, of, expected_tag);
    if (!row) {
        return fail(std::move(row.error()));
    }
    auto& labels = row->workflow.labels;
    if (!version) {
        if (labels.erase(label) == 0) {
            return fail(no_label(of.name, label));
        }
        auto removed = Query(session.db, kRemoveLabel).bind(row->number, label).run();
        if (!removed) {
            return fail(std::move(removed.error()));
        }
    } else {
        const auto exists = has_version(session.db, row->number, *version);
        if (!exists) {
            return fail(exists.error());
        }
        if (!*exists) {
            return fail(no_version(of.name, *version));
        }
        if (!labels.contains(label) && labels.size() >= jobs::kWorkflowLabelsMax) {
            return fail(too_many_labels(of.name, labels.size()));
        }
        auto set = Query(session.db, kSetLabel).bind(row->number, label, *version).run();
        if (!set) {
            return fail(std::move(set.error()));
        }
        labels[label] = *version;
    }
    if (auto touched = touch(session, *row); !touched) {
        return fail(std::move(touched.error()));
    }
    return std::move(row->workflow);
}

Result<jobs::NamedWorkflow> RemoveWorkflowVersion::operator()(Session& session) {
    auto row = get_row(session.db, of, expected_tag);
    if (!row) {
        return fail(std::move(row.error()));
    }
    const auto exists = has_version(session.db, row->number, version);
    if (!exists) {
        return fail(exists.error());
    }
    if (!*exists) {
        return fail(no_version(of.name, version));
    }
    for (const auto& [label, number] : row->workflow.labels) {
        if (number == version) {
            return fail(label_points_to(label, version));
        }
    }
    if (row->workflow.version_count == 1) {
        return fail(only_version(of.name, version));
    }
    if (auto dropped = drop_uses(session.db, row->number, version); !dropped) {
        return fail(std::move(dropped.error()));
    }
    auto removed = Query(session.db, kRemoveVersion).bind(row->number, version).run();
    if (!removed) {
        return fail(std::move(removed.error()));
    }
    row->workflow.version_count -= 1;
    if (auto read = read_latest(session.db, *row); !read) {
        return fail(std::move(read.error()));
    }
    if (auto touched = touch(session, *row); !touched) {
        return fail(std::move(touched.error()));
    }
    return std::move(row->workflow);
}

Result<> RemoveWorkflow::operator()(Session& session) {
    auto row = get_row(session.db, of, expected_tag);
    if (!row) {
        return fail(std::move(row.error()));
    }
    if (auto dropped = drop_all_uses(session.db, row->number); !dropped) {
        return dropped;
    }
    for (const char* statement : {kRemoveLabels, kRemoveVersions, kRemove}) {
        auto removed = Query(session.db, statement).bind(row->number).run();
        if (!removed) {
            return removed;
        }
    }
    return {};
}

Result<std::optional<jobs::NamedWorkflow>> find_workflow(
    Database& db, const jobs::WorkflowName& of
) {
    const Snapshot snapshot(db);
    auto row = find_row(db, of);
    if (!row) {
        return fail(std::move(row.error()));
    }
    if (!*row) {
        return std::nullopt;
    }
    return std::move((*row)->workflow);
}

Result<std::optional<jobs::WorkflowVersion>> find_workflow_version(
    Database& db, const jobs::WorkflowName& of, int version
) {
    const Snapshot snapshot(db);
    auto row = find_row(db, of);
    if (!row) {
        return fail(std::move(row.error()));
    }
    if (!*row) {
        return std::nullopt;
    }
    Query query(db, kFindVersion);
    const auto found = query.bind((*row)->number, version).next();
    if (!found) {
        return fail(found.error());
    }
    if (!*found) {
        return std::nullopt;
    }
    jobs::WorkflowVersion made = read_version(query);
    made.workflow = query.text(6);
    made.prompt = query.text(7);
    return made;
}

Result<jobs::WorkflowPage> list_workflows(
    Database& db, const std::string& tenant, const std::string& after, int limit
) {
    const Snapshot snapshot(db);
    limit = std::clamp(limit, 1, jobs::kWorkflowPageMax);
    auto names = find_names(db, tenant, after, limit + 1);
    if (!names) {
        return fail(std::move(names.error()));
    }
    jobs::WorkflowPage page;
    if (names->size() > static_cast<std::size_t>(limit)) {
        names->pop_back();
        page.next_cursor = names->back();
    }
    for (const std::string& name : *names) {
        auto row = find_row(db, {tenant, name});
        if (!row) {
            return fail(std::move(row.error()));
        }
        page.workflows.push_back(std::move((*row)->workflow));
    }
    return page;
}

Result<jobs::WorkflowVersionPage> list_workflow_versions(
    Database& db, const jobs::WorkflowName& of, std::optional<int> before, int limit
) {
    const Snapshot snapshot(db);
    limit = std::clamp(limit, 1, jobs::kWorkflowPageMax);
    auto row = find_row(db, of);
    if (!row) {
        return fail(std::move(row.error()));
    }
    jobs::WorkflowVersionPage page;
    if (!*row) {
        return page;
    }
    Query query(db, kListVersions);
    query.bind((*row)->number, before.value_or(std::numeric_limits<int>::max()), limit + 1);
    while (true) {
        const auto found = query.next();
        if (!found) {
            return fail(found.error());
        }
        if (!*found) {
            return page;
        }
        if (page.versions.size() == static_cast<std::size_t>(limit)) {
            page.next_cursor = page.versions.back().version;
            return page;
        }
        page.versions.push_back(read_version(query));
    }
}

}  // namespace comfyd::ledger::sqlite
