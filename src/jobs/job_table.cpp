#include "jobs/job_table.hpp"

#include <utility>

namespace comfyd::jobs {
namespace {

bool is_queued(const JobTable::Place& place) {
    return std::holds_alternative<Ready>(place) || std::holds_alternative<Coalesced>(place);
}

}  // namespace

JobTable::~JobTable() {
    for (const auto& [id, entry] : entries_) {
        count_out(entry);
    }
}

void JobTable::count_in(const Entry& entry) {
    ++counts_[entry.place.index()];
    if (is_queued(entry.place)) {
        backlog_.add(entry.rank);
    }
}

void JobTable::count_out(const Entry& entry) {
    --counts_[entry.place.index()];
    if (is_queued(entry.place)) {
        backlog_.take(entry.rank);
    }
}

void JobTable::put(const JobId& id, Place place, std::size_t rank) {
    const auto [entry, is_new] = entries_.try_emplace(id);
    if (!is_new) {
        count_out(entry->second);
    }
    entry->second.place = std::move(place);
    entry->second.rank = static_cast<std::uint8_t>(rank);
    count_in(entry->second);
}

void JobTable::remove(const JobId& id) {
    if (const auto entry = entries_.find(id); entry != entries_.end()) {
        count_out(entry->second);
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

void JobTable::set_told(const JobId& id, std::uint64_t sequence) {
    besides(id).told = sequence;
}

std::uint64_t JobTable::told(const JobId& id) const {
    const Besides* known = find_besides(id);
    return known == nullptr ? 0 : known->told;
}

}  // namespace comfyd::jobs
