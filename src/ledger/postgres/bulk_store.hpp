// The tables of bulks: one row each, their plans, and their items.
//
// A change is one statement, and stamps the row: one that finds its own stamp there was committed
// already, and only its answer was lost. Plans may hold the secret of a webhook, and are sealed
// where nodes have a secret.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "jobs/bulk_store.hpp"
#include "ledger/postgres/batch.hpp"
#include "ledger/postgres/secret_texts.hpp"

namespace comfyd::ledger::postgres {

class AddBulk final : public WriteOf<jobs::BulkAdded> {
public:
    AddBulk(jobs::Bulk bulk, std::string plan, const SecretTexts& texts)
        : bulk_(std::move(bulk)),
          plan_(std::move(plan)),
          stored_(texts.write(plan_, bulk_.id.to_string())) {}
    std::size_t bytes() const override { return 1024 + plan_.size() + stored_.size(); }
    bool join(Batch& batch) override;
    void conclude(const Batch& batch) override;
    Statements question(const Circumstances& at) override;
    void hear(const Circumstances& at, const std::vector<Rows>& answers) override;

private:
    jobs::Bulk bulk_;
    std::string plan_;
    std::string stored_;
    std::size_t place_ = 0;
};

class CommitBulk final : public WriteOf<void> {
public:
    CommitBulk(jobs::BulkChange change, Time now)
        : change_(std::move(change)), stamp_(Uuid::make(now)) {}
    std::size_t bytes() const override;
    bool join(Batch& batch) override;
    void conclude(const Batch& batch) override;

private:
    jobs::BulkChange change_;
    Uuid stamp_;
    std::size_t place_ = 0;
};

class RemoveBulk final : public WriteOf<void> {
public:
    explicit RemoveBulk(jobs::BulkId id) : id_(id) {}
    std::size_t bytes() const override { return 256; }
    bool join(Batch& batch) override;
    void conclude(const Batch&) override { outcome.emplace(); }

private:
    jobs::BulkId id_;
};

Statement find_bulk(const jobs::BulkId& id);
Statement find_bulk_plan(const jobs::BulkId& id);
Statement list_bulks(const std::string& tenant, std::optional<jobs::BulkId> before, int limit);
Statement find_bulk_items(const jobs::BulkItemQuery& query);
Statement find_open_bulks(int limit);
Statement find_ended_bulks(Time before, int limit);
Result<jobs::Bulk> read_bulk(const Row& row);
// Code::storage_unavailable: it was sealed with another secret.
Result<std::string> read_bulk_plan(
    const Row& row, const jobs::BulkId& id, const SecretTexts& texts
);
Result<jobs::BulkItem> read_bulk_item(const Row& row);
Result<jobs::BulkPage> read_bulk_page(const Rows& rows, int limit);

}  // namespace comfyd::ledger::postgres
