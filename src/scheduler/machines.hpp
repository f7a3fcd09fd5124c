// The workers as the scheduler sees them: what they can run, what runs there, which models they
// have loaded, and how much memory their GPUs have left. Those that are free are found by kind and
// by model without looking at the others. Owned by the scheduler.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/id.hpp"
#include "scheduler/profile_table.hpp"
#include "scheduler/scheduler.hpp"

namespace comfyd::scheduler {

class Machines {
public:
    // Free ones: the least loaded first, then the one that has been free for longest. Busy ones:
    // that which is expected to be free first.
    using FreeKey = std::tuple<std::size_t, std::uint64_t, Index>;
    using BusyKey = std::pair<Time, Index>;

    static constexpr std::size_t kResultsKept = 4;
    // Whether a kind of worker can run what has a requirement; exact: its GPU has the very name.
    static constexpr signed char kUnknown = -1;
    enum Can : signed char { no = 0, yes = 1, exact = 2 };

    struct Loaded {
        Index model = 0;
        std::uint64_t used = 0;  // the larger the later
    };
    // In seconds of the GPU's time, of which workers that share a GPU have equal parts.
    struct Run {
        JobId job;
        double seconds = 0;  // expected
        std::uint64_t vram_bytes = 0;
        double began_s = 0;  // on the clock of its GPU
    };
    struct Machine {
        bool live = false;
        WorkerState state;
        Index type = 0;
        Index kind = 0;
        Index gpu = 0;
        std::vector<Run> runs;
        std::vector<Loaded> loaded;
        // Until then it passes over older jobs of the same class that would need a load.
        Time stays_until{};
        double latest_load_s = 0;
        // What its latest runs did, whose results it may still have: JobKeys::content.
        std::array<std::uint64_t, kResultsKept> results{};
        std::size_t next_result = 0;
        std::optional<Index> latest_profile;
        std::uint64_t free_since = 0;
        bool listed = false;  // in the indices as ...
        bool listed_free = false;
        FreeKey free_key{};
        BusyKey busy_key{};

        bool has_room() const {
            return live && state.available && runs.size() < static_cast<std::size_t>(state.slots);
        }
    };
    // Workers that are alike in all that does not change from job to job.
    struct Kind {
        Index type = 0;
        std::uint64_t vram_bytes = 0;
        std::uint64_t ram_bytes = 0;
        std::size_t members = 0;  // available ones
        double capacity = 0;      // of those: see capacity_of()
        std::set<FreeKey> free;
        std::string region;
        std::vector<signed char> can;  // by requirement: kUnknown or a Can
    };

    explicit Machines(ProfileTable& profiles);

    Index set(WorkerState state);
    void remove(Index worker);
    std::optional<Index> find(const std::string& id) const;
    const Machine& operator[](Index worker) const { return machines_[worker]; }
    std::size_t count() const { return machines_.size(); }
    const std::vector<Kind>& kinds() const { return kinds_; }

    Can can(Index kind, Index requirement) const;
    bool can_run(Index kind, Index requirement) const { return can(kind, requirement) != Can::no; }
    bool can_run(const Machine& machine, Index profile) const;
    // The memory of one of this kind is enough, if nothing else runs on its GPU: that of its GPU
    // for the run, and its main memory for the models. When it is for none that can run the
    // profile, those with the most memory count as enough.
    bool is_large_enough(const Kind& kind, Index profile) const {
        return has_large_gpu(kind, profile) && has_memory(kind, profile);
    }
    bool has_large_gpu(const Kind& kind, Index profile) const;
    bool has_memory(const Kind& kind, Index profile) const;
    // That its models take together.
    std::uint64_t model_bytes(Index profile) const;
    // What a run takes of its GPU's memory: as expected, or what its request asks for.
    std::uint64_t claim(const Machine& machine, Index profile) const;
    // So is what the other jobs on its GPU leave.
    bool fits_now(const Machine& machine, Index profile) const;
    std::uint64_t vram_free(const Machine& machine) const;

    bool has_model(const Machine& machine, Index model) const;
    double load_s(const Machine& machine, Index profile) const;
    double cached(const Machine& machine, Index profile) const;
    // The best of a few workers, free and busy ones, that have its anchor.
    double most_cached(Index profile, int looks) const;
    std::uint64_t largest_vram() const { return largest_vram_; }  // of available workers

