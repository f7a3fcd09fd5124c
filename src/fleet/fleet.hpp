// The machines that run workflows: ComfyUI servers and the embedded engine. Built by the
// application, which also starts and stops it. Core executor only, but for catalogue().
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "assets/store.hpp"
#include "base/mutex.hpp"
#include "base/pool.hpp"
#include "fleet/class_cache.hpp"
#include "fleet/node_costs.hpp"
#include "fleet/options.hpp"
#include "jobs/fleet.hpp"
#include "net/client.hpp"
#include "workflow/catalogue/catalogue.hpp"

namespace comfyd::fleet {

class ComfyWorker;
class ComingWorker;

// An io thread that workers are driven on.
struct Lane {
    Executor executor;
    net::Client& http;  // of this executor, with AddressPolicy::any
};

class Fleet final : public jobs::Fleet {
public:
    // All outlive it. `lanes`: at least one; the workers are spread over them. `node_costs` learns
    // of every run.
    Fleet(
        Executor core,
        const Clock& clock,
        std::vector<Lane> lanes,
        assets::Store& store,
        Pool& pool,
        ClassCache& classes,
        NodeCosts& node_costs,
        FleetOptions options
    );
    ~Fleet() override;  // REQUIRES: stop() finished, or start() was never called; no attempt runs
    Fleet(const Fleet&) = delete;
    Fleet& operator=(const Fleet&) = delete;

    // Before or after start(). Code::invalid_argument for a URL that is none, Code::conflict for an
    // id that is taken.
    Result<> add_comfyui(WorkerConfig config);
    // Likewise; its process is started with it.
    Result<> add_engine(EngineConfig config);
    // Takes a worker out while serving. It gets nothing more, and what it runs is finished; what
    // has not ended within `patience` is given back, for another worker to do. Returns when it is
    // gone; its id may be used again. Code::not_found; Code::conflict while it is being removed;
    // Code::cancelled: it is still there, and drains.
    Task<Result<>> remove(std::string id, Millis patience);

    void start();
    // True when every engine runs; false when one does not within `patience`.
    Task<bool> engines_are_up(Millis patience);
    // Ends of the engines' processes but for those of stop(), since the start.
    std::uint64_t engine_ends() const;
    // Ends the engines and the watching of workers. Attempts are ended by those who started them,
    // before.
    Task<> stop();

    // A draining worker ends what it runs and gets nothing more. Code::not_found; Code::conflict
    // for one that is being removed.
    Result<> drain(const std::string& id);
    Result<> resume(const std::string& id);
    // Its agent says that it is there.
    void hear_ready(const std::string& id);

    // Whether the input folder of a worker holds the file now ("cat.png", "set/cat.png"): its lists
    // may be minutes old, and do not tell of files in subfolders. A tenant may ask a few times a
    // second; beyond that the answer is no.
    Task<bool> has_input(std::string tenant, std::string name);

    // Those that are on their way, in place of those of before: they are shown, and get nothing.
    // One that has the id of a worker is left out.
    void set_coming(std::vector<jobs::WorkerInfo> coming);
    // Why there will be no more for now, by pool.
    void set_hindrances(std::map<std::string, std::string> why) { hindrances_ = std::move(why); }

    // From now on the catalogue remembers what workers of the pool with this software could last
    // run while it has none, and knows which machines it may have. `known`: from before; null:
    // nothing is.
    using Prospects = std::vector<workflow::Catalogue::Prospect>;
    void remember_pool(
        const std::string& pool,
        std::string software,
        std::shared_ptr<const workflow::NodeClasses> known,
        const Prospects& prospects
    );

    // What the workers can run, also those that are down for the moment. Any thread.
    std::shared_ptr<const workflow::Catalogue> catalogue() const;

    // What a worker that can run it says to a prompt before it is queued, its classes' own checks
    // included. nullopt: no capable worker has the node pack, or it did not answer in time.
    Task<std::optional<workflow::PromptVerdict>> judge(
        json::object prompt, std::vector<std::string> targets, Requirement requirement
    );

    // The agent of a worker that is on its way has answered.
    void meet_agent(const WorkerConfig& worker, std::uint64_t disk_free_bytes);

    std::vector<std::shared_ptr<jobs::Worker>> workers() const override;
    std::shared_ptr<jobs::Worker> find(const std::string& id) const override;
    void on_change(OnChange callback) override;
    std::vector<std::string> hindrances(const std::string& pool) const override;

private:
    // Joins many changes into one round of callbacks. Shared with the posted call, which may come
    // after our end.
    struct Changes {
        std::set<std::string> workers;  // not empty: a call is posted
        std::vector<OnChange> callbacks;
    };
    // Shared by the fleet and by those who got a worker from workers() or find().
    struct Member {
        std::shared_ptr<ComfyWorker> worker;
        std::shared_ptr<Supervisor> process;  // of an engine
        bool is_leaving = false;
    };

    Result<> add(WorkerConfig config, const FleetOptions& options);
    void start(const Member& member);
    bool may_ask(const std::string& tenant);
    static Task<> ask_for_input(const Member& member, std::string name, bool& found);
    bool is_left_to_engine(const Requirement& requirement) const;
    bool may_rest_one(const std::string& pool) const;
    void changed(const std::string& worker);
    void update_catalogue();
    std::vector<workflow::Catalogue::Entry> catalogue_entries();
    Member* find_member(const std::string& id);
    Task<Result<>> finish_runs(std::shared_ptr<ComfyWorker> worker, Millis patience);
    Task<> let_go(Member member);
    void tell_all_of_engine(const Member& member);
    Result<> set_draining(const std::string& id, bool draining);

    Executor core_;
    const Clock& clock_;
    const std::vector<Lane> lanes_;
    assets::Store& store_;
    Pool& pool_;
    const FleetOptions options_;
    const FleetOptions engine_options_;
    ClassCache& classes_;
    NodeCosts& node_costs_;
    TaskGroup processes_;  // of engines
    bool started_ = false;
    std::vector<Member> members_;
    std::unordered_map<std::string, std::shared_ptr<ComfyWorker>> by_id_;
    std::map<std::string, std::shared_ptr<ComingWorker>> coming_;
    std::map<std::string, std::string> hindrances_;
    std::size_t added_ = 0;          // since the start
    std::uint64_t ends_before_ = 0;  // of engines that were removed
    Signal runs_changed_;
    struct Remembered {
        std::string software;
        std::shared_ptr<const workflow::NodeClasses> classes;
    };
    std::map<std::string, Remembered> remembered_;  // by pool
    Prospects prospects_;
    std::shared_ptr<Changes> changes_;
    std::chrono::steady_clock::time_point asking_since_{};
    std::map<std::string, int> asked_;  // by tenant, since then
    mutable Mutex catalogue_mutex_;
    std::shared_ptr<const workflow::Catalogue> catalogue_ COMFYD_GUARDED_BY(catalogue_mutex_);
};

}  // namespace comfyd::fleet
