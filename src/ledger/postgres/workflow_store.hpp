// The tables of named workflows: names, their versions and their labels.
//
// A change locks the name's row. It makes the new tag before its first attempt: one that finds its
// own tag there was committed already, and only its answer was lost.
#pragma once

#include <optional>
#include <string>

#include "jobs/workflow_store.hpp"
#include "ledger/postgres/procedure.hpp"

namespace comfyd::ledger::postgres {

// A name as it is stored.
struct WorkflowRow {
    std::int64_t number = 0;
    int last_version = 0;      // that was ever given
    std::string content_hash;  // of the latest
    jobs::NamedWorkflow workflow;
};

// What every change of a name shares.
template <class T>
class ChangeWorkflow : public ProcedureOf<T> {
public:
    ChangeWorkflow(jobs::WorkflowName of, std::optional<std::string> expected_tag)
        : of_(std::move(of)), expected_tag_(std::move(expected_tag)) {}

protected:
    const std::string& tag(Time now) {
        if (tag_.empty()) {
            tag_ = Uuid::make(now).to_string();
        }
        return tag_;
    }
    bool was_done(const WorkflowRow& row) const { return row.workflow.tag == tag_; }

    jobs::WorkflowName of_;
    std::optional<std::string> expected_tag_;

private:
    std::string tag_;
};

class SaveWorkflow final : public ChangeWorkflow<jobs::WorkflowSaved> {
public:
    explicit SaveWorkflow(jobs::WorkflowSave save)
        : ChangeWorkflow(save.of, save.expected_tag), version_(std::move(save.version)) {}
    std::size_t bytes() const override;
    Task<Done> run(Transaction& transaction) override;

private:
    Task<tl::expected<std::optional<WorkflowRow>, Failure>> add_name(Transaction& transaction);
    Statements add_version(const WorkflowRow& row, Time now);

    jobs::WorkflowVersion version_;
};

class SetWorkflowLabel final : public ChangeWorkflow<jobs::NamedWorkflow> {
public:
    SetWorkflowLabel(
        jobs::WorkflowName of,
        std::string label,
        std::optional<int> version,
        std::optional<std::string> expected_tag
    )
        : ChangeWorkflow(std::move(of), std::move(expected_tag)),
          label_(std::move(label)),
          version_(version) {}
    Task<Done> run(Transaction& transaction) override;

private:
    Result<Statement> change(WorkflowRow& row, bool has_version) const;

    std::string label_;
    std::optional<int> version_;
};

class RemoveWorkflowVersion final : public ChangeWorkflow<jobs::NamedWorkflow> {
public:
    RemoveWorkflowVersion(
        jobs::WorkflowName of, int version, std::optional<std::string> expected_tag
    )
        : ChangeWorkflow(std::move(of), std::move(expected_tag)), version_(version) {}
    Task<Done> run(Transaction& transaction) override;

private:
    Result<> check(const WorkflowRow& row, bool has_version) const;

    int version_;
};

class RemoveWorkflow final : public ChangeWorkflow<void> {
public:
    using ChangeWorkflow::ChangeWorkflow;
    Task<Done> run(Transaction& transaction) override;
};

Statement find_workflow(const jobs::WorkflowName& of);
Statement list_workflows(const std::string& tenant, const std::string& after, int limit);
Result<WorkflowRow> read_workflow(const Row& row);
Result<jobs::WorkflowPage> read_workflow_page(const Rows& rows, int limit);
Statement find_workflow_version(const jobs::WorkflowName& of, int version);
Statement list_workflow_versions(
    const jobs::WorkflowName& of, std::optional<int> before, int limit
);
jobs::WorkflowVersion read_workflow_version(const Row& row);
std::optional<jobs::WorkflowVersion> read_whole_version(const Rows& rows);
jobs::WorkflowVersionPage read_version_page(const Rows& rows, int limit);

}  // namespace comfyd::ledger::postgres
