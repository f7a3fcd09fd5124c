// The leases table and the advisory lock that goes with each lead.
//
// Whoever takes a lead holds the lock of its domain: it goes when the session ends, so that a node
// that died is followed at once and not only when its lease has run out. A holder whose lease has
// run out, but whose session lives on (it is stopped, or cut off), is ended first: what it has half
// sent would keep the row locked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cluster/leases.hpp"
#include "ledger/postgres/procedure.hpp"

namespace comfyd::ledger::postgres {

class TakeLease final : public ProcedureOf<std::optional<cluster::Taken>> {
public:
    TakeLease(std::string domain, NodeId node) : domain_(std::move(domain)), node_(node) {}
    Task<Done> run(Transaction& transaction) override;

private:
    std::string domain_;
    NodeId node_;
};

class RenewLease final : public WriteOf<void> {
public:
    RenewLease(jobs::Term term, std::uint64_t queued) : term_(std::move(term)), queued_(queued) {}
    std::size_t bytes() const override { return 128; }
    bool join(Batch& batch) override;
    void conclude(const Batch& batch) override;

private:
    jobs::Term term_;
    std::uint64_t queued_;
    std::size_t place_ = 0;
};

class ResignLease final : public WriteOf<void> {
public:
    explicit ResignLease(jobs::Term term) : term_(std::move(term)) {}
    std::size_t bytes() const override { return 128; }
    bool join(Batch& batch) override;
    void conclude(const Batch&) override { outcome.emplace(); }

private:
    jobs::Term term_;
};

Statement find_leases();
std::vector<cluster::Lease> read_leases(const Rows& rows);

}  // namespace comfyd::ledger::postgres
