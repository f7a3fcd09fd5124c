// Pools whose machines comfyd starts and stops: the keeper as a provider of workers. Made for a
// domain by who leads it; core executor only.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "fleet/fleet.hpp"
#include "fleet/instances/fleet_crew.hpp"
#include "fleet/instances/keeper.hpp"
#include "fleet/provider.hpp"

namespace comfyd::fleet {

class KeptPools final : public WorkerProvider {
public:
    using LoadOf = Keeper::LoadOf;
    // All references outlive it.
    struct Parts {
        Executor core;
        const Clock& clock;
        Lane lane;
        Pool& pool;
        InstanceStore& store;
        MachineProviders providers;
        std::string fleet;
        std::string domain;
        std::vector<PoolSettings> pools;
        autoscale::Budget budget{};
        std::string gateway{};       // whom machines call that have no address
        Callers* callers = nullptr;  // who lets those in; null: nobody can call
        LoadOf load{};               // empty: as if nothing waited
        MandatePtr mandate{};        // null: nobody else leads
        comfy::ClientTimeouts timeouts{};
        KeeperTimes times{};
    };
    explicit KeptPools(Parts parts);
    ~KeptPools() override;

    Result<> begin(Fleet& fleet) override;
    Task<> recall() override;
    void start() override;
    Task<> end() override;

    // After begin().
    Keeper& keeper() { return *keeper_; }

private:
    Parts p_;
    std::optional<FleetCrew> crew_;
    std::optional<Keeper> keeper_;
};

}  // namespace comfyd::fleet
