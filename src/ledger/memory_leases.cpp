#include "ledger/memory_leases.hpp"

#include <algorithm>
#include <utility>

namespace comfyd::ledger {

bool MemoryLeases::is_free(const Row& row, const NodeId& taker) const {
    const NodeId& holder = row.term.node;
    return holder == NodeId{} || holder == taker || !row.has_session ||
           row.expires_at < clock_.now();
}

std::optional<cluster::Taken> MemoryLeases::take_now(
    const std::string& domain, const NodeId& node
) {
    Row& row = rows_[domain];
    if (!is_free(row, node)) {
        return std::nullopt;
    }
    const Time now = clock_.now();
    if (row.expires_at != Time::min()) {
        row.quiet_at = std::max(row.quiet_at, row.expires_at + cluster::kSendTime);
    }
    row.term = jobs::Term{domain, row.term.epoch + 1, node};
    row.has_session = true;
    row.expires_at = now + cluster::kLeaseLife;
    return cluster::Taken{row.term, row.quiet_at > now ? row.quiet_at - now : Millis(0)};
}

bool MemoryLeases::renew_now(const jobs::Term& term, std::uint64_t queued) {
    if (!holds(term)) {
        return false;
    }
    Row& row = rows_.at(term.domain);
    row.has_session = true;
    row.expires_at = clock_.now() + cluster::kLeaseLife;
    row.queued = queued;
    return true;
}

void MemoryLeases::resign_now(const jobs::Term& term) {
    if (holds(term)) {
        Row& row = rows_.at(term.domain);
        row.term.node = NodeId{};
        row.expires_at = clock_.now() - cluster::kSendTime;
    }
}

bool MemoryLeases::holds(const jobs::Term& term) const {
    const auto row = rows_.find(term.domain);
    return row != rows_.end() && row->second.term == term;
}

void MemoryLeases::end_session(const NodeId& node) {
    for (auto& [domain, row] : rows_) {
        row.has_session = row.has_session && row.term.node != node;
    }
}

Task<Result<std::optional<cluster::Taken>>> MemoryLeases::take(std::string domain, NodeId node) {
    co_return take_now(domain, node);
}

Task<Result<>> MemoryLeases::renew(jobs::Term term, std::uint64_t queued) {
    if (!renew_now(term, queued)) {
        co_return fail(Code::lead_lost, "another node leads the domain " + term.domain);
    }
    co_return Result<>();
}

Task<Result<>> MemoryLeases::resign(jobs::Term term) {
    resign_now(term);
    co_return Result<>();
}

Task<Result<std::vector<cluster::Lease>>> MemoryLeases::all() {
    std::vector<cluster::Lease> leases;
    for (const auto& [domain, row] : rows_) {
        leases.push_back({row.term, row.expires_at - clock_.now(), row.queued});
    }
    co_return leases;
}

}  // namespace comfyd::ledger
