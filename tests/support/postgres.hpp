// A PostgreSQL server of a test's own: data in a folder that goes away with it, a free port, no
// password. It dies with the test. All members from one thread.
//
// What is committed survives the death of the server, as synchronous_commit is on; only the machine
// itself must not die (fsync is off).
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <string>

#include "support/process.hpp"

namespace comfyd::support {

class PostgresServer {
public:
    // Throws std::runtime_error with what is missing when it cannot be started.
    PostgresServer();
    ~PostgresServer();
    PostgresServer(const PostgresServer&) = delete;
    PostgresServer& operator=(const PostgresServer&) = delete;

    // One for all tests of this process, started when first asked for.
    static PostgresServer& shared();

    // A new database, a copy of `original`; its URL.
    std::string make_database(const std::string& original = "template0");
    std::string url(const std::string& database) const;
    int port() const { return port_; }
    pid_t pid() const { return server_->pid(); }

    // As `pg_ctl -m immediate`: nothing is written out, connections break.
    void crash();
    void start();

private:
    std::filesystem::path folder_;
    int port_ = 0;
    int databases_ = 0;
    std::unique_ptr<Process> server_;
};

// A session of the test's own, for what is to stay open. Throws std::runtime_error.
class PostgresSession {
public:
    explicit PostgresSession(const std::string& url);
    ~PostgresSession();
    PostgresSession(const PostgresSession&) = delete;
    PostgresSession& operator=(const PostgresSession&) = delete;

    // The first column of the first row of the last statement.
    std::string run(const std::string& sql);

private:
    struct Connection;
    std::unique_ptr<Connection> connection_;
};

// Runs statements on a connection of its own; the first column of the first row of the last one.
// Throws std::runtime_error.
std::string run_sql(const std::string& url, const std::string& sql);

// All of one database into an empty one, perhaps of another server, by pg_dump and pg_restore.
// Throws std::runtime_error.
void copy_database(const std::string& from, const std::string& to);

}  // namespace comfyd::support
