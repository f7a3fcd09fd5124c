// The profiles, models, requirements and types of GPU in use, each under a small number, with what
// is expected of a profile on a type of GPU. Owned by the scheduler.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "scheduler/estimates.hpp"
#include "scheduler/profile.hpp"

namespace comfyd::scheduler {

using Index = std::uint32_t;

// Values under small numbers, in the order in which they came.
template <class Value>
class Interned {
public:
    Index intern(const Value& value) {
        const auto [found, is_new] = indices_.emplace(value, static_cast<Index>(values_.size()));
        if (is_new) {
            values_.push_back(&found->first);
        }
        return found->second;
    }
    const Value& operator[](Index index) const { return *values_[index]; }
    std::size_t size() const { return values_.size(); }

private:
    std::unordered_map<Value, Index> indices_;
    std::vector<const Value*> values_;  // the keys of indices_, which never move
};

class ProfileTable {
public:
    // `merge_max`: jobs in one merged run.
    explicit ProfileTable(const Estimates& estimates, int merge_max = 1);

    struct Expected {
        std::uint64_t version = 0;
        double run_s = 0;
        std::uint64_t vram_bytes = 0;
        std::uint64_t batched_bytes = 0;  // Estimates::batched_bytes()
        bool is_known = false;            // Estimates::knows_runs()
        int batch_max = 1;                // jobs that are worth being merged
        double queue_s = 0;  // what one of many adds to a queue: its part of such a run
    };
    struct Entry {
        ProfilePtr profile;
        std::string content;  // by which it is found again
        Index requirement = 0;
        std::vector<Index> models;
        std::uint64_t memory_min = 0;  // that the request asks for, and that its runs have
        double memory_part = 0;        // of a GPU's memory, likewise
        bool is_for_gpu = false;       // a GPU or its memory is asked for
        // The largest of its models, by which jobs and workers are brought together; 0: has none.
        Index anchor = 0;
        std::size_t uses = 0;
        mutable std::vector<Expected> expected;  // by type of GPU
    };

    // Equal profiles get the same number. Each call is one use.
    Index intern(const ProfilePtr& profile);
    void release(Index profile);
    const Entry& operator[](Index profile) const { return entries_[profile]; }

    const Estimates& estimates() const { return estimates_; }
    Index intern_type(const std::string& gpu_type) { return types_.intern(gpu_type); }
    const std::string& type(Index gpu_type) const { return types_[gpu_type]; }
    Index intern_model(const Model& model);
    const Model& model(Index model) const { return models_[model]; }
    std::size_t model_count() const { return models_.size(); }
    const Requirement& requirement(Index requirement) const { return requirements_[requirement]; }

    const Expected& expected(Index profile, Index gpu_type) const;
    double load_s(Index model, Index gpu_type, const std::string& worker) const;
    double batch_s(Index profile, Index gpu_type, std::size_t jobs) const;
    // On the type of GPU that most workers have: what queues are measured in.
    double usual_s(Index profile) const { return expected(profile, usual_type_).queue_s; }
    Index usual_type() const { return usual_type_; }
    void set_usual_type(Index gpu_type) { usual_type_ = gpu_type; }

private:
    const Estimates& estimates_;
    int merge_max_;
    Interned<std::string> types_;
    Interned<Requirement> requirements_;
    Interned<std::string> model_names_;
    std::vector<Model> models_;
    std::vector<Entry> entries_;
    std::vector<Index> unused_;  // kept, because the same ones tend to come back
    std::unordered_map<const Profile*, Index> by_pointer_;
    std::unordered_map<std::string, Index> by_content_;
    Index usual_type_ = 0;
};

}  // namespace comfyd::scheduler
