#include "ledger/restored.hpp"

#include <libpq-fe.h>

#include <memory>
#include <string_view>
#include <utility>

#include "ledger/postgres/connection.hpp"
#include "ledger/postgres/schema.hpp"

namespace comfyd::ledger {
namespace {

constexpr char kSessions[] =
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND "
    "application_name = current_setting('application_name') AND pid <> pg_backend_pid()";
// Nobody leads, and the next who does has an epoch that no lead of the time since the back-up can
// have had.
constexpr char kRaiseEpochs[] =
    "UPDATE leases SET epoch = epoch + 1000000, node = NULL, backend = NULL, "
    "expires_at = 'epoch', queued = 0";
// Those of one transaction are found in the order of their ids, which is that of their time.
constexpr char kArriveAnew[] =
    "UPDATE jobs SET arrival = pg_current_xact_id() WHERE outcome IS NULL";

struct CloseConnection {
    void operator()(PGconn* connection) const { PQfinish(connection); }
};
struct ClearResult {
    void operator()(PGresult* result) const { PQclear(result); }
};
using Answer = std::unique_ptr<PGresult, ClearResult>;

// What is not committed when it goes is rolled back.
class Session {
public:
    explicit Session(const std::string& conninfo) : connection_(PQconnectdb(conninfo.c_str())) {}

    Result<Answer> run(const char* sql) {
        Answer answer(PQexec(connection_.get(), sql));
        const auto status = PQresultStatus(answer.get());
        if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
            return fail(
                Code::storage_unavailable,
                std::string("PostgreSQL refused it: ") + PQerrorMessage(connection_.get())
            );
        }
        return answer;
    }
    // The rows that a statement changed.
    Result<std::uint64_t> change(const char* sql) {
        auto answer = run(sql);
        if (!answer) {
            return fail(std::move(answer.error()));
        }
        return std::stoull(PQcmdTuples(answer->get()));
    }

private:
    std::unique_ptr<PGconn, CloseConnection> connection_;
};

Result<> refuse_nodes(Session& session) {
    const auto sessions = session.run(kSessions);
    if (!sessions) {
        return fail(sessions.error());
    }
    const std::string_view count = PQgetvalue(sessions->get(), 0, 0);
    if (count != "0") {
        return fail(
            Code::conflict,
            "comfyd has " + std::string(count) +
                " other connections to this database: stop all nodes first"
        );
    }
    return {};
}

}  // namespace

Result<Restored> declare_restored(const std::string& postgres) {
    const auto conninfo = postgres::with_defaults(postgres);
    if (!conninfo) {
        return fail(conninfo.error());
    }
    Session session(*conninfo);
    // First: the connection of a migration that has just ended may still be counted.
    if (auto alone = refuse_nodes(session); !alone) {
        return fail(std::move(alone.error()));
    }
    if (auto migrated = postgres::migrate(*conninfo, postgres::migrations()); !migrated) {
        return fail(std::move(migrated.error()));
    }
    if (auto begun = session.run("BEGIN"); !begun) {
        return fail(std::move(begun.error()));
    }
    Restored restored;
    const auto domains = session.change(kRaiseEpochs);
    if (!domains) {
        return fail(domains.error());
    }
    restored.domains = *domains;
    const auto unfinished = session.change(kArriveAnew);
    if (!unfinished) {
        return fail(unfinished.error());
    }
    restored.unfinished = *unfinished;
    // A dump has no statistics, and plans without them are bad ones.
    for (const char* last : {"COMMIT", "ANALYZE"}) {
        if (auto done = session.run(last); !done) {
            return fail(std::move(done.error()));
        }
    }
    return restored;
}

}  // namespace comfyd::ledger
