// Learns from finished runs how long the next ones take, how long models take to load and how much
// GPU memory is needed. Pure: no I/O, no clock; one owner. Bounded: of each kind of knowledge the
// entries that were learned longest ago are forgotten.
//
// Run times are kept as logarithms, because what differs between runs (GPUs, sizes, neighbours)
// multiplies; of the latest few the median counts (base/recent_median.hpp). What is not known is
// taken from what is, nearest first:
//   history    this shape on this type of GPU
//   other_gpu  this shape on another type, times the learned ratio of the two types
//   similar    workflows with nearly the same node classes on this type, scaled by work
//   heuristic  the plan's own estimate, times what such estimates were off by on this type
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/lru_map.hpp"
#include "base/recent_median.hpp"
#include "scheduler/estimates.hpp"

namespace comfyd::scheduler {

enum class Basis { history, other_gpu, similar, heuristic };
std::string_view to_string(Basis basis);

struct Expectation {
    double seconds = 0;
    // The true time is within a factor of (1 + this) two times out of three.
    double relative_error = 1;
    Basis basis = Basis::heuristic;

    double confidence() const { return 1 / (1 + relative_error); }  // 0..1
};

// What a finished run tells.
struct RunReport {
    const Profile& profile;
    std::string gpu_type;
    std::string worker;
    double seconds = 0;                    // on the worker, loading included
    std::vector<Model> loaded;             // that were not in memory when it began
    std::optional<double> load_seconds{};  // of those, where it was measured on its own
    std::optional<std::uint64_t> peak_vram_bytes{};
    int jobs = 1;  // that shared the run
};

class Predictor final : public Estimates {
public:
    struct Limits {
        std::size_t shapes = 4'096;
        std::size_t class_sets = 512;
        std::size_t gpu_types = 64;
        std::size_t loads = 16'384;  // of models, on workers and on types of GPU
        std::size_t workers = 16'384;
    };
    Predictor();
    explicit Predictor(const Limits& limits);

    double run_seconds(const Profile& profile, const std::string& gpu_type) const override;
    double load_seconds(const Model& model, const std::string& gpu_type, const std::string& worker)
        const override;
    std::uint64_t vram_bytes(const Profile& profile, const std::string& gpu_type) const override;
    double batch_seconds(const Profile& profile, const std::string& gpu_type, int jobs)
        const override;
    std::uint64_t batched_bytes(const Profile& profile, const std::string& gpu_type) const override;
    bool knows_runs(const Profile& profile, const std::string& gpu_type) const override;
    std::map<std::string, double> gpu_speeds() const override;
    std::uint64_t version() const override { return version_; }

    // As run_seconds(), and how sure that is.
    Expectation expect_run(const Profile& profile, std::string_view gpu_type) const;

    // Reports that cannot be (times that are not positive and finite, or above a week) are ignored.
    void learn(const RunReport& report);
    // `at_least`: what the run would have needed, where that was told; 0: it was not.
    void learn_out_of_memory(
        const Profile& profile, std::string_view gpu_type, std::uint64_t at_least = 0
    );
    // Of which runs were learned, the latest first.
    std::vector<std::string> gpu_types() const;
    // Rises with every report that was learned from, for whoever keeps it over a restart.
    std::uint64_t learned() const { return learned_; }

    json::object to_json() const;
    // What was learned before is forgotten. Entries that are not as they should be are left out;
    // Code::invalid_argument for a document of another kind or version.
    Result<> restore(const json::object& from);

private:
    static constexpr std::size_t kRecent = 9;
    static constexpr std::size_t kRecentMany = 31;
    using Recent = RecentMedian<kRecent>;
    using RecentMany = RecentMedian<kRecentMany>;

    // A run with a load, and no way yet to tell how much of it that was.
    struct Unsettled {
        std::string worker;
        std::vector<Model> loaded;
        double seconds = 0;
    };
    struct OnGpu {
        std::string gpu_type;
        Recent log_seconds;
        bool mixed = true;                 // all samples held a load whose share was only estimated
        std::vector<Unsettled> unsettled;  // of those
        double vram = 0;                   // bytes believed; 0: nothing learned
        BatchTimes batches;
        double batched_vram = 0;  // likewise, of each job of a merged run but the first
        // As of the latest version().
        double told_seconds = 0;
        double told_vram = 0;
        double told_batched_vram = 0;
    };
    struct Shape {
        std::vector<OnGpu> on;
    };
    struct ClassSet {
        std::vector<std::uint64_t> classes;                     // hashes, sorted
        std::vector<std::pair<std::string, Recent>> log_rates;  // of seconds per work unit, by type
    };
    struct GpuType {
        RecentMany log_factor;  // of seconds against the heuristic's
        std::vector<std::pair<std::string, RecentMany>> log_ratios;  // against other types
    };

    static const OnGpu* find_on(const Shape& shape, std::string_view gpu_type);
    std::optional<Expectation> from_other_gpu(const Shape& shape, std::string_view gpu_type) const;
    std::optional<Expectation> from_similar(const Profile& profile, std::string_view gpu_type)
        const;
    Expectation from_heuristic(const Profile& profile, std::string_view gpu_type) const;
    std::optional<std::pair<double, double>> log_ratio(
        std::string_view gpu_type, std::string_view other
    ) const;
    bool says_where_time_went(const RunReport& report) const;
    std::optional<double> clean_run(const RunReport& report) const;
    void learn_mixed(const RunReport& report);
    void settle(const RunReport& clean, double clean_seconds, std::vector<Unsettled> guessed);
    void learn_run(const RunReport& report, double seconds, bool mixed);
    void learn_similar(const Profile& profile, const std::string& gpu_type, double log_seconds);
    void learn_ratios(const Shape& shape, const std::string& gpu_type, double log_seconds);
    // `is_known`: not guessed, and so good for models of the same size, too.
    void learn_loads(const RunReport& report, double seconds, bool is_known);
    void learn_peak(const Profile& profile, const std::string& gpu_type, double bytes);
    void learn_batch(const RunReport& report);
    // A new version, where an answer has moved away from what was told by more than a little.
    void tell(double& told, double now);
    OnGpu& use_on(std::string_view shape, std::string_view gpu_type);
    void restore_shapes(const json::object& from);
    void restore_batches(const json::object& from);
    void restore_rates(const json::object& from);

    Limits limits_;
    LruMap<Shape> shapes_;
    LruMap<ClassSet> class_sets_;  // by class_set_key()
    LruMap<GpuType> gpu_types_;
    LruMap<Recent> loads_;       // log seconds, by "worker\tmodel" and by "\tgpu type\tmodel"
    LruMap<Recent> load_rates_;  // log seconds per byte, by worker and by "\tgpu type"
    std::uint64_t version_ = 1;
    std::uint64_t learned_ = 0;
};

// What is left of a run that has gone on for `elapsed_s` and shows `progress` (0..1): the more of
// it is done, the more its own pace counts and the less what was expected before.
Expectation remaining_time(const Expectation& whole, double elapsed_s, double progress);

}  // namespace comfyd::scheduler
