// What operators ask of the fleet's machines, from whichever node: what is stored is read and
// written in the ledger, and the keeper that leads goes by it. Only a machine's own words are had
// from its provider, by the node that leads it.
//
// Owned by the application; members may be called on any executor.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "api/dialects/fleet/fleet.hpp"
#include "app/config/config.hpp"
#include "app/model_news.hpp"
#include "app/office.hpp"
#include "fleet/instances/store.hpp"
#include "observe/metrics.hpp"

namespace comfyd::app {

class FleetDesk {
public:
    // All outlive it. `offices`: of the domains that this node leads now; on the core.
    struct Parts {
        Executor core;
        const Clock& clock;
        fleet::InstanceStore& store;
        const Config& config;
        std::function<std::vector<std::shared_ptr<Office>>()> offices;
        const ModelNews& model_news;
    };
    explicit FleetDesk(Parts parts) : p_(std::move(parts)) {}

    api::FleetServices services();

    // What /metrics shows of the machines that this node keeps.
    struct Readings {
        std::vector<fleet::Instance> instances{};
        fleet::KeeperCounts counts{};
        std::map<std::string, fleet::Scaling::Money> money{};    // by pool
        std::map<std::string, autoscale::Decision> decisions{};  // likewise
        std::map<std::string, json::object> start_phases{};
    };
    Task<Readings> readings();

private:
    Task<Result<json::object>> show();
    Task<Result<json::object>> events(api::FleetServices::Events query);
    Task<Result<json::object>> decisions(api::FleetServices::Events query);
    Task<Result<json::object>> forecast(std::string pool);
    Task<Result<json::object>> resize(std::string pool, std::optional<int> size);
    Task<Result<json::object>> resume(std::string pool);
    Task<Result<json::object>> let_go(std::string instance);
    Task<Result<std::string>> logs(std::string instance, int lines);
    Task<Result<std::string>> logs_here(std::string instance, int lines);

    using Change = std::function<fleet::FleetEvent(fleet::PoolRecord& record)>;
    Task<Result<json::object>> change_pool(std::string pool, Change change);
    Task<Result<>> save_change(std::string pool, Change change);
    Task<Result<std::vector<fleet::Instance>>> open_instances();
    Task<Result<json::object>> show_pool(std::string pool);
    Task<Result<fleet::Instance>> find(std::string instance);
    fleet::FleetEvent event(std::string what, std::string why, std::string pool) const;
    const fleet::PoolSettings* settings_of(const std::string& pool) const;
    void wake_keepers();

    Parts p_;
};

void collect(const FleetDesk::Readings& readings, observe::Metrics::Gauges& gauges);

}  // namespace comfyd::app
