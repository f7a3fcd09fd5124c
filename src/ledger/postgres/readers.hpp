// Connections for reads: a handful, each of which answers many at once. While the server is away a
// read waits for it no longer than its breaker rests, and none is held up by those before it. One
// executor.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/dependency.hpp"
#include "base/task.hpp"
#include "ledger/postgres/connection.hpp"

namespace comfyd::ledger::postgres {

class Readers {
public:
    // `server` outlives it.
    Readers(
        Executor executor,
        std::string conninfo,
        Connection::Limits limits,
        std::size_t count,
        Dependency& server
    );

    // Over the least busy connection. Tried once more where that one was broken.
    Task<Result<std::vector<Rows>>> read(Statements statements);
    void close();

private:
    struct Place {
        explicit Place(Executor executor) : connected(executor) {}
        std::shared_ptr<Connection> connection;
        bool is_connecting = false;
        Signal connected;
        std::size_t waiting = 0;
    };
    Task<Result<std::shared_ptr<Connection>>> connection_of(Place& place);
    Task<Result<std::shared_ptr<Connection>>> connect(Place& place);
    Place& least_busy();

    const Executor executor_;
    const std::string conninfo_;
    const Connection::Limits limits_;
    Dependency& server_;
    bool is_closed_ = false;
    std::vector<std::unique_ptr<Place>> places_;
};

}  // namespace comfyd::ledger::postgres
