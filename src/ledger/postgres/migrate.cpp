#include <libpq-fe.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "ledger/postgres/schema.hpp"

namespace comfyd::ledger::postgres {
namespace {

constexpr char kMakeVersions[] =
    "CREATE TABLE IF NOT EXISTS schema_version (only_row bool PRIMARY KEY CHECK (only_row), "
    "version int4 NOT NULL, oldest_reader int4 NOT NULL)";
constexpr char kHasVersions[] = "SELECT to_regclass('schema_version') IS NOT NULL";
constexpr char kHasTables[] = "SELECT to_regclass('jobs') IS NOT NULL";

struct CloseConnection {
    void operator()(PGconn* connection) const { PQfinish(connection); }
};
struct ClearResult {
    void operator()(PGresult* result) const { PQclear(result); }
};
using Handle = std::unique_ptr<PGconn, CloseConnection>;
using Answer = std::unique_ptr<PGresult, ClearResult>;

Error error_of(const PGconn* connection, const std::string& doing) {
    std::string message = PQerrorMessage(connection);
    while (!message.empty() && message.back() == '\n') {
        message.pop_back();
    }
    return Error(Code::storage_unavailable, "cannot " + doing + ": " + message);
}

Result<Answer> execute(PGconn* connection, const std::string& script, const std::string& doing) {
    Answer answer(PQexec(connection, script.c_str()));
    const auto status = PQresultStatus(answer.get());
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        return fail(error_of(connection, doing));
    }
    return answer;
}

std::string text(const Answer& answer, int column = 0) {
    return PQntuples(answer.get()) == 0 ? "" : PQgetvalue(answer.get(), 0, column);
}

// Before anything is written: a database for something else is left as it is.
Result<> check_owner(PGconn* connection) {
    const auto encoding = execute(connection, "SHOW server_encoding", "ask for the encoding");
    if (!encoding) {
        return fail(encoding.error());
    }
    if (text(*encoding) != "UTF8") {
        return fail(
            Code::storage_unavailable,
            "the database has the encoding " + text(*encoding) +
                "; make one for comfyd with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0"
        );
    }
    // In this order: another node may make both meanwhile, and makes the versions first.
    const auto others = execute(connection, kHasTables, "look for the tables");
    if (!others) {
        return fail(others.error());
    }
    const auto known = execute(connection, kHasVersions, "look for the tables");
    if (!known) {
        return fail(known.error());
    }
    if (text(*known) == "f" && text(*others) == "t") {
        return fail(
            Code::storage_unavailable,
            "the database has a table named jobs that is not comfyd's; make a database for comfyd"
        );
    }
    return {};
}

struct Version {
    int version = 0;
    int oldest_reader = 0;
};

Result<Version> read_version(PGconn* connection) {
    const auto read = execute(
        connection, "SELECT version, oldest_reader FROM schema_version", "read the schema's version"
    );
    if (!read) {
        return fail(read.error());
    }
    if (PQntuples(read->get()) == 0) {
        return Version{};
    }
    return Version{std::stoi(text(*read)), std::stoi(text(*read, 1))};
}

Result<> run_step(PGconn* connection, const Migration& step) {
    const std::string version = std::to_string(step.version);
    const std::string oldest = std::to_string(step.oldest_reader);
    const auto done = execute(
        connection,
        "BEGIN;" + std::string(step.script) + ";INSERT INTO schema_version VALUES (true, " +
            version + ", " + oldest + ") ON CONFLICT (only_row) DO UPDATE SET version = " +
            version + ", oldest_reader = " + oldest + ";COMMIT",
        "make the tables of version " + version
    );
    return done ? Result<>() : fail(done.error());
}

Result<> run_missing(PGconn* connection, std::span<const Migration> steps) {
    if (auto made = execute(connection, kMakeVersions, "make the table of versions"); !made) {
        return fail(std::move(made.error()));
    }
    const auto stored = read_version(connection);
    if (!stored) {
        return fail(stored.error());
    }
    const int newest = steps.empty() ? 0 : steps.back().version;
    if (stored->version > newest && stored->oldest_reader > newest) {
        return fail(
            Code::schema_too_new,
            "the database has schema version " + std::to_string(stored->version) +
                ", which needs a comfyd that knows " + std::to_string(stored->oldest_reader) +
                "; this one knows " + std::to_string(newest) + ": start a newer one"
        );
    }
    for (const Migration& step : steps) {
        if (step.version > stored->version) {
            if (auto done = run_step(connection, step); !done) {
                return done;
            }
        }
    }
    return {};
}

// The time for one try is short, because there may be other hosts; a busy machine may need more.
Handle connect_patiently(const std::string& conninfo) {
    constexpr int kTriesMore = 2;
    Handle connection(PQconnectdb(conninfo.c_str()));
    for (int i = 0; i < kTriesMore && PQstatus(connection.get()) != CONNECTION_OK; ++i) {
        const std::string_view why = PQerrorMessage(connection.get());
        if (why.find("timeout expired") == std::string_view::npos) {
            break;
        }
        connection = Handle(PQconnectdb(conninfo.c_str()));
    }
    return connection;
}

}  // namespace

Result<> migrate(const std::string& conninfo, std::span<const Migration> steps) {
    const Handle connection = connect_patiently(conninfo);
    if (PQstatus(connection.get()) != CONNECTION_OK) {
        return fail(error_of(connection.get(), "connect to PostgreSQL"));
    }
    PQsetNoticeReceiver(connection.get(), [](void*, const PGresult*) {}, nullptr);
    if (auto checked = check_owner(connection.get()); !checked) {
        return checked;
    }
    const auto locked = execute(
        connection.get(),
        "SELECT pg_advisory_lock(" + std::to_string(static_cast<int>(LockClass::migration)) +
            ", 0)",
        "wait for another node to make the tables"
    );
    if (!locked) {
        return fail(locked.error());
    }
    // The lock goes with the connection.
    return run_missing(connection.get(), steps);
}

}  // namespace comfyd::ledger::postgres
