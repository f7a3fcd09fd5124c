// How connections to the ledger are set up.
#pragma once

#include <memory>
#include <string>

#include "base/task.hpp"
#include "ledger/postgres/connection.hpp"

namespace comfyd::ledger::postgres {

struct Writing {
    std::unique_ptr<Connection> connection;
    int slot = 0;  // of the counters that only this connection adds to
};

// Code::schema_too_new when the tables were changed beyond what this binary knows.
Task<Result<Writing>> open_writing(
    Executor executor, std::string conninfo, Connection::Limits limits
);
Task<Result<std::unique_ptr<Connection>>> open_reading(
    Executor executor, std::string conninfo, Connection::Limits limits
);

// Ends the writers of other nodes that have stopped in the middle of a transaction, with all that
// it holds. A node that goes on sends it again.
Statement end_half_sent();

}  // namespace comfyd::ledger::postgres
