// Keeps pools at their sizes: does what plan.hpp says, and writes down in the ledger what came of
// it. One task looks at what is to be done, one for each provider lists its machines, and each step
// is a task of its own; an instance has one at a time.
//
// Whoever is stopped in the middle of a step leaves a row that tells what may have been begun; the
// next keeper, here or on another node, goes on from that. Owned by who leads the domain; core
// executor only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/task.hpp"
#include "fleet/callers.hpp"
#include "fleet/instances/crew.hpp"
#include "fleet/instances/plan.hpp"
#include "fleet/instances/pool_settings.hpp"
#include "fleet/instances/rests.hpp"
#include "fleet/instances/scaling.hpp"
#include "fleet/instances/start_phases.hpp"
#include "fleet/instances/store.hpp"
#include "jobs/load.hpp"

namespace comfyd::fleet {

using MachineProviders = std::map<std::string, std::shared_ptr<MachineProvider>>;  // by name

struct KeeperTimes {
    Millis tick{1'000};        // between looks while something is under way
    Millis idle_tick{15'000};  // and while nothing is
    Millis list_busy{5'000};   // between listings, likewise
    Millis list_idle{60'000};
    Millis examine_again{2'000};
};

// For whoever counts.
struct KeeperCounts {
    std::uint64_t strays_removed = 0;
    std::uint64_t starts = 0;  // that came to `ready`
    std::uint64_t failed_starts = 0;
    std::map<InstanceState, PhaseTimes> phases{};  // of those starts

    void add(const KeeperCounts& other);
};

class Keeper {
public:
    // What waits and what the workers do; nullopt: nobody knows.
    using LoadOf = std::function<std::optional<jobs::Load>()>;
    // All references outlive it.
    struct Parts {
        Executor core;
        const Clock& clock;
        InstanceStore& store;
        Crew& crew;
        MachineProviders providers;
        std::string fleet;
        std::string domain = "main";
        std::vector<PoolSettings> pools;
        autoscale::Budget budget{};  // of the whole fleet
        std::string gateway{};       // whom machines call that have no address
        Callers* callers = nullptr;  // who lets those in; null: nobody can call
        LoadOf load{};               // empty: as if nothing waited
        // Under which it writes, and whether it still may; empty: it is nobody else's to lead.
        std::optional<jobs::Term> term{};
        std::function<bool()> may_act{};
        std::function<double()> chance;  // from 0 to 1
        std::function<std::string()> new_id = new_instance_id;
        std::function<std::vector<Step>(const View&)> plan = fleet::plan;  // a test's may differ
        KeeperTimes times{};
    };
    explicit Keeper(Parts parts);
    ~Keeper();  // REQUIRES: stop() has returned, or start() was never called

    // Takes on again those that serve, before the jobs that they run are brought back.
    Task<> recall();
    void start();
    // Machines stay.
    Task<> stop();
    // Somebody changed what there shall be.
    void look() { changed_.notify(); }

    std::vector<Instance> instances() const;
    bool keeps(const std::string& instance) const { return rows_.contains(instance); }
    const std::map<std::string, PoolSettings>& pools() const { return pools_; }
    // Of a provider by its name; those of the least where there is none.
    MachineTraits traits_of(const std::string& provider) const;
    const KeeperCounts& counts() const { return counts_; }
    const Scaling& scaling() const { return scaling_; }
    // The latest lines of its machine, without the secrets that it was told. Code::not_found.
    Task<Result<std::string>> logs(std::string instance, int lines);

private:
    Task<> run();
    Task<> read_pools();
    Task<> forget_old_sizes();
    Task<> read_rows();
    void look_at_needs();
    Task<> store_scaling();
    void act();
    void look_at_workers();
    jobs::Load load_now() const;
    View view() const;
    void note_deed(const Step& step);
    PoolGoal goal_of(const PoolSettings& pool, const jobs::Load& load) const;
    bool is_settled() const;
    // Neither shall become of it, nor is it looked at often: it serves, or is stopped.
    bool is_at_rest(const Instance& row) const;

    Task<> watch(std::string provider);
    Task<bool> list(const std::string& provider);
    void tell_progress(const std::string& provider, const Listing& seen);
    void compare(const Instance& row, const Listing& listing);
    Millis until_next_list(const std::string& provider, bool worked);

    // What the steps do; `perform` ends by letting the instance be looked at again.
    Task<> perform(Step step);
    Task<> take(Step step);
    Task<> request(Step step);
    Task<> create(Step step);
    Task<std::optional<Offer>> choose(const Step& step, OfferWish wish);
    Task<> order(Instance instance, const PoolSettings& pool, const Step& step);
    Task<> follow(Step step);
    Task<> examine(Step step);
    Task<> warm_up(Step step);
    Task<> inquire(Step step);
    void employ(const Step& step);
    Task<> drain(Step step);
    Task<> leave(Step step);
    Task<> park(Step step);
    Task<> wake(Step step);
    Task<> remove(Step step);
    Task<> end(Step step);
    Task<> remove_stray(Step step);

    // Makes it durable, and then ours. False: it is not, and the caller does nothing more.
    Task<bool> save(Instance instance, std::optional<FleetEvent> event = std::nullopt);
    Task<bool> move(
        Instance instance,
        InstanceState to,
        std::string why,
        std::string told,
        bool has_failed = false
    );
    FleetEvent event(std::string what, std::string why, const Instance& of) const;
    Task<> tell(FleetEvent event);
    Task<> refuse(const Step& step, Error error, bool is_ordered);
    std::string rest_provider(const std::string& provider, const Error& error);
    Task<> fail_switch(Step step, Error error);
    using ChangePool = std::function<std::optional<FleetEvent>(PoolRecord&)>;
    Task<> change_pool(std::string name, ChangePool change);
    Task<> count_failed_start(Instance instance);
    Task<> count_start(Instance instance);

    // Lets in who may call by what the rows say now, and nobody else.
    void let_in(const std::string& id);
    void let_all_in();

    bool may_act() const { return !is_over_ && (!p_.may_act || p_.may_act()); }
    Instance* find(const std::string& id);
    const PoolSettings* pool_of(const Instance& instance) const;
    MachineProvider* provider(const std::string& name) const;
    WorkerConfig worker_of(const Instance& instance) const;
    std::vector<std::string> secrets_of(const Instance& instance) const;
    // What its programs said, without the secrets that they were told.
    std::string presentable(const std::string& instance, std::string said) const;

    Parts p_;
    std::map<std::string, PoolSettings> pools_;
    std::map<std::string, PoolRecord> records_;
    std::map<std::string, Instance> rows_;       // open ones of our domain
    std::map<std::string, std::string> let_in_;  // instances that may call, and their tokens
    std::map<std::string, Aside> aside_;
    std::map<std::string, Listing> listings_;
    std::map<std::string, int> requesting_;  // by pool
    std::set<std::string> strays_;           // being removed, by provider and id
    Rests offers_;                           // by pool and place
    Rests providers_;
    Rests pools_rest_;  // after failed starts
    Rests lists_;       // of providers that do not list
    Rests removals_;    // by instance, likewise the next
    Rests switches_;    // between stopped and started
    std::uint64_t moment_ = 0;
    bool must_read_ = true;  // rows may be otherwise than we think
    Time store_rests_{};     // until then: it took something not
    bool is_over_ = false;   // somebody else leads
    KeeperCounts counts_;
    Scaling scaling_;
    Signal changed_;
    std::map<std::string, std::unique_ptr<Signal>> list_now_;
    TaskGroup tasks_;
};

// What an operator or the configuration say of a pool's size; nullopt: it follows from what waits.
std::optional<int> set_size(const PoolSettings& pool, const PoolRecord& record);

}  // namespace comfyd::fleet
