// What is expected of a run before it happens. The scheduler asks, the predictor answers from what
// it has learned; tests and the simulator may answer from a table. One owner; no clock.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "scheduler/batch_times.hpp"
#include "scheduler/profile.hpp"

namespace comfyd::scheduler {

class Estimates {
public:
    virtual ~Estimates() = default;
    // Of one run on this type of GPU with all models loaded.
    virtual double run_seconds(const Profile& profile, const std::string& gpu_type) const = 0;
    // Of bringing one model into the memory of this worker.
    virtual double load_seconds(
        const Model& model, const std::string& gpu_type, const std::string& worker
    ) const = 0;
    // Whether run_seconds() rests on runs that were seen, and not on the plan of the workflow
    // alone.
    virtual bool knows_runs(const Profile&, const std::string& /*gpu_type*/) const { return true; }
    // At the peak of a run. Rises after a run was out of memory.
    virtual std::uint64_t vram_bytes(const Profile& profile, const std::string& gpu_type) const = 0;
    // Of so many jobs in one merged run; run_seconds() for one.
    virtual double batch_seconds(const Profile& profile, const std::string& gpu_type, int jobs)
        const {
        return BatchTimes().seconds(jobs, run_seconds(profile, gpu_type));
    }
    // What each job but the first adds to the peak of a merged run: the models are there once.
    virtual std::uint64_t batched_bytes(const Profile& profile, const std::string& gpu_type) const {
        std::uint64_t models = 0;
        for (const Model& model : profile.models) {
            models += model.bytes;
        }
        const std::uint64_t whole = vram_bytes(profile, gpu_type);
        return whole > models ? whole - models : 0;
    }
    // How many times as fast each type of GPU runs as the one that was seen last, as far as both
    // have run the same.
    virtual std::map<std::string, double> gpu_speeds() const { return {}; }
    // Changes whenever an answer may have changed by more than a little, so that what was made of
    // them can be kept.
    virtual std::uint64_t version() const = 0;
};

}  // namespace comfyd::scheduler
