// Whose turn it is, and on which worker. Pure: no I/O, no clock but the one handed in, no chance;
// the same calls give the same answers. One owner.
//
// Order: classes by priority with wait targets; inside a class a weighted fair share of GPU-seconds
// between tenants, then between a tenant's own keys; then higher priority and age. Placement: by a
// policy (policy.hpp). docs/scheduling.md tells the whole story.
//
// Use: set_worker() for every worker and whenever something about it changed; add() jobs; call
// next() until it has nothing more, after every change; finished() when a run has ended.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.hpp"
#include "base/time.hpp"
#include "scheduler/classifier.hpp"
#include "scheduler/estimates.hpp"
#include "scheduler/profile.hpp"

namespace comfyd::scheduler {

// Priorities 10-8, 7-4, 3-1, and what was asked for as best effort.
enum class WaitClass { high, medium, low, batch };
inline constexpr std::size_t kWaitClasses = 4;
std::string_view to_string(WaitClass wait_class);
WaitClass wait_class_of(int priority, bool batch);
// 30 s, 2 min, 10 min. For batch, which has no target: after how long it is helped along.
Millis wait_target(WaitClass wait_class);

// What is to be known of a job. About 150 bytes stay in memory for each that waits.
struct JobKeys {
    int priority = 5;  // 1..10, larger goes first; see classifier.hpp
    bool batch = false;
    Grounds grounds{};  // of the priority; only kept
    std::string tenant;
    std::string fairness_key;  // the tenant's own: its users or projects share its part evenly
    ProfilePtr profile;        // not null
    Time queued_at{};          // it ages from here
    std::vector<std::string> avoid{};  // workers on which it failed; others are preferred
    // Of the whole workflow: jobs with the same one do the same. 0: not known.
    std::uint64_t content = 0;
};

struct TenantTerms {
    double weight = 1;            // of its part of the GPU-seconds; > 0
    std::size_t running_max = 0;  // more than this never run at a time; 0: no limit
    // Why none of its jobs is started for now, in words; empty: they are. They want no machines
    // meanwhile.
    std::string hold{};
};

struct WorkerState {
    std::string id;
    std::string gpu_type;  // as Estimates knows it
    // Workers with the same non-empty name share the memory of one GPU.
    std::string gpu{};
    std::uint64_t vram_bytes = 0;  // of the GPU; 0: not known, then everything fits
    std::string region{};          // where it stands, as a request may name it
    std::uint64_t ram_bytes = 0;   // main memory of its machine; 0: not known, likewise
    // Models that stay loaded beside those of its latest job, as far as they fit in here together.
    std::uint64_t model_memory_bytes = 0;
    int slots = 1;                  // jobs that it runs at a time
    bool available = true;          // false: draining or down; what runs there goes on
    std::string unavailable_why{};  // in words: "is down: connection refused"
    bool merges = false;            // can run several jobs of one shape as one batch
    // Whether it has what Profile::requirement names. Asked once for each and kept. Empty: all.
    // What a requirement says of GPU, memory and region is judged by what stands here.
    std::function<bool(const Requirement& requirement)> can_run{};
    // Workers with the same non-empty text answer can_run() alike; so does the worker itself as
    // long as the text stays. Empty: it answers for itself, and is asked again after set_worker().
    std::string abilities{};
};

enum class PolicyName { finish_time, score, fifo };
std::string_view to_string(PolicyName policy);
std::optional<PolicyName> parse_policy(std::string_view text);  // "finish-time", "score", "fifo"

struct Options {
    PolicyName policy = PolicyName::finish_time;
    // A worker stays with the models that it has loaded, passing over older jobs of the same class
    // that would need a load, for at most this many times what the load costs.
    double stay_factor = 5;
    // While a lower class is past its target, every so many placements one is taken from it.
    int ageing_turn = 4;
    int merge_max = 1;  // jobs in one merged run; 1: never merge
    // While jobs that can be merged come one after the other, the first of them wait so long for
    // the next ones. 0: nobody waits.
    Millis gather{0};
};

// What one worker would mean for one job, in seconds from the time of the decision.
struct Numbers {
    double remaining_s = 0;  // until it is free
    double load_s = 0;       // of the models that it does not have
    double run_s = 0;        // on its type of GPU, among what others run there
    double finish_s = 0;     // the sum
    std::uint64_t vram_needed = 0;
    std::uint64_t vram_free = 0;  // of its GPU, less what runs there; 0: not known
    double cached = 1;            // part of the models' bytes that it has
    double load = 0;              // part of its slots in use
    double score = 0;             // of the policy `score`
};

enum class Why {
    only_choice,  // the only worker that can take it now
    warm,         // its models are loaded there
    best_finish,  // the earliest expected finish of those that can take it now
    spread,       // loaded there also, because its queue outweighs the load
    best_score,   // policy score
    first_free,   // policy fifo
};
std::string_view to_string(Why why);

struct Decision {
    JobId job;
    std::string worker;
    // Jobs that run in the same batch, in order. Empty unless the worker merges.
    struct Batched {
        JobId job;
        JobKeys keys;
    };
    std::vector<Batched> batched;
    JobKeys keys;  // of `job`, as they were added
    Why why = Why::only_choice;
    Numbers numbers;
    // What it was compared with: the next best worker, free or busy.
    std::string other_worker;
    Numbers other;
    double waited_s = 0;
    std::size_t queue_length = 0;  // before this decision
};

// Waiting jobs and the seconds that they are expected to run.
struct Amount {
    std::size_t jobs = 0;
    double seconds = 0;
};

// What waits for machines of one kind.
struct Demand {
    MachineWish machine;
    Amount waiting;
    bool is_served = false;  // some worker could take it, now or when it is free
};

// Of what waits, jobs that are alike to who decides how many machines there shall be.
struct Backlog {
    MachineWish machine;
    WaitClass wait_class = WaitClass::medium;
    std::string model{};  // the largest that they need; empty: none
    double load_s = 0;    // that it takes to load
    Amount waiting;
    bool is_served = false;  // some worker could take it, now or when it is free
};

// What a worker does, for whoever thinks of giving it up.
struct WorkerUse {
    std::size_t jobs = 0;         // runs; jobs that share one are one
    double seconds = 0;           // that they still take
    std::size_t best_effort = 0;  // of the runs
    std::size_t wanted = 0;       // waiting jobs that need a model which it has loaded
};

// What is loaded where, and what loading would mean, for who decides what to load ahead of jobs.
// Kinds of jobs are bits in the order in which they were asked for.
struct Warmth {
    static constexpr std::size_t kKindsMax = 64;
    struct Worker {
        std::string id;
        std::uint64_t loaded = 0;  // kinds of which it has all models
        // Of one that takes work and has none, on a GPU of its own; nullopt of all others.
        std::optional<Millis> idle{};
        // By kind, of idle ones: seconds that it would load, below 0 where it cannot run such jobs,
        // and what would be loaded then.
        std::vector<double> load_s{};
        std::vector<std::uint64_t> then_loaded{};
    };
    struct Kind {
        std::size_t waiting = 0;  // jobs that need its largest model
        double run_s = 0;         // on the type of GPU that most workers have
        double load_s = 0;        // of all its models, likewise
    };
    std::vector<Worker> workers;
    std::vector<Kind> kinds;
};

struct WorkerVerdict {
    std::string worker;
    bool capable = false;  // could run it, now or when it is free
    bool is_free = false;  // could begin now
    std::string reason;    // in words: why not, or what it would take there
    Numbers numbers;       // where capable
};

// Why a job waits. For people and for the API.
struct Explanation {
    std::size_t position = 0;
    WaitClass wait_class = WaitClass::medium;
    int priority = 5;  // as it was added, and on what grounds
    Grounds grounds{};
    std::string fairness_key;
    double waited_s = 0;
    double target_s = 0;
    std::array<Amount, kWaitClasses> ahead_by_class{};
    std::map<std::string, Amount> ahead_by_tenant;  // the largest 20 of its own class
    std::size_t own_tenant_ahead = 0;               // jobs of its own class
    std::size_t other_tenants_ahead = 0;            // tenants with such jobs
    Amount running;                                 // on all workers, with what is left of it
    std::size_t workers_capable = 0;
    std::vector<WorkerVerdict> workers;     // at most 200, capable ones first
    std::optional<double> expected_wait_s;  // nullopt: nobody can run it, or it is held back
    double expected_run_s = 0;
    double expected_load_s = 0;
    bool tenant_at_limit = false;
    std::string waits_for;             // a worker whose models are warm, where that is cheaper
    std::vector<std::string> reasons;  // sentences: why it waits
    std::vector<std::string> advice;   // sentences: what would change it
};

class Scheduler {
public:
    // `estimates` outlives this.
    explicit Scheduler(const Estimates& estimates, Options options = {});
    ~Scheduler();
    Scheduler(const Scheduler&) = delete;
    Scheduler& operator=(const Scheduler&) = delete;

