// What is PostgreSQL's alone: how writes are grouped, texts that it would refuse, its tables.
#include "ledger/postgres_ledger.hpp"

#include <gmock/gmock.h>

#include <set>
#include <thread>

#include "ledger/postgres/connection.hpp"
#include "ledger/postgres/schema.hpp"
#include "ledger/postgres/values.hpp"
#include "ledger/test_support.hpp"
#include "support/postgres.hpp"
#include "support/wait.hpp"

namespace comfyd::ledger::test {
namespace {

using postgres::Migration;
using support::run_sql;
using testing::HasSubstr;

class PostgresLedgerTest : public testing::Test {
protected:
    ManualClock clock_;
    const std::string url_ = make_postgres_database();
    std::unique_ptr<ledger::Storage> ledger_ = get(open_storage(url_, {}, clock_));
};

Task<> accept_into(jobs::Ledger& ledger, jobs::NewJob job, std::vector<std::string>& outcomes) {
    auto outcome = co_await ledger.accept(std::move(job));
    outcomes.push_back(
        !outcome           ? std::string(to_string(outcome.error().code))
        : outcome->created ? "created"
                           : "existing"
    );
}

TEST_F(PostgresLedgerTest, WhatHasQueuedUpIsOneTransaction) {
    boost::asio::io_context& io = make_io();
    std::vector<std::string> outcomes;
    for (int i = 0; i < 1'000; ++i) {
        boost::asio::co_spawn(
            io,
            accept_into(*ledger_, make_new(simple_spec(), clock_.now()), outcomes),
            [](std::exception_ptr) {}
        );
    }
    io.run();
    EXPECT_THAT(outcomes, testing::Each("created"));
    const auto stats = ledger_->storage_stats();
    EXPECT_GE(stats.commits, 1'000U);
    EXPECT_LT(stats.batches, 100U);
    const auto transactions = run_sql(url_, "SELECT count(DISTINCT xmin::text) FROM jobs");
    EXPECT_LT(std::stoi(transactions), 100);
}

TEST_F(PostgresLedgerTest, TheFirstReadsOfAConnectionMayComeTogether) {
    const auto made = make_new(simple_spec(), clock_.now());
    await_value(ledger_->accept(made));
    boost::asio::io_context& io = make_io();
    int found = 0;
    constexpr int kReads = 100;
    for (int i = 0; i < kReads; ++i) {
        boost::asio::co_spawn(
            io,
            ledger_->find(made.change.job.id),
            [&found](std::exception_ptr, const Result<std::optional<jobs::Job>>& job) {
                found += job && *job ? 1 : 0;
            }
        );
    }
    io.run();
    EXPECT_EQ(found, kReads);
}

TEST_F(PostgresLedgerTest, WhatIsRefusedDoesNotDisturbTheOthers) {
    auto spec = simple_spec();
    spec.idempotency_key = "k";
    const auto first = make_new(spec, clock_.now());
    await_value(ledger_->accept(first));
    boost::asio::io_context& io = make_io();
    std::vector<std::string> good;
    std::vector<std::string> same_key;
    std::vector<std::string> same_id;
    for (int i = 0; i < 20; ++i) {
        const auto run = [&](jobs::NewJob job, std::vector<std::string>& into) {
            boost::asio::co_spawn(
                io, accept_into(*ledger_, std::move(job), into), [](std::exception_ptr) {}
            );
        };
        run(make_new(simple_spec(), clock_.now()), good);
        run(make_new(spec, clock_.now()), same_key);
        auto again = first;
        again.spec.idempotency_key.clear();
        run(again, same_id);
    }
    io.run();
    EXPECT_THAT(good, testing::Each("created"));
    EXPECT_THAT(same_key, testing::Each("existing"));
    EXPECT_THAT(same_id, testing::Each("conflict"));
    EXPECT_EQ(await_value(ledger_->counts(std::nullopt)).of(jobs::State::queued), 21U);
}

TEST_F(PostgresLedgerTest, AnyTextIsKept) {
    for (const std::string& text :
         {std::string("zero \0 byte", 11),
          std::string("\xff\xfe not UTF-8"),
          std::string("\xed\xa0\x80 half a pair"),
          std::string("\xf4\x8f\xbf\xbf"
                      "mark"),
          std::string("caf\xc3\xa9 \xf0\x9f\x8e\xa8"),
          std::string("cut \xc3")}) {
        auto spec = simple_spec(text);
        spec.workflow_id = text;
        spec.workflow = text;
        auto made = make_new(spec, clock_.now());
        ASSERT_TRUE(await_value(ledger_->accept(made)).created);
        const auto stored = await_value(ledger_->find_spec(made.change.job.id)).value();
        EXPECT_EQ(stored.tenant, text);
        EXPECT_EQ(stored.workflow_id, text);
        EXPECT_EQ(stored.workflow, text);
        EXPECT_EQ(await_value(ledger_->counts(text)).of(jobs::State::queued), 1U);
        spec.idempotency_key = text;
        EXPECT_TRUE(await_value(ledger_->accept(make_new(spec, clock_.now()))).created);
        EXPECT_FALSE(await_value(ledger_->accept(make_new(spec, clock_.now()))).created);
    }
}

TEST_F(PostgresLedgerTest, ChangesBeforeTheEndTouchNoIndex) {
    auto made = make_new(simple_spec(), clock_.now());
    await_value(ledger_->accept(made));
    await_value(ledger_->commit(get(jobs::start(made.change.job, "w", 2, clock_.now()))));
    ledger_.reset();
    EXPECT_EQ(
        run_sql(
            url_,
            "SELECT pg_stat_force_next_flush(); SELECT sum(n_tup_upd - n_tup_hot_upd) FROM "
            "pg_stat_user_tables WHERE relname LIKE 'jobs%'"
        ),
        "0"
    );
}

TEST_F(PostgresLedgerTest, AnArrivalAmongManyWaitingJobsIsReadByItsKey) {
    constexpr int kWaiting = 3'000;
    constexpr int kArrivals = 20;
    boost::asio::io_context& io = make_io();
    std::vector<std::string> outcomes;
    for (int i = 0; i < kWaiting; ++i) {
        boost::asio::co_spawn(
            io,
            accept_into(*ledger_, make_new(simple_spec(), clock_.now()), outcomes),
            [](std::exception_ptr) {}
        );
    }
    io.run();
    std::set<JobId> known;
    const auto read_on = [&](jobs::ArrivalCursor cursor, std::size_t& whole) {
        const jobs::IsKnown is_known = [&](const jobs::Arrival& one) {
            return !known.insert(one.job).second || known.size() <= kWaiting;
        };
        for (bool more = true; more;) {
            auto page = await_value(ledger_->shared()->arrivals("main", cursor, 1'000, is_known));
            whole += page.jobs.size();
            cursor = page.next;
            more = page.more;
        }
        return cursor;
    };
    std::size_t whole = 0;
    jobs::ArrivalCursor cursor = read_on({}, whole);
    EXPECT_EQ(whole, 0U);
    for (int i = 0; i < kArrivals; ++i) {
        await_value(ledger_->accept(make_new(simple_spec(), clock_.now())));
        cursor = read_on(cursor, whole);
    }
    EXPECT_EQ(whole, static_cast<std::size_t>(kArrivals));
    ledger_.reset();
    const std::string entries = run_sql(
        url_, "SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname LIKE 'jobs%'"
    );
    EXPECT_LT(std::stoi(entries), 3 * kWaiting)
        << "all that wait were looked at for each that came";
}

// Weeks that have a part of their own, as the digits of their Monday.
class PostgresPartitions : public testing::Test {
protected:
    std::string weeks() {
        return run_sql(
            url_,
            "SELECT string_agg(substr(relname, 6), ' ' ORDER BY relname) FROM pg_class c JOIN "
            "pg_inherits i ON i.inhrelid = c.oid WHERE i.inhparent = 'jobs'::regclass "
            "AND relname <> 'jobs_rest'"
        );
    }
    bool wait_for(const std::string& expected) {
        return support::wait_until([&] { return weeks() == expected; });
    }
    std::int64_t count(const std::string& sql) { return std::stoll(run_sql(url_, sql)); }

    const std::string url_ = support::PostgresServer::shared().make_database();
    ManualClock clock_;  // Tuesday, 14 November 2023
};

TEST_F(PostgresPartitions, ComingWeeksHaveTheirParts) {
    {
        const auto ledger = get(open_storage(url_, {}, clock_));
        EXPECT_TRUE(wait_for("20231113 20231120 20231127"));
        await_value(ledger->accept(make_new(simple_spec(), clock_.now())));
        await_value(
            ledger->accept(make_new(simple_spec(), clock_.now() + std::chrono::hours(24 * 40)))
        );
    }
    EXPECT_EQ(count("SELECT count(*) FROM jobs_20231113"), 1);
    EXPECT_EQ(count("SELECT count(*) FROM job_specs_20231113"), 1);
    EXPECT_EQ(count("SELECT count(*) FROM jobs_rest"), 1) << "there was no part for it yet";

    clock_.advance(std::chrono::hours(24 * 39));
    const auto ledger = get(open_storage(url_, {}, clock_));
    EXPECT_TRUE(wait_for("20231113 20231218 20231225 20240101"))
        << "those that have passed and are empty are gone";
    EXPECT_EQ(count("SELECT count(*) FROM jobs_rest"), 0);
    EXPECT_EQ(count("SELECT count(*) FROM jobs_20231218"), 1);
    EXPECT_EQ(await_value(ledger->list({})).jobs.size(), 2U);
    EXPECT_EQ(await_value(ledger->unfinished(std::nullopt, 10)).size(), 2U);
}

TEST(PostgresUrl, WhatItLeavesOpenIsSet) {
    const auto silent = get(postgres::with_defaults("postgres://u:secret@a:1,b:2/db"));
    EXPECT_THAT(silent, HasSubstr("host='a,b'"));
    EXPECT_THAT(silent, HasSubstr("port='1,2'"));
    EXPECT_THAT(silent, HasSubstr("target_session_attrs='read-write'"));
    EXPECT_THAT(silent, HasSubstr("connect_timeout='2'"));
    const auto told =
        get(postgres::with_defaults("postgres://a/db?target_session_attrs=any&sslmode=verify-full")
        );
    EXPECT_THAT(told, HasSubstr("target_session_attrs='any'"));
    EXPECT_THAT(told, HasSubstr("sslmode='verify-full'"));
    EXPECT_EQ(
        postgres::with_defaults("postgres://a/db?nonsense=1").error().code, Code::config_invalid
    );
    EXPECT_EQ(postgres::shown("postgres://u:secret@a:1/db"), "dbname=db host=a port=1");
}

class PostgresMigrations : public testing::Test {
protected:
    const std::string url_ = support::PostgresServer::shared().make_database();
    const Migration one_{1, 1, "CREATE TABLE jobs (a int)"};
    const Migration two_{2, 1, "ALTER TABLE jobs ADD COLUMN b int"};
    const Migration three_{3, 3, "ALTER TABLE jobs DROP COLUMN a"};

    std::string version() { return run_sql(url_, "SELECT version FROM schema_version"); }
};

TEST_F(PostgresMigrations, NodesThatStartAtOnceMakeTheTablesOnce) {
    const std::vector<Migration> steps{one_, two_, three_};
    std::vector<Result<>> outcomes(4);
    std::vector<std::thread> nodes;
    for (auto& outcome : outcomes) {
        nodes.emplace_back([&] { outcome = postgres::migrate(url_, steps); });
    }
    for (auto& node : nodes) {
        node.join();
    }
    for (const auto& outcome : outcomes) {
        EXPECT_TRUE(outcome) << outcome.error().message;
    }
    EXPECT_EQ(version(), "3");
}

TEST_F(PostgresMigrations, AnOlderBinaryGoesOnAfterAStepThatOnlyAdds) {
    get(postgres::migrate(url_, std::vector{one_, two_}));
    get(postgres::migrate(url_, std::vector{one_}));
    EXPECT_EQ(version(), "2") << "and changes nothing";
}

TEST_F(PostgresMigrations, ANewerSchemaIsRefused) {
    get(postgres::migrate(url_, std::vector{one_, two_, three_}));
    const auto refused = postgres::migrate(url_, std::vector{one_, two_});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::schema_too_new);
}

TEST_F(PostgresMigrations, AStepThatFailsLeavesNothingBehind) {
    const Migration broken{2, 1, "CREATE TABLE half (a int); nonsense"};
    EXPECT_EQ(
        postgres::migrate(url_, std::vector{one_, broken}).error().code, Code::storage_unavailable
    );
    EXPECT_EQ(version(), "1");
    EXPECT_EQ(run_sql(url_, "SELECT to_regclass('half') IS NULL"), "t");
    get(postgres::migrate(url_, std::vector{one_, two_}));
}

TEST_F(PostgresMigrations, DeliveriesFromBeforeKnowTheirReceiver) {
    std::vector<Migration> before;
    for (const Migration& step : postgres::migrations()) {
        if (step.version < 5) {
            before.push_back(step);
        }
    }
    get(postgres::migrate(url_, before));
    const std::string id = "01890000-0000-7000-8000-000000000001";
    run_sql(
        url_,
        "INSERT INTO jobs (id, domain, tenant, state, revision, sequence, epoch, priority, "
        "created_at, timeout_ms, attempt, max_attempts, cancel_requested, node_count, dialect, "
        "worker, workflow_id, webhook_events) VALUES ('" +
            id +
            "', 'main', 'acme', 0, 1, 1, 0, 5, 1, 1, 0, 3, false, 1, 'x', '', '', "
            "'execution.queued')"
    );
    run_sql(
        url_,
        "INSERT INTO job_specs (job, queued_sequence, requirement, spec, workflow) VALUES ('" + id +
            R"(', 1, '', '{"priority":5,"webhook":{"url":"https://example.com/","secret":"s"}}', '{}'))"
    );
    run_sql(
        url_,
        "INSERT INTO outbox (job, sequence, state, attempts, created_at, next_attempt_at) "
        "VALUES ('" +
            id + "', 1, 0, 0, 1, 1)"
    );
    ManualClock clock;
    PostgresLedger::Options options;
    options.url = url_;
    const auto ledger = get(PostgresLedger::open(options, clock));
    const auto due = await_value(ledger->due(clock.now(), 10));
    ASSERT_EQ(due.size(), 1U);
    EXPECT_EQ(std::get<jobs::Webhook>(due[0].target.value()).secret, "s");
    const auto spec = await_value(ledger->find_spec(due[0].job));
    EXPECT_EQ(spec.value().webhook.value().url, "https://example.com/");
    notify::DeliveryQuery query;
    query.tenant = "acme";
    EXPECT_EQ(await_value(ledger->list_deliveries(query)).deliveries.size(), 1U);
}

TEST_F(PostgresMigrations, ADatabaseOfAnotherProgramIsLeftAlone) {
    run_sql(url_, "CREATE TABLE jobs (theirs text)");
    EXPECT_EQ(
        postgres::migrate(url_, postgres::migrations()).error().code, Code::storage_unavailable
    );
    EXPECT_EQ(run_sql(url_, "SELECT to_regclass('schema_version') IS NULL"), "t");
}

TEST_F(PostgresMigrations, ASchemaThatBecomesTooNewIsNoticedByANodeThatRuns) {
    ManualClock clock;
    PostgresLedger::Options options;
    options.url = url_;
    options.patience = Millis(100);
    const auto ledger = get(PostgresLedger::open(options, clock));
    await_value(ledger->write_note("a", "b"));
    run_sql(url_, "UPDATE schema_version SET version = 1000, oldest_reader = 1000");
    run_sql(
        url_,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
        "AND pid <> pg_backend_pid()"
    );
    EXPECT_EQ(await_code(ledger->write_note("a", "c")), Code::schema_too_new);
}

}  // namespace
}  // namespace comfyd::ledger::test
