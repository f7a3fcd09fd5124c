#include "jobs/job_table.hpp"

#include <utility>

namespace comfyd::jobs {
namespace {

constexpr std::size_t kOneMore = 1;
constexpr std::size_t kOneLess =
    static_cast<std::size_t>(-1);  // added, it wraps around to one less

}  // namespace

void JobTable::count(const Entry& entry, std::size_t by) {
    counts_[entry.place.index()] += by;
    if (std::holds_alternative<Ready>(entry.place) ||
        std::holds_alternative<Coalesced>(entry.place)) {
        queued_by_rank_[entry.rank].fetch_add(by, std::memory_order_relaxed);
    }
}

void JobTable::put(const JobId& id, Place place, std::size_t rank) {
    const auto [entry, is_new] = entries_.try_emplace(id);
    if (!is_new) {
        count(entry->second, kOneLess);
    }
    entry->second.place = std::move(place);
    entry->second.rank = static_cast<std::uint8_t>(rank);
    count(entry->second, kOneMore);
}

void JobTable::remove(const JobId& id) {
    if (const auto entry = entries_.find(id); entry != entries_.end()) {
        count(entry->second, kOneLess);
        entries_.erase(entry);
    }
}

std::shared_ptr<Attempt> JobTable::attempt(const JobId& id) const {
    const auto found = entries_.find(id);
    const auto* attempting =
        found == entries_.end() ? nullptr : std::get_if<Attempting>(&found->second.place);
    return attempting == nullptr ? nullptr : *attempting;
}

const RetryWaiting* JobTable::retry_waiting(const JobId& id) const {
    const auto found = entries_.find(id);
    const auto* waiting = found == entries_.end()
                              ? nullptr
                              : std::get_if<std::unique_ptr<RetryWaiting>>(&found->second.place);
    return waiting == nullptr ? nullptr : waiting->get();
}

std::vector<std::shared_ptr<Attempt>> JobTable::attempts() const {
    std::vector<std::shared_ptr<Attempt>> all;
    for (const auto& [id, entry] : entries_) {
        if (const auto* attempting = std::get_if<Attempting>(&entry.place)) {
            all.push_back(*attempting);
        }
    }
    return all;
}

JobTable::Besides& JobTable::besides(const JobId& id) {
    auto& besides = entries_.at(id).besides;
    if (!besides) {
        besides = std::make_unique<Besides>();
    }
    return *besides;
}

const JobTable::Besides* JobTable::find_besides(const JobId& id) const {
    const auto found = entries_.find(id);
    return found == entries_.end() ? nullptr : found->second.besides.get();
}

void JobTable::set_deadline(const JobId& id, Time deadline) {
    besides(id).deadline = deadline;
}

std::optional<Time> JobTable::deadline(const JobId& id) const {
    const Besides* known = find_besides(id);
    return known == nullptr ? std::nullopt : known->deadline;
}

void JobTable::set_secrets(const JobId& id, json::object secrets) {
    besides(id).secrets = std::move(secrets);
}

const json::object* JobTable::secrets(const JobId& id) const {
    const Besides* known = find_besides(id);
    return known == nullptr ? nullptr : &known->secrets;
}

std::size_t JobTable::queued_at_least(int rank) const {
    std::size_t count = 0;
    for (auto at = static_cast<std::size_t>(rank); at < queued_by_rank_.size(); ++at) {
        count += queued_by_rank_[at].load(std::memory_order_relaxed);
    }
    return count;
}

}  // namespace comfyd::jobs