    void set_tenant(const std::string& tenant, TenantTerms terms);

    // New, or changed; what runs there and what it has loaded stays.
    void set_worker(WorkerState state);
    // What still runs there is forgotten when finished() tells of it.
    void remove_worker(const std::string& id);
    bool has_worker(const std::string& id) const;
    // It was restarted or has given its memory back: nothing is loaded there.
    void forget_models(const std::string& worker);
    // These are loaded there, as somebody measured.
    void set_models(const std::string& worker, const std::vector<Model>& models);

    // What is known of a job with this profile before it is added: what it takes on the type of
    // GPU that most workers have and how much of its models is loaded somewhere. Time and memory
    // only where runs were seen; nothing of a profile without a shape.
    Circumstances circumstances(const ProfilePtr& profile) const;
    // REQUIRES: neither waiting nor running.
    void add(const JobId& job, JobKeys keys);
    bool remove(const JobId& job);  // from those that wait; false when it is not one of them
    bool contains(const JobId& job) const;
    // REQUIRES: contains(job).
    JobKeys keys_of(const JobId& job) const;

    // The next job to start and where; it counts as running there from now on. nullopt: nothing
    // that waits should start now.
    std::optional<Decision> next(Time now);
    // When to ask next() again even though nothing has changed: jobs that wait for a warm worker
    // because it was expected to be free sooner.
    std::optional<Time> wake_at() const;

