// A write that reads before it decides: a transaction of its own, of several round trips.
#pragma once

#include <optional>
#include <utility>

#include "base/task.hpp"
#include "ledger/postgres/batch.hpp"
#include "ledger/postgres/connection.hpp"

namespace comfyd::ledger::postgres {

// Rolled back by its owner unless commit() succeeded.
class Transaction {
public:
    Transaction(Connection& connection, Circumstances circumstances)
        : at(std::move(circumstances)), connection_(connection) {}

    // The first begins it.
    Task<Answers> ask(Statements statements);
    Task<tl::expected<void, Failure>> commit(Statements last);
    Task<> roll_back();

    const Circumstances at;

private:
    Statements begun(Statements statements);

    Connection& connection_;
    bool is_open_ = false;
};

using Done = tl::expected<void, Failure>;

class Procedure {
public:
    virtual ~Procedure() = default;
    virtual std::size_t bytes() const { return 256; }
    // Sets the outcome, when nothing failed: after commit(), or without it when it refuses. A
    // transaction whose answer was lost is run again (Circumstances::is_again).
    virtual Task<Done> run(Transaction& transaction) = 0;
    virtual bool is_decided() const = 0;
    virtual void refuse(const Error& error) = 0;
};

template <class T>
class ProcedureOf : public Procedure {
public:
    using Value = T;
    bool is_decided() const override { return outcome.has_value(); }
    void refuse(const Error& error) override { outcome.emplace(fail(error)); }

    std::optional<Result<T>> outcome;
};

}  // namespace comfyd::ledger::postgres
