#include "ledger/postgres/workflow_store.hpp"

#include <utility>

#include "ledger/mentioned_assets.hpp"
#include "ledger/workflow_refusals.hpp"

namespace comfyd::ledger::postgres {
namespace {

constexpr char kLock[] = "SELECT 1 FROM workflows WHERE tenant = $1 AND name = $2 FOR UPDATE";
constexpr char kHasVersion[] =
    "SELECT 1 FROM workflows w JOIN workflow_versions v ON v.workflow = w.number "
    "WHERE w.tenant = $1 AND w.name = $2 AND v.version = $3";
constexpr char kCountNames[] = "SELECT count(*) FROM workflows WHERE tenant = $1";
constexpr char kInsert[] =
    "INSERT INTO workflows (tenant, name, tag, created_at, updated_at, last_version) "
    "VALUES ($1, $2, '', $3, $3, 0) ON CONFLICT (tenant, name) DO NOTHING RETURNING number";
constexpr char kInsertVersion[] =
    "INSERT INTO workflow_versions (workflow, version, created_at, node_count, content_hash, "
    "description, parameters, workflow_text, prompt) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
constexpr char kInsertUses[] =
    "INSERT INTO workflow_assets (workflow, version, asset) SELECT $1, $2, n.asset "
    "FROM unnest($3) AS n (asset) ON CONFLICT DO NOTHING";
constexpr char kTouch[] =
    "UPDATE workflows SET tag = $2, updated_at = $3, last_version = greatest(last_version, $4) "
    "WHERE number = $1";
constexpr char kSetLabel[] =
    "INSERT INTO workflow_labels (workflow, label, version) VALUES ($1, $2, $3) "
    "ON CONFLICT (workflow, label) DO UPDATE SET version = excluded.version";
constexpr char kRemoveLabel[] = "DELETE FROM workflow_labels WHERE workflow = $1 AND label = $2";
constexpr char kRemoveVersion[] =
    "DELETE FROM workflow_versions WHERE workflow = $1 AND version = $2";
constexpr char kRemoveUses[] = "DELETE FROM workflow_assets WHERE workflow = $1 AND version = $2";
constexpr char kRemoveLabels[] = "DELETE FROM workflow_labels WHERE workflow = $1";
constexpr char kRemoveVersions[] = "DELETE FROM workflow_versions WHERE workflow = $1";
constexpr char kRemoveAllUses[] = "DELETE FROM workflow_assets WHERE workflow = $1";
constexpr char kRemove[] = "DELETE FROM workflows WHERE number = $1";

// Another node has made the name just now: all is decided anew.
Failure made_meanwhile() {
    return {false, "40001", "the name was made meanwhile", 0};
}

// Locks the name and reads it; nullopt: it is not there.
Statements lock(const jobs::WorkflowName& of) {
    return {{kLock, {of.tenant, of.name}}, find_workflow(of)};
}
Result<std::optional<WorkflowRow>> read_locked(const std::vector<Rows>& answers) {
    return answers.at(1).first(read_workflow);
}

// The row of a change that needs one.
Result<WorkflowRow> get_row(
    const std::vector<Rows>& answers,
    const jobs::WorkflowName& of,
    const std::optional<std::string>& expected_tag
) {
    auto row = read_locked(answers);
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

// Every change ends so.
Statement touch(WorkflowRow& row, const std::string& tag, Time now) {
    row.workflow.tag = tag;
    row.workflow.updated_at = now;
    return {kTouch, {row.number, tag, now, row.last_version}};
}

}  // namespace

std::size_t SaveWorkflow::bytes() const {
    return 512 + version_.workflow.size() + version_.prompt.size() + version_.parameters.size() +
           version_.description.size();
}

Task<Done> SaveWorkflow::run(Transaction& transaction) {
    const Time now = transaction.at.now;
    auto answers = co_await transaction.ask(lock(of_));
    if (!answers) {
        co_return tl::unexpected(std::move(answers.error()));
    }
    auto found = read_locked(*answers);
    if (!found) {
        outcome.emplace(fail(std::move(found.error())));
        co_return Done();
    }
    if (*found && was_done(**found)) {
        const int latest = (*found)->workflow.latest;
        outcome.emplace(jobs::WorkflowSaved{std::move((*found)->workflow), latest, true});
        co_return Done();
    }
    const std::string tag_there = *found ? (*found)->workflow.tag : std::string();
    if (auto checked = check_tag(of_.name, tag_there, expected_tag_); !checked) {
        outcome.emplace(fail(std::move(checked.error())));
        co_return Done();
    }
    if (*found && (*found)->content_hash == version_.content_hash) {
        const int latest = (*found)->workflow.latest;
        outcome.emplace(jobs::WorkflowSaved{std::move((*found)->workflow), latest, false});
        co_return Done();
    }
    if (*found &&
        (*found)->workflow.version_count >= static_cast<int>(jobs::kWorkflowVersionsMax)) {
        outcome.emplace(fail(too_many_versions(of_.name, (*found)->workflow.version_count)));
        co_return Done();
    }
    if (!*found) {
        auto added = co_await add_name(transaction);
        if (!added) {
            co_return tl::unexpected(std::move(added.error()));
        }
        if (!*added) {
            co_return Done();
        }
        *found = std::move(*added);
    }
    WorkflowRow row = std::move(**found);
    row.last_version += 1;
    row.workflow.latest = row.last_version;
    row.workflow.version_count += 1;
    row.workflow.description = version_.description;
    Statements last = add_version(row, now);
    last.push_back(touch(row, tag(now), now));
    auto done = co_await transaction.commit(std::move(last));
    if (done) {
        outcome.emplace(jobs::WorkflowSaved{std::move(row.workflow), row.last_version, true});
    }
    co_return done;
}

// nullopt: it was refused, and the outcome says so.
Task<tl::expected<std::optional<WorkflowRow>, Failure>> SaveWorkflow::add_name(
    Transaction& transaction
) {
    const Time now = transaction.at.now;
    auto answers = co_await transaction.ask(
        {{kCountNames, {of_.tenant}}, {kInsert, {of_.tenant, of_.name, now}}}
    );
    if (!answers) {
        co_return tl::unexpected(std::move(answers.error()));
    }
    const std::int64_t names = answers->at(0)[0].integer(0);
    if (names >= static_cast<std::int64_t>(jobs::kWorkflowNamesMax)) {
        outcome.emplace(fail(too_many_workflows(names)));
        co_return std::nullopt;
    }
    if (answers->at(1).empty()) {
        co_return tl::unexpected(made_meanwhile());
    }
    WorkflowRow row;
    row.number = answers->at(1)[0].integer(0);
    row.workflow.name = of_.name;
    row.workflow.created_at = now;
    co_return row;
}

Statements SaveWorkflow::add_version(const WorkflowRow& row, Time now) {
    Array assets(kText);
    for (const std::string* text : {&version_.workflow, &version_.prompt}) {
        const MentionedAssets mentioned = mentioned_assets(*text);
        for (const AssetId& id : mentioned.ids) {
            assets.add(id.to_string());
        }
        for (const std::string& hash : mentioned.hashes) {
            assets.add(hash);
        }
    }
    Statements made{
        {kInsertVersion,
         {row.number,
          row.last_version,
          now,
          version_.node_count,
          version_.content_hash,
          version_.description,
          version_.parameters,
          version_.workflow,
          version_.prompt}}
    };
    if (assets.size() > 0) {
        made.push_back({kInsertUses, {row.number, row.last_version, assets.value()}});
    }
    return made;
}

Result<Statement> SetWorkflowLabel::change(WorkflowRow& row, bool has_version) const {
    auto& labels = row.workflow.labels;
    if (!version_) {
        if (labels.erase(label_) == 0) {
            return fail(no_label(of_.name, label_));
        }
        return Statement{kRemoveLabel, {row.number, label_}};
    }
    if (!has_version) {
        return fail(no_version(of_.name, *version_));
    }
    if (!labels.contains(label_) && labels.size() >= jobs::kWorkflowLabelsMax) {
        return fail(too_many_labels(of_.name, labels.size()));
    }
    labels[label_] = *version_;
    return Statement{kSetLabel, {row.number, label_, *version_}};
}

Task<Done> SetWorkflowLabel::run(Transaction& transaction) {
    const Time now = transaction.at.now;
    Statements asked = lock(of_);
    asked.push_back({kHasVersion, {of_.tenant, of_.name, version_.value_or(0)}});
    auto answers = co_await transaction.ask(std::move(asked));
    if (!answers) {
        co_return tl::unexpected(std::move(answers.error()));
    }
    auto locked = read_locked(*answers);
    if (locked && *locked && was_done(**locked)) {
        outcome.emplace(std::move((*locked)->workflow));
        co_return Done();
    }
    auto row = get_row(*answers, of_, expected_tag_);
    if (!row) {
        outcome.emplace(fail(std::move(row.error())));
        co_return Done();
    }
    auto changed = change(*row, !answers->at(2).empty());
    if (!changed) {
        outcome.emplace(fail(std::move(changed.error())));
        co_return Done();
    }
    auto done = co_await transaction.commit({std::move(*changed), touch(*row, tag(now), now)});
    if (done) {
        outcome.emplace(std::move(row->workflow));
    }
    co_return done;
}

Result<> RemoveWorkflowVersion::check(const WorkflowRow& row, bool has_version) const {
    if (!has_version) {
        return fail(no_version(of_.name, version_));
    }
    for (const auto& [label, version] : row.workflow.labels) {
        if (version == version_) {
            return fail(label_points_to(label, version));
        }
    }
    if (row.workflow.version_count == 1) {
        return fail(only_version(of_.name, version_));
    }
    return {};
}

Task<Done> RemoveWorkflowVersion::run(Transaction& transaction) {
    const Time now = transaction.at.now;
    Statements asked = lock(of_);
    asked.push_back({kHasVersion, {of_.tenant, of_.name, version_}});
    auto answers = co_await transaction.ask(std::move(asked));
    if (!answers) {
        co_return tl::unexpected(std::move(answers.error()));
    }
    auto locked = read_locked(*answers);
    if (locked && *locked && was_done(**locked)) {
        outcome.emplace(std::move((*locked)->workflow));
        co_return Done();
    }
    auto row = get_row(*answers, of_, expected_tag_);
    if (!row) {
        outcome.emplace(fail(std::move(row.error())));
        co_return Done();
    }
    if (auto checked = check(*row, !answers->at(2).empty()); !checked) {
        outcome.emplace(fail(std::move(checked.error())));
        co_return Done();
    }
    Statements removal{
        {kRemoveUses, {row->number, version_}},
        {kRemoveVersion, {row->number, version_}},
        touch(*row, tag(now), now),
        find_workflow(of_),
    };
    auto removed = co_await transaction.ask(std::move(removal));
    if (!removed) {
        co_return tl::unexpected(std::move(removed.error()));
    }
    auto left = removed->at(3).first(read_workflow);
    auto done = co_await transaction.commit({});
    if (done && left && *left) {
        outcome.emplace(std::move((*left)->workflow));
    }
    co_return done;
}

Task<Done> RemoveWorkflow::run(Transaction& transaction) {
    auto answers = co_await transaction.ask(lock(of_));
    if (!answers) {
        co_return tl::unexpected(std::move(answers.error()));
    }
    auto row = get_row(*answers, of_, expected_tag_);
    if (!row && row.error().code == Code::not_found && transaction.at.is_again) {
        outcome.emplace();
        co_return Done();
    }
    if (!row) {
        outcome.emplace(fail(std::move(row.error())));
        co_return Done();
    }
    Statements last;
    for (const char* statement : {kRemoveAllUses, kRemoveLabels, kRemoveVersions, kRemove}) {
        last.push_back({statement, {row->number}});
    }
    auto done = co_await transaction.commit(std::move(last));
    if (done) {
        outcome.emplace();
    }
    co_return done;
}

}  // namespace comfyd::ledger::postgres