    // A job that runs without having been placed here, with those that share its run: found again
    // after a restart. Unknown workers are ignored.
    void running(
        const JobId& job,
        const std::string& worker,
        JobKeys keys,
        Time now,
        const std::vector<Decision::Batched>& batched = {}
    );
    // Of the time since it was placed, the part in which its GPU worked for it and not for other
    // workers on the same GPU; 1 where it does not run.
    double gpu_part(const JobId& job, Time now) const;
    // How many times as long as alone a run on this worker takes because of others on its GPU.
    double sharing(const std::string& worker) const;
    // The run has ended, however. `gpu_seconds`: what it took, for the account of its tenant.
    void finished(const JobId& job, double gpu_seconds, Time now);

    std::size_t size() const;           // waiting
    std::size_t running_count() const;  // placed and not finished
    Amount waiting(WaitClass wait_class) const;
    // Of all that waits and may start, the largest first; those of one kind of machine together.
    std::vector<Demand> demands() const;
    // The same by class and model, in no order.
    std::vector<Backlog> backlog() const;
    // Expected seconds of all that was ever added but for best effort and what was held back then,
    // by the pool that it asks for; they only grow.
    std::map<std::string, double> arrived_s() const;
    // As Estimates::gpu_speeds().
    std::map<std::string, double> gpu_speeds() const;
    WorkerUse use_of(const std::string& worker, Time now) const;
    // REQUIRES: at most Warmth::kKindsMax kinds, by a profile each.
    Warmth warmth(const std::vector<ProfilePtr>& kinds, Time now) const;
    // Its models are loaded there from now on, ahead of a job. The worker still counts as free.
    void warm(const std::string& worker, const ProfilePtr& profile);
    std::uint64_t loads() const;  // placements that had to load a model, since the start
    // 1 = next in the order of the whole queue. nullopt when it does not wait.
    std::optional<std::size_t> position(const JobId& job, Time now) const;
    // Seconds until it is expected to start. nullopt when it does not wait, is held back, or nobody
    // can run it.
    std::optional<double> expected_wait(const JobId& job, Time now) const;
    std::optional<Explanation> explain(const JobId& job, Time now) const;

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace comfyd::scheduler
