// The tables of named workflows: names, their versions and their labels.
#pragma once

#include <optional>
#include <string>

#include "jobs/workflow_store.hpp"
#include "ledger/sqlite/session.hpp"

namespace comfyd::ledger::sqlite {

struct SaveWorkflow {
    using Value = jobs::WorkflowSaved;
    jobs::WorkflowSave save;

    std::size_t bytes() const;
    Result<Value> operator()(Session& session);
};

struct SetWorkflowLabel {
    using Value = jobs::NamedWorkflow;
    jobs::WorkflowName of;
    std::string label;
    std::optional<int> version;
    std::optional<std::string> expected_tag;

    std::size_t bytes() const { return 256; }
    Result<Value> operator()(Session& session);
};

struct RemoveWorkflowVersion {
    using Value = jobs::NamedWorkflow;
    jobs::WorkflowName of;
    int version;
    std::optional<std::string> expected_tag;

    std::size_t bytes() const { return 256; }
    Result<Value> operator()(Session& session);
};

struct RemoveWorkflow {
    using Value = void;
    jobs::WorkflowName of;
    std::optional<std::string> expected_tag;

    std::size_t bytes() const { return 256; }
    Result<> operator()(Session& session);
};

Result<std::optional<jobs::NamedWorkflow>> find_workflow(
    Database& db, const jobs::WorkflowName& of
);
Result<std::optional<jobs::WorkflowVersion>> find_workflow_version(
    Database& db, const jobs::WorkflowName& of, int version
);
Result<jobs::WorkflowPage> list_workflows(
    Database& db, const std::string& tenant, const std::string& after, int limit
);
Result<jobs::WorkflowVersionPage> list_workflow_versions(
    Database& db, const jobs::WorkflowName& of, std::optional<int> before, int limit
);

}  // namespace comfyd::ledger::sqlite
