// The tables of the fleet's instances, pools and events; tokens are sealed where nodes have a
// secret.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fleet/instances/store.hpp"
#include "ledger/postgres/batch.hpp"
#include "ledger/postgres/secret_texts.hpp"

namespace comfyd::ledger::postgres {

class SaveInstance final : public WriteOf<void> {
public:
    SaveInstance(
        fleet::Instance instance, std::optional<fleet::FleetEvent> event, const SecretTexts& texts
    );
    std::size_t bytes() const override { return 512 + about_.size() + token_.size(); }
    bool join(Batch& batch) override;
    void conclude(const Batch& batch) override;

private:
    fleet::Instance instance_;
    std::optional<fleet::FleetEvent> event_;
    std::string about_;
    std::string token_;
    std::size_t place_ = 0;
};

class SavePool final : public WriteOf<void> {
public:
    SavePool(fleet::PoolRecord record, std::optional<fleet::FleetEvent> event)
        : record_(std::move(record)), event_(std::move(event)) {}
    std::size_t bytes() const override { return 1024; }
    bool join(Batch& batch) override;
    void conclude(const Batch& batch) override;

private:
    fleet::PoolRecord record_;
    std::optional<fleet::FleetEvent> event_;
    std::size_t place_ = 0;
};

class NoteFleetEvent final : public WriteOf<void> {
public:
    explicit NoteFleetEvent(fleet::FleetEvent event) : event_(std::move(event)) {}
    std::size_t bytes() const override { return 512; }
    bool join(Batch& batch) override;
    void conclude(const Batch&) override { outcome.emplace(); }

private:
    fleet::FleetEvent event_;
};

Statement find_open_instances(const std::string& fleet);
Statement find_ended_instances(const std::string& fleet, int limit);
// One whose token cannot be read (sealed with another secret) has none.
Result<fleet::Instance> read_instance(const Row& row, const SecretTexts& texts);
Statement find_pool_records(const std::string& fleet);
Result<fleet::PoolRecord> read_pool_record(const Row& row);
Statement find_fleet_events(const fleet::FleetEventQuery& query);
Statement find_fleet_events_after(
    const std::string& fleet, fleet::FleetEventPlace after, int limit
);
Result<fleet::FleetEvent> read_fleet_event(const Row& row);

}  // namespace comfyd::ledger::postgres