    // The run counts from now on, and its models are loaded; gives the anchors that had to go.
    std::vector<Index> start(Index worker, Run run, Index profile, Time now);
    void stay(Index worker, Time until, double latest_load_s);
    // The workers that have room because of it: this one and those on the same GPU.
    std::vector<Index> finish(Index worker, const JobId& job, Time now);
    void set_models(Index worker, const std::vector<Index>& models);
    // The models of the profile are brought there ahead of a job; gives the anchors that had to go.
    // Among workers that are equal otherwise it is the last choice now.
    std::vector<Index> warm(Index worker, Index profile);
    // Whether the models of `other` were loaded there if those of `profile` were, too.
    bool would_keep(const Machine& machine, Index profile, Index other) const;
    // For how long it has run nothing; nullopt: it runs something, takes nothing, or shares its
    // GPU.
    std::optional<Millis> idle_for(const Machine& machine, Time now) const;
    // It will have the results of a job like this. `content` 0: of nothing that could come again.
    void keep_results(Index worker, Index profile, std::uint64_t content);
    void forget_results(Index worker);
    // The worker that did the same last, or the same but for texts and seeds.
    std::optional<Index> with_results(std::uint64_t content) const;
    std::optional<Index> latest_with(Index profile) const;
    // A model by which jobs look for workers.
    void make_anchor(Index model);

    const std::set<FreeKey>& free_with(Index anchor) const;
    const std::set<BusyKey>& busy_with(Index anchor) const;
    bool any_free() const { return free_count_ > 0; }
    // What all available workers that can run the profile do at a time, and their number.
    std::pair<double, std::size_t> capable(Index profile) const;
    // Jobs at a time, of which those on one GPU count together as one worker's.
    double capacity_of(const Machine& machine) const;
    // How many times as long as alone a run takes there that begins now.
    double sharing(const Machine& machine) const;
    // Until it has room. A run that takes longer than expected is not at its end at once.
    double remaining_s(const Machine& machine, Time now) const;
    // GPU time that its runs still take.
    double left_s(const Machine& machine, Time now) const;
    // GPU time that each worker on this one's GPU has had, of any beginning.
    double served_s(const Machine& machine, Time now) const;
    // Of everything that runs.
    Amount running(Time now) const;

private:
    struct Gpu {
        std::uint64_t used = 0;
        std::vector<Index> workers;
        std::size_t available = 0;  // of them
        std::size_t busy = 0;       // workers with runs
        Time as_of{};
        double served_s = 0;  // that each busy worker has had until then
    };
    struct Anchor {
        bool in_use = false;
        std::set<FreeKey> free;
        std::set<BusyKey> busy;
    };

    std::vector<Index> use_models(Machine& machine, Index profile, bool is_alone);
    std::size_t kept_beside(const Machine& machine, const std::vector<Index>& wanted) const;
    void list(Index worker);
    void unlist(Index worker);
    Index kind_index(const WorkerState& state, Index type);
    void count_member(Index worker, bool is_added);
    void change_busy(Gpu& gpu, int workers);
    Time expected_end(const Machine& machine) const;  // of its first run
    static double served_s(const Gpu& gpu, Time now);
    static double left_s(const Gpu& gpu, const Run& run, Time now);
    void choose_usual_type();  // and the largest memory

    ProfileTable& profiles_;
    std::vector<Machine> machines_;
    std::unordered_map<std::string, Index> by_id_;
    std::vector<Index> free_places_;
    mutable std::vector<Kind> kinds_;
    std::unordered_map<std::string, Index> kind_names_;
    std::vector<Gpu> gpus_;
    std::unordered_map<std::string, Index> gpu_names_;
    std::vector<Anchor> anchors_;
    std::unordered_map<std::uint64_t, Index> results_;  // of all workers, by content
    std::unordered_map<Index, Index> latest_;           // worker by profile
    std::size_t free_count_ = 0;
    std::uint64_t largest_vram_ = 0;
    std::uint64_t tick_ = 0;
};

}  // namespace comfyd::scheduler
