// The store of instances in memory, for tests and simulations. Any thread.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "fleet/instances/store.hpp"

namespace comfyd::fleet {

class MemoryInstances final : public InstanceStore {
public:
    Task<Result<>>
    save_instance(Instance instance, std::optional<FleetEvent> event, std::optional<jobs::Term>)
        override {
        const Lock lock(mutex_);
        Instance& stored = instances_[instance.id];
        if (stored.revision + 1 != instance.revision) {
            if (stored.revision == 0) {
                instances_.erase(instance.id);
            }
            co_return fail(Code::conflict, "the instance was changed meanwhile");
        }
        stored = instance;
        std::erase(ended_, instance.id);
        if (!is_open(instance.state)) {
            stored.token.clear();
            ended_.push_back(instance.id);
        }
        if (ended_.size() > kEndedKept) {
            instances_.erase(ended_.front());
            ended_.erase(ended_.begin());
        }
        note(std::move(event));
        co_return Result<>();
    }
    Task<Result<std::vector<Instance>>> open_instances(std::string fleet) override {
        const Lock lock(mutex_);
        std::vector<Instance> open;
        for (const auto& [id, instance] : instances_) {
            if (instance.fleet == fleet && is_open(instance.state)) {
                open.push_back(instance);
            }
        }
        co_return open;
    }
    Task<Result<std::vector<Instance>>> ended_instances(std::string fleet, int limit) override {
        const Lock lock(mutex_);
        std::vector<Instance> ended;
        for (auto id = ended_.rbegin(); id != ended_.rend() && std::ssize(ended) < limit; ++id) {
            if (instances_.at(*id).fleet == fleet) {
                ended.push_back(instances_.at(*id));
            }
        }
        co_return ended;
    }

    Task<Result<>> save_pool(PoolRecord record, std::optional<FleetEvent> event) override {
        const Lock lock(mutex_);
        PoolRecord& stored = pools_[{record.fleet, record.name}];
        if (stored.revision + 1 != record.revision) {
            co_return fail(Code::conflict, "the pool was changed meanwhile");
        }
        stored = std::move(record);
        note(std::move(event));
        co_return Result<>();
    }
    Task<Result<std::vector<PoolRecord>>> pool_records(std::string fleet) override {
        const Lock lock(mutex_);
        std::vector<PoolRecord> records;
        for (const auto& [key, record] : pools_) {
            if (record.fleet == fleet && record.revision > 0) {
                records.push_back(record);
            }
        }
        co_return records;
    }

    Task<Result<>> note_fleet_event(FleetEvent event) override {
        const Lock lock(mutex_);
        note(std::move(event));
        co_return Result<>();
    }
    Task<Result<std::vector<FleetEvent>>> fleet_events(FleetEventQuery query) override {
        const Lock lock(mutex_);
        std::vector<FleetEvent> found;
        for (auto event = events_.rbegin(); event != events_.rend(); ++event) {
            const bool is_asked_for = event->fleet == query.fleet && event->number < query.before &&
                                      (!query.pool || event->pool == *query.pool) &&
                                      (!query.instance || event->instance == *query.instance);
            if (is_asked_for && std::ssize(found) < query.limit) {
                found.push_back(*event);
            }
        }
        co_return found;
    }
    Task<Result<std::vector<FleetEvent>>> fleet_events_after(
        std::string fleet, FleetEventPlace after, int limit
    ) override {
        const Lock lock(mutex_);
        std::vector<FleetEvent> found;
        for (const FleetEvent& event : events_) {
            if (event.fleet == fleet && event.place() > after && std::ssize(found) < limit) {
                found.push_back(event);
            }
        }
        co_return found;
    }

private:
    void note(std::optional<FleetEvent> event) COMFYD_REQUIRES(mutex_) {
        if (event) {
            event->number = ++noted_;
            events_.push_back(std::move(*event));
            if (events_.size() > kEventsKept) {
                events_.erase(events_.begin());
            }
        }
    }

    Mutex mutex_;
    std::map<std::string, Instance> instances_ COMFYD_GUARDED_BY(mutex_);
    std::vector<std::string> ended_ COMFYD_GUARDED_BY(mutex_);  // the oldest first
    std::map<std::pair<std::string, std::string>, PoolRecord> pools_ COMFYD_GUARDED_BY(mutex_);
    std::vector<FleetEvent> events_ COMFYD_GUARDED_BY(mutex_);
    std::uint64_t noted_ COMFYD_GUARDED_BY(mutex_) = 0;
};

}  // namespace comfyd::fleet
