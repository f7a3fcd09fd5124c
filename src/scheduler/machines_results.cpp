// Which results workers still have: ComfyUI keeps those of its latest prompts, and answers an equal
// prompt with them.
#include <algorithm>

#include "scheduler/machines.hpp"

namespace comfyd::scheduler {

void Machines::keep_results(Index worker, Index profile, std::uint64_t content) {
    Machine& machine = machines_[worker];
    if (machine.latest_profile != profile) {
        if (machine.latest_profile && latest_with(*machine.latest_profile) == worker) {
            latest_.erase(*machine.latest_profile);
        }
        machine.latest_profile = profile;
    }
    latest_[profile] = worker;
    if (content == 0 || std::ranges::find(machine.results, content) != machine.results.end()) {
        if (content != 0) {
            results_[content] = worker;
        }
        return;
    }
    std::uint64_t& oldest = machine.results[machine.next_result];
    if (const auto gone = results_.find(oldest); gone != results_.end() && gone->second == worker) {
        results_.erase(gone);
    }
    oldest = content;
    machine.next_result = (machine.next_result + 1) % machine.results.size();
    results_[content] = worker;
}

void Machines::forget_results(Index worker) {
    Machine& machine = machines_[worker];
    for (const std::uint64_t content : machine.results) {
        if (const auto kept = results_.find(content);
            kept != results_.end() && kept->second == worker) {
            results_.erase(kept);
        }
    }
    machine.results.fill(0);
    if (machine.latest_profile && latest_with(*machine.latest_profile) == worker) {
        latest_.erase(*machine.latest_profile);
    }
    machine.latest_profile.reset();
}

std::optional<Index> Machines::with_results(std::uint64_t content) const {
    const auto found = content == 0 ? results_.end() : results_.find(content);
    return found == results_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Index> Machines::latest_with(Index profile) const {
    const auto found = latest_.find(profile);
    return found == latest_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace comfyd::scheduler
