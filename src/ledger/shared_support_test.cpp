#include <libpq-fe.h>

#include "ledger/memory_roster.hpp"
#include "ledger/memory_shared.hpp"
#include "ledger/postgres_ledger.hpp"
#include "ledger/shared_test_support.hpp"
#include "support/postgres.hpp"
#include "support/wait.hpp"

namespace comfyd::ledger::test {
namespace {

class MemoryStorage final : public SharedStorage {
public:
    explicit MemoryStorage(Clock& clock) : ledger_(clock) {}

    SharedNode node(int number) override {
        NodeId id;
        id.uuid.bytes[15] = static_cast<std::uint8_t>(number + 1);
        return {id, ledger_, shared_, leases_, roster_};
    }
    void pass(Millis time) override { clock_.advance(time); }
    void cut_session(int number) override { leases_.end_session(node(number).id); }
    std::function<void()> begin_accept(jobs::NewJob job) override {
        const auto transaction = ledger_.begin();
        return [this, transaction, job = std::move(job)] {
            EXPECT_TRUE(await_value(ledger_.accept_in(transaction, job)).created);
        };
    }

private:
    ManualClock clock_;  // of the leases
    MemoryLedger ledger_;
    MemoryLeases leases_{clock_};
    MemoryRoster roster_{clock_};
    MemoryShared shared_{ledger_, leases_};
};

// A connection that is left in the middle of a transaction.
class Session {
public:
    explicit Session(const std::string& url) : connection_(PQconnectdb(url.c_str()), PQfinish) {}
    void run(const std::string& sql) {
        const std::unique_ptr<PGresult, decltype(&PQclear)> result(
            PQexec(connection_.get(), sql.c_str()), PQclear
        );
        const auto status = PQresultStatus(result.get());
        EXPECT_TRUE(status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK)
            << PQerrorMessage(connection_.get());
    }

private:
    std::unique_ptr<PGconn, decltype(&PQfinish)> connection_;
};

class PostgresStorage final : public SharedStorage {
public:
    explicit PostgresStorage(Clock& clock) {
        for (int number = 0; number < 2; ++number) {
            PostgresLedger::Options options;
            options.url = url_ + "?application_name=" + name_of(number);
            ledgers_.push_back(get(PostgresLedger::open(options, clock)));
        }
    }

    SharedNode node(int number) override {
        NodeId id;
        id.uuid.bytes[15] = static_cast<std::uint8_t>(number + 1);
        auto& ledger = *ledgers_.at(static_cast<std::size_t>(number));
        return {id, ledger, ledger, ledger, ledger};
    }
    void pass(Millis time) override {
        const std::string by = std::to_string(time.count()) + " * interval '1 millisecond'";
        support::run_sql(
            url_,
            "UPDATE leases SET expires_at = expires_at - " + by + ", quiet_at = quiet_at - " + by
        );
        support::run_sql(url_, "UPDATE nodes SET seen_at = seen_at - " + by);
    }
    void cut_session(int number) override {
        const std::string its = " FROM pg_stat_activity WHERE application_name = '" +
                                name_of(number) + "' AND datname = current_database()";
        support::run_sql(url_, "SELECT pg_terminate_backend(pid)" + its);
        EXPECT_TRUE(support::wait_until([&] {
            return support::run_sql(url_, "SELECT count(*)" + its) == "0";
        }));
    }
    std::function<void()> begin_accept(jobs::NewJob job) override {
        const auto session = std::make_shared<Session>(url_);
        const std::string id = "'" + job.change.job.id.to_string() + "'";
        session->run("BEGIN");
        session->run(
            "INSERT INTO jobs (id, domain, tenant, state, revision, sequence, epoch, priority, "
            "created_at, timeout_ms, attempt, max_attempts, cancel_requested, node_count, dialect, "
            "worker, workflow_id) VALUES (" +
            id + ", '" + job.spec.domain +
            "', 'local', 0, 1, 1, 0, 5, 0, 1, 0, 3, false, 0, '', "
            "'', '')"
        );
        session->run(
            "INSERT INTO job_specs (job, queued_sequence, requirement, spec, workflow) VALUES (" +
            id + ", 1, 'SaveImage', '{}', '{}')"
        );
        return [session] { session->run("COMMIT"); };
    }

private:
    static std::string name_of(int number) { return "node" + std::to_string(number); }

    const std::string url_ = make_postgres_database();
    std::vector<std::unique_ptr<PostgresLedger>> ledgers_;
};

}  // namespace

std::vector<SharedBackend> shared_backends() {
    return {
        {"memory", [](Clock& clock) { return std::make_unique<MemoryStorage>(clock); }},
        {"postgres", [](Clock& clock) { return std::make_unique<PostgresStorage>(clock); }},
    };
}

}  // namespace comfyd::ledger::test
