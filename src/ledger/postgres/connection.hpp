// A connection to PostgreSQL in pipeline mode: whoever runs something waits for its own answer, not
// for those of others. What is run at once is one transaction (unless it begins one of its own) and
// costs one round trip.
//
// One executor: call it only there. Answers that are still due when the connection is dropped say
// that it broke.
#pragma once

#include <libpq-fe.h>

#include <memory>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "base/error.hpp"
#include "base/task.hpp"
#include "ledger/postgres/values.hpp"

namespace comfyd::ledger::postgres {

struct Statement {
    const char* sql;  // a constant, whose address is its name: it is prepared once per connection
    std::vector<Value> values{};
    std::string once{};  // in place of sql, where that is nullptr: not prepared
};
using Statements = std::vector<Statement>;

// Why statements were not executed.
struct Failure {
    bool is_broken = false;  // the connection is gone, and it is not known whether they were
    std::string state{};     // SQLSTATE, five characters
    std::string message{};
    std::size_t statement = 0;  // which of them was refused

    // The same again may go well: two transactions were in each other's way, or a statement should
    // have been prepared by one before it, which was refused.
    bool may_pass() const { return state.starts_with("40") || state == "26000"; }
    Error to_error() const;
};
// One for each statement.
using Answers = tl::expected<std::vector<Rows>, Failure>;

class Connection {
public:
    struct Limits {
        Millis connect{5'000};  // with all hosts of the URL together
        Millis answer{20'000};  // beyond it the connection counts as broken
    };
    // `settings` are run at first. Code::storage_unavailable.
    static Task<Result<std::unique_ptr<Connection>>> open(
        Executor executor, std::string conninfo, Limits limits, Statements settings
    );
    ~Connection();
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    Task<Answers> run(Statements statements);
    // The same in two steps, so that others can be sent before it is answered.
    struct Flight;
    std::shared_ptr<Flight> send(const Statements& statements);
    Task<Answers> receive(std::shared_ptr<Flight> flight);
    bool is_broken() const;
    std::size_t waiting() const;  // that are to be answered

private:
    class Impl;
    explicit Connection(std::shared_ptr<Impl> impl);
    std::shared_ptr<Impl> impl_;  // shared with the waits for its socket
};

// What the user's URL leaves open, so that a server that is gone is noticed within seconds.
Result<std::string> with_defaults(const std::string& url);
// Without a password, for messages.
std::string shown(const std::string& url);

}  // namespace comfyd::ledger::postgres
