// Asks the autoscaler how many machines each pool shall have, shows it what there is, counts what
// is spent, and knows what of it must outlive a restart. Owned by the keeper; core executor only.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "autoscale/decide.hpp"
#include "autoscale/told_limits.hpp"
#include "fleet/instances/instance.hpp"
#include "fleet/instances/pool_settings.hpp"
#include "fleet/instances/store.hpp"
#include "jobs/load.hpp"

namespace comfyd::fleet {

class Scaling {
public:
    explicit Scaling(autoscale::Budget of_fleet) : of_fleet_(of_fleet) {}

    // All of it outlives the call.
    struct Sight {
        Time now{};
        const jobs::Load& load;
        const std::map<std::string, PoolSettings>& pools;  // ours
        const std::map<std::string, PoolRecord>& records;  // of all pools of the fleet
        const std::map<std::string, Instance>& rows;       // ours, open
        const std::map<std::string, int>& requesting;      // by pool, being written down
    };
    // What is not known of a pool yet is taken from its record.
    void look(const Sight& sight);
    // A machine came to serve.
    void note_start(const PoolSettings& pool, const Instance& instance);

    // Whether machines that are stopped start sooner than new ones, as far as is known.
    bool parking_pays(const std::string& pool) const;
    // The latest; nullptr: the pool is not scaled.
    const autoscale::Decision* decision(const std::string& pool) const;
    // How long new machines lately were in each phase of their start, by pool: {phase: {"p50",
    // "p90"}}.
    std::map<std::string, json::object> start_phases() const;
    // In a few words for those whose jobs wait, by pool: no machine is started for them.
    std::map<std::string, std::string> hindrances() const;

    // Pools whose record is to be stored, each with the events that are to be told: at once where
    // something was decided or a machine ended, otherwise every minute.
    struct Due {
        std::string pool;
        std::vector<FleetEvent> events{};
    };
    std::vector<Due> take_due(Time now);
    json::object to_store(const std::string& pool) const;

    // For whoever counts, since this process began to look.
    struct Money {
        double idle_usd = 0;   // paid for machines that were ready and did nothing
        double spent_usd = 0;  // for all
        std::optional<autoscale::Tightest> budget{};
    };
    std::map<std::string, Money> money() const;

private:
    struct Kept {
        autoscale::Memory memory{};
        std::map<std::string, double> prices{};  // USD an hour, by offer
        std::optional<Time> counted_until{};     // what was spent
        std::set<std::string> counted{};         // instances
        autoscale::ToldLimits warned{};
        // Lost with the process.
        std::optional<autoscale::Decision> latest{};
        std::optional<int> told{};  // of machines that are not there yet, or still are
        std::optional<autoscale::Why> stuck{};
        Time stuck_told_at{};
        std::vector<FleetEvent> events{};
        std::optional<Time> stored_at{};
        std::optional<double> arrived_s_stored{};
        bool is_changed = false;
        Money money{};
    };
    void recall(const std::string& pool, const Sight& sight);
    void count_costs(const PoolSettings& pool, Kept& kept, const Sight& sight);
    autoscale::PoolView view_of(const PoolSettings& pool, const Sight& sight) const;
    void add_machines(const PoolSettings& pool, const Sight& sight, autoscale::PoolView& view)
        const;
    void add_work(const PoolSettings& pool, const Sight& sight, autoscale::PoolView& view) const;
    void add_budget(const PoolSettings& pool, const Sight& sight, autoscale::PoolView& view) const;
    std::vector<const autoscale::Spending*> all_spent(const Sight& sight) const;
    static FleetEvent event_of(
        const PoolSettings& pool, std::string what, std::string why, Time now
    );
    static void tell(const PoolSettings& pool, Kept& kept, Time now);
    void tell_budgets(const PoolSettings& pool, const Sight& sight);
    static void tell_limits(
        const PoolSettings& pool,
        const std::string& whose,
        const std::vector<autoscale::Tightest>& limits,
        Kept& kept,
        Time now
    );

    autoscale::Budget of_fleet_;
    std::map<std::string, Kept> kept_;                      // by pool
    std::map<std::string, autoscale::Spending> elsewhere_;  // of pools that others keep
};

// What is durable of a pool's scaling, for whoever reads its record.
autoscale::Memory scaling_memory(const PoolRecord& record);

}  // namespace comfyd::fleet
