#include "scheduler/profile_table.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace comfyd::scheduler {
namespace {

constexpr std::size_t kUnusedKept = 4096;

std::string content_of(const Profile& profile) {
    std::string content = profile.requirement.encoded();
    content += '\0';
    content += profile.shape;
    for (const Model& model : profile.models) {
        content += '\0';
        content += model.name;
    }
    const auto number = [&content](auto value) {
        content.append(reinterpret_cast<const char*>(&value), sizeof value);
    };
    number(profile.work_units);
    number(profile.heuristic_seconds);
    number(profile.vram_bytes);
    number(profile.can_be_merged);
    return content;
}

}  // namespace

ProfileTable::ProfileTable(const Estimates& estimates, int merge_max)
    : estimates_(estimates), merge_max_(merge_max) {
    types_.intern("");
    intern_model(Model{});  // 0 stands for none
}

Index ProfileTable::intern_model(const Model& model) {
    const Index index = model_names_.intern(model.name);
    if (index == models_.size()) {
        models_.push_back(model);
    } else if (model.bytes > 0) {
        models_[index].bytes = model.bytes;
    }
    return index;
}

Index ProfileTable::intern(const ProfilePtr& profile) {
    COMFYD_ASSERT(profile != nullptr);
    if (const auto known = by_pointer_.find(profile.get()); known != by_pointer_.end()) {
        entries_[known->second].uses += 1;
        return known->second;
    }
    std::string content = content_of(*profile);
    if (const auto known = by_content_.find(content); known != by_content_.end()) {
        entries_[known->second].uses += 1;
        return known->second;
    }
    Index index = static_cast<Index>(entries_.size());
    if (unused_.size() > kUnusedKept) {
        // The one that has been unused for longest gives its place.
        const auto oldest = std::find_if(unused_.begin(), unused_.end(), [this](Index unused) {
            return entries_[unused].uses == 0;
        });
        if (oldest != unused_.end()) {
            index = *oldest;
            unused_.erase(unused_.begin(), oldest + 1);
            by_pointer_.erase(entries_[index].profile.get());
            by_content_.erase(entries_[index].content);
        } else {
            unused_.clear();
        }
    }
    if (index == entries_.size()) {
        entries_.emplace_back();
    }
    Entry entry;
    entry.profile = profile;
    entry.requirement = requirements_.intern(profile->requirement.musts());
    const MachineWish wish = profile->requirement.machine();
    entry.memory_min = wish.memory_bytes();
    entry.memory_part = wish.memory_part;
    entry.is_for_gpu = !wish.gpu.empty() || wish.memory_gb > 0;
    for (const Model& model : profile->models) {
        const Index at = intern_model(model);
        entry.models.push_back(at);
        if (entry.anchor == 0 || models_[at].bytes > models_[entry.anchor].bytes) {
            entry.anchor = at;
        }
    }
    entry.uses = 1;
    entry.content = content;
    entries_[index] = std::move(entry);
    by_pointer_.emplace(profile.get(), index);
    by_content_.emplace(std::move(content), index);
    return index;
}

void ProfileTable::release(Index profile) {
    Entry& entry = entries_[profile];
    entry.uses -= 1;
    if (entry.uses == 0) {
        unused_.push_back(profile);
        if (unused_.size() > 4 * kUnusedKept) {
            // Some are listed twice, having been used again in between.
            std::sort(unused_.begin(), unused_.end());
            unused_.erase(std::unique(unused_.begin(), unused_.end()), unused_.end());
            std::erase_if(unused_, [this](Index unused) { return entries_[unused].uses > 0; });
        }
    }
}

const ProfileTable::Expected& ProfileTable::expected(Index profile, Index gpu_type) const {
    const Entry& entry = entries_[profile];
    if (entry.expected.size() <= gpu_type) {
        entry.expected.resize(gpu_type + 1);
    }
    Expected& expected = entry.expected[gpu_type];
    const std::uint64_t version = estimates_.version() + 1;  // 0 stands for never asked
    if (expected.version != version) {
        const std::string& type = types_[gpu_type];
        expected.run_s = std::max(0.0, estimates_.run_seconds(*entry.profile, type));
        expected.vram_bytes = estimates_.vram_bytes(*entry.profile, type);
        expected.batched_bytes = estimates_.batched_bytes(*entry.profile, type);
        expected.is_known = estimates_.knows_runs(*entry.profile, type);
        expected.version = version;
        expected.batch_max = 1;
        expected.queue_s = expected.run_s;
        if (entry.profile->can_be_merged && merge_max_ > 1) {
            expected.batch_max = worthwhile_batch(merge_max_, [&](int jobs) {
                return batch_s(profile, gpu_type, static_cast<std::size_t>(jobs));
            });
            expected.queue_s =
                batch_s(profile, gpu_type, static_cast<std::size_t>(expected.batch_max)) /
                expected.batch_max;
        }
    }
    return expected;
}

double ProfileTable::batch_s(Index profile, Index gpu_type, std::size_t jobs) const {
    return std::max(
        0.0,
        estimates_.batch_seconds(
            *entries_[profile].profile, types_[gpu_type], static_cast<int>(jobs)
        )
    );
}

double ProfileTable::load_s(Index model, Index gpu_type, const std::string& worker) const {
    return std::max(0.0, estimates_.load_seconds(models_[model], types_[gpu_type], worker));
}

}  // namespace comfyd::scheduler
