// The tables of bulks: one row each, their plans, and their items.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "jobs/bulk_store.hpp"
#include "ledger/sqlite/session.hpp"

namespace comfyd::ledger::sqlite {

struct AddBulk {
    using Value = jobs::BulkAdded;
    jobs::Bulk bulk;
    std::string plan;

    std::size_t bytes() const { return 1024 + plan.size(); }
    Result<Value> operator()(Session& session);
};

struct CommitBulk {
    using Value = void;
    jobs::BulkChange change;

    std::size_t bytes() const;
    Result<> operator()(Session& session);
};

struct RemoveBulk {
    using Value = void;
    jobs::BulkId id;

    std::size_t bytes() const { return 256; }
    Result<> operator()(Session& session);
};

Result<std::optional<jobs::Bulk>> find_bulk(Database& db, const jobs::BulkId& id);
Result<std::optional<std::string>> find_bulk_plan(Database& db, const jobs::BulkId& id);
Result<jobs::BulkPage> list_bulks(
    Database& db, const std::string& tenant, std::optional<jobs::BulkId> before, int limit
);
Result<std::vector<jobs::BulkItem>> find_bulk_items(Database& db, const jobs::BulkItemQuery& query);
Result<std::vector<jobs::Bulk>> find_open_bulks(Database& db, int limit);
Result<std::vector<jobs::BulkId>> find_ended_bulks(Database& db, Time before, int limit);

}  // namespace comfyd::ledger::sqlite
