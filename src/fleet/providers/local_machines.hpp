// The machines of this computer as they lie on disk and run: what the provider of processes does,
// without its waiting. Blocks: for a pool. Any thread; those that give places away take turns.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "base/processes.hpp"
#include "fleet/providers/local_places.hpp"
#include "fleet/providers/machines.hpp"
#include "fleet/providers/process.hpp"
#include "fleet/providers/process_record.hpp"

namespace comfyd::fleet {

class LocalMachines {
public:
    explicit LocalMachines(ProcessOptions options);

    Result<std::vector<Offer>> offers(const OfferWish& wish);
    // Beginning takes three steps, because fetching nodes may take minutes. The first gives it a
    // place and a folder. nullopt: it is there, or in the making; one that was never started,
    // because we were ended just then, is made anew.
    Result<std::optional<ProcessRecord>> reserve(const MachineOrder& order);
    // Lays out its nodes.
    Result<> furnish(const ProcessRecord& record) const;
    // Starts it, or gives its place back where it could not be furnished.
    Result<> begin(const ProcessRecord& record, Result<> furnished);
    std::vector<Machine> list(const std::string& fleet);
    // Code::not_found.
    Result<> start(const std::string& id);
    Result<std::string> logs(const std::string& id, int lines);

    // Ending takes three steps, because what is asked to go may take its time. Returns who belongs
    // to it: once the agent is gone, not all of them could be told any more.
    std::vector<ProcessMark> ask_to_end(const std::string& id);
    bool agent_runs(const std::string& id);
    // Kills whatever is left, of those that were known and of those that came since.
    // Code::execution_timeout: something does not go.
    Result<> kill(const std::string& id, const std::vector<ProcessMark>& known);
    // Removes its folder.
    Result<> forget(const std::string& id);

    // The agents that run, for somebody to watch.
    std::map<std::string, ProcessMark> running();

private:
    std::optional<ProcessRecord> find(const std::string& id) const;
    std::vector<ProcessRecord> records() const;
    void drop_remains(const std::string& fleet) COMFYD_REQUIRES(mutex_);
    // Its agent, also where it was not written down any more; pid 0: none.
    ProcessMark agent_of(const ProcessRecord& record) const;
    ProcessFamily family_of(const ProcessRecord& record) const;
    Machine describe(const ProcessRecord& record) const;
    Result<ProcessRecord> write_down(const MachineOrder& order) COMFYD_REQUIRES(mutex_);
    Result<> spawn(ProcessRecord record) COMFYD_REQUIRES(mutex_);

    const ProcessOptions options_;
    const LocalPlaces places_;
    Mutex mutex_;
    std::set<std::string> in_making_ COMFYD_GUARDED_BY(mutex_);
};

}  // namespace comfyd::fleet
