// What is particular to SQLite: files, locks, schema, failing disks, threads.
#include "ledger/sqlite_ledger.hpp"

#include <gmock/gmock.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <deque>
#include <fstream>
#include <future>
#include <sstream>
#include <thread>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "assets/blake3.hpp"
#include "assets/blob_key.hpp"
#include "base/pool.hpp"
#include "ledger/older_database_test_support.hpp"
#include "ledger/sqlite/database.hpp"
#include "ledger/sqlite/fault_vfs.hpp"
#include "ledger/sqlite/schema.hpp"
#include "ledger/test_support.hpp"

namespace comfyd::ledger::test {
namespace {

using jobs::State;
using testing::HasSubstr;

class SqliteTest : public testing::Test {
protected:
    SqliteTest() { options_.path = folder_.path() / "data" / "ledger.db"; }

    void open() { ledger_ = get(SqliteLedger::open(options_, clock_)); }
    Error open_error() {
        auto opened = SqliteLedger::open(options_, clock_);
        EXPECT_FALSE(opened);
        return opened ? Error() : opened.error();
    }
    jobs::Job accept(jobs::Spec spec = simple_spec()) {
        auto job = make_new(std::move(spec), clock_.now());
        const auto made = job.change.job;
        EXPECT_TRUE(await_value(ledger_->accept(std::move(job))).created);
        return made;
    }
    std::optional<Code> accept_code(jobs::Spec spec = simple_spec()) {
        return await_code(ledger_->accept(make_new(std::move(spec), clock_.now())));
    }
    std::uint64_t queued() { return await_value(ledger_->counts(std::nullopt)).of(State::queued); }
    void execute_raw(const std::string& script) {
        auto db =
            get(sqlite::Database::open(options_.path, sqlite::Mode::read_write, Millis(1'000)));
        get(db->execute(script));
    }
    std::string integrity() {
        constexpr static char kCheck[] = "PRAGMA integrity_check";
        auto db =
            get(sqlite::Database::open(options_.path, sqlite::Mode::read_write, Millis(1'000)));
        sqlite::Query query(*db, kCheck);
        EXPECT_TRUE(get(query.bind().next()));
        return query.string(0);
    }

    TempFolder folder_;
    ManualClock clock_;
    SqliteLedger::Options options_;
    std::unique_ptr<SqliteLedger> ledger_;
};

TEST_F(SqliteTest, AnExecutorThatMayNotWaitReadsOnThePool) {
    boost::asio::io_context core;
    boost::asio::io_context other;
    Pool pool(1);
    std::promise<void> go_on;
    options_.reads_apart = {core.get_executor(), &pool};
    open();
    const auto job = accept();
    const auto read_on = [&](boost::asio::io_context& context) {
        return boost::asio::co_spawn(context, ledger_->find(job.id), boost::asio::use_future);
    };
    // While the pool has other work nothing is read for the core, and it is not held up by that.
    auto busy = boost::asio::co_spawn(
        other,
        pool.run([waits = go_on.get_future().share()] {
            waits.wait();
            return true;
        }),
        boost::asio::use_future
    );
    other.poll();
    auto on_core = read_on(core);
    core.poll();
    EXPECT_EQ(on_core.wait_for(Millis(0)), std::future_status::timeout);

    auto elsewhere = read_on(other);
    other.restart();
    other.poll();
    ASSERT_EQ(elsewhere.wait_for(Millis(0)), std::future_status::ready);
    EXPECT_TRUE(get(elsewhere.get()));

    go_on.set_value();
    core.restart();
    core.run();
    EXPECT_EQ(get(on_core.get())->id, job.id);
    other.restart();
    other.run();
    EXPECT_TRUE(busy.get());
}

// What was read may be kept for as long as it says so.
TEST_F(SqliteTest, ChangesAreToldBeforeTheyCanBeSeen) {
    open();
    const jobs::Job first = accept();
    const auto changes = [this] { return ledger_->changes().value_or(0); };
    const std::uint64_t before = changes();
    EXPECT_GT(before, 0U);
    accept();
    accept();
    EXPECT_EQ(changes(), before) << "new jobs change none that were there";
    auto cancelled = jobs::request_cancel(first, first.sequence + 1, clock_.now());
    ASSERT_TRUE(cancelled);
    ASSERT_TRUE(await_code(ledger_->commit(std::move(*cancelled))) == std::nullopt);
    const std::uint64_t after = changes();
    EXPECT_GT(after, before);
    EXPECT_EQ(await_code(ledger_->discard(first.id)), std::nullopt);
    EXPECT_GT(changes(), after);
}

TEST_F(SqliteTest, FilesAreForTheirOwnerOnly) {
    open();
    accept();
    const auto mode = [](const std::filesystem::path& path) {
        struct stat about{};
        EXPECT_EQ(::stat(path.c_str(), &about), 0) << path;
        return about.st_mode & 0777U;
    };
    EXPECT_EQ(mode(options_.path.parent_path()), 0700U);
    EXPECT_EQ(mode(options_.path), 0600U);
    EXPECT_EQ(mode(options_.path.string() + "-wal"), 0600U);
}

TEST_F(SqliteTest, ClosingLeavesOneWholeFile) {
    open();
    const auto job = accept();
    ledger_.reset();
    EXPECT_FALSE(std::filesystem::exists(options_.path.string() + "-wal"));
    EXPECT_EQ(integrity(), "ok");
    open();
    EXPECT_TRUE(await_value(ledger_->find(job.id)));
}

TEST_F(SqliteTest, SecretsForTheWorkerAreNotOnDisk) {
    open();
    auto spec = full_spec();
    spec.secret_extra_data = {{"api_key", "xyzzy-plugh"}};
    accept(spec);
    ledger_.reset();
    std::ifstream file(options_.path, std::ios::binary);
    std::stringstream bytes;
    bytes << file.rdbuf();
    EXPECT_THAT(bytes.str(), HasSubstr("portrait-v3"));
    EXPECT_THAT(bytes.str(), testing::Not(HasSubstr("xyzzy-plugh")));
}

TEST_F(SqliteTest, ASecondOpenerIsRefused) {
    open();
    const auto error = open_error();
    EXPECT_EQ(error.code, Code::storage_unavailable);
    EXPECT_THAT(error.message, HasSubstr("in use by process " + std::to_string(::getpid())));
    ledger_.reset();
    open();
}

TEST_F(SqliteTest, ANewerSchemaIsRefused) {
    open();
    ledger_.reset();
    execute_raw("PRAGMA user_version = 99");
    const auto error = open_error();
    EXPECT_EQ(error.code, Code::schema_too_new);
    EXPECT_THAT(error.message, HasSubstr("99"));
}

TEST_F(SqliteTest, ADatabaseOfAnotherProgramIsRefused) {
    std::filesystem::create_directories(options_.path.parent_path());
    std::ofstream(options_.path).close();
    execute_raw("CREATE TABLE other (x)");
    EXPECT_THAT(open_error().message, HasSubstr("another program"));
}

TEST_F(SqliteTest, AFileThatIsNoDatabaseIsRefused) {
    std::filesystem::create_directories(options_.path.parent_path());
    std::ofstream(options_.path) << std::string(100'000, 'x');
    const auto error = open_error();
    EXPECT_EQ(error.code, Code::storage_unavailable);
    EXPECT_THAT(error.message, HasSubstr("damaged"));
}

TEST_F(SqliteTest, AFolderThatCannotBeWrittenIsRefused) {
    options_.path = "/proc/comfyd/ledger.db";
    EXPECT_EQ(open_error().code, Code::storage_unavailable);
}

TEST_F(SqliteTest, MigrationsRunOnceAndKeepTheData) {
    using sqlite::Migration;
    const auto path = folder_.path() / "m.db";
    std::ofstream(path).close();
    auto db = get(sqlite::Database::open(path, sqlite::Mode::read_write, Millis(0)));
    constexpr Migration kFirst{1, "CREATE TABLE t (a); INSERT INTO t VALUES (1);"};
    constexpr Migration kSecond{2, "ALTER TABLE t ADD COLUMN b DEFAULT 5;"};
    constexpr Migration kBroken{3, "INSERT INTO t VALUES (2, 2); CREATE NONSENSE;"};
    const Migration one[] = {kFirst};
    const Migration two[] = {kFirst, kSecond};
    const Migration three[] = {kFirst, kSecond, kBroken};
    get(sqlite::migrate(*db, one));
    get(sqlite::migrate(*db, two));
    get(sqlite::migrate(*db, two));
    EXPECT_EQ(get(db->integer("SELECT sum(a + b) FROM t")), 6);
    EXPECT_FALSE(sqlite::migrate(*db, three));
    EXPECT_EQ(get(db->integer("SELECT count(*) FROM t")), 1);
    EXPECT_EQ(get(db->integer("PRAGMA user_version")), 2);
    EXPECT_EQ(sqlite::migrate(*db, one).error().code, Code::schema_too_new);
}

TEST_F(SqliteTest, FilesOfAnOlderDatabaseAreTakenOver) {
    open();
    const auto add = [this](const std::string& hash, const char* bytes) {
        assets::Asset asset;
        asset.id = AssetId::make(clock_.now());
        asset.hash = hash;
        asset.size_bytes = 5;
        asset.bytes = bytes == nullptr ? nullptr : std::make_shared<const std::string>(bytes);
        await_value(ledger_->add(asset));
        return asset;
    };
    const std::string hash = assets::blake3_name("large");
    const auto first = add(hash, nullptr);
    const auto second = add(hash, nullptr);
    const auto small = add(assets::blake3_name("small"), "small");
    ledger_.reset();
    execute_raw(kAsVersion9);
    open();
    const auto blobs = await_value(ledger_->blobs_of(hash));
    ASSERT_EQ(blobs.size(), 1U);
    EXPECT_EQ(blobs[0].generation, 0U);
    EXPECT_EQ(blobs[0].state, assets::BlobState::live);
    EXPECT_EQ(blobs[0].key, assets::make_blob_key(hash, 0));
    EXPECT_EQ(blobs[0].size_bytes, 5U);
    EXPECT_TRUE(await_value(ledger_->blobs_of(small.hash)).empty());
    EXPECT_EQ(await_value(ledger_->find(first.id))->store, "local");
    EXPECT_FALSE(await_value(ledger_->find(second.id))->crc32);
}

TEST_F(SqliteTest, SharedRunsOfAnOlderDatabaseAreFound) {
    open();
    const auto alone = accept();
    const auto shares = accept();
    const jobs::BatchPlace shared{PromptId::make(clock_.now()), 2};
    await_value(ledger_->commit(get(jobs::start(alone, "w", 2, clock_.now()))));
    await_value(ledger_->commit(get(jobs::start(shares, "w", 2, clock_.now(), shared))));
    ledger_.reset();
    execute_raw(
        kAsVersion9 +
        "ALTER TABLE jobs DROP COLUMN shared_prompt; ALTER TABLE jobs DROP COLUMN shared_place; "
        "PRAGMA user_version = 8"
    );
    open();
    EXPECT_FALSE(await_value(ledger_->find(alone.id)).value().shared);
    const auto found = await_value(ledger_->find(shares.id)).value().shared;
    ASSERT_TRUE(found);
    EXPECT_EQ(found->prompt, shared.prompt);
    EXPECT_EQ(found->place, shared.place);
}

TEST_F(SqliteTest, DeliveriesOfAnOlderDatabaseKnowTheirReceiver) {
    open();
    auto spec = full_spec();
    spec.webhook->events = {"execution.queued", "execution.started"};
    const auto job = accept(spec);
    await_value(ledger_->commit(get(jobs::start(job, "w", 2, clock_.now()))));
    ledger_.reset();
    execute_raw(
        "UPDATE job_specs SET spec = json_set(spec, '$.webhook', json((SELECT "
        "json_remove(t.target, '$.kind') FROM outbox_targets t JOIN jobs j ON j.id = t.job "
        "WHERE j.number = job_specs.number)));"
        "CREATE TABLE old (job BLOB NOT NULL, sequence INTEGER NOT NULL, state INTEGER NOT NULL, "
        "attempts INTEGER NOT NULL, created_at INTEGER NOT NULL, next_attempt_at INTEGER NOT NULL, "
        "ended_at INTEGER, error TEXT, PRIMARY KEY (job, sequence)) WITHOUT ROWID;"
        "INSERT INTO old SELECT job, sequence, state, attempts, created_at, next_attempt_at, "
        "ended_at, error FROM outbox; DROP TABLE outbox; ALTER TABLE old RENAME TO outbox;"
        "CREATE INDEX outbox_due ON outbox (next_attempt_at) WHERE state = 0;" +
        kAsVersion9
    );
    open();
    EXPECT_EQ(await_value(ledger_->find_spec(job.id))->webhook->to_json(), spec.webhook->to_json());
    for (const std::uint64_t sequence : {1U, 2U}) {
        const auto due = await_value(ledger_->due(clock_.now(), 10));
        ASSERT_EQ(due.size(), 1U);
        EXPECT_EQ(due[0].sequence, sequence);
        EXPECT_EQ(std::get<jobs::Webhook>(due[0].target.value()).secret, spec.webhook->secret);
        await_value(ledger_->delivered(due[0], clock_.now()));
    }
    notify::DeliveryQuery query;
    query.tenant = spec.tenant;
    const auto page = await_value(ledger_->list_deliveries(query));
    ASSERT_EQ(page.deliveries.size(), 2U);
    EXPECT_EQ(page.deliveries[0].event, jobs::EventType::started);
}

TEST_F(SqliteTest, AFullDatabaseRefusesAndRecovers) {
    options_.database_bytes_max = 1024 * 1024;
    open();
    auto spec = simple_spec();
    spec.workflow.assign(100'000, 'x');
    std::uint64_t stored = 0;
    std::optional<Code> code;
    while (!code) {
        ASSERT_LT(stored, 100U);
        code = accept_code(spec);
        stored += code ? 0 : 1;
    }
    EXPECT_EQ(code, Code::storage_full);
    EXPECT_EQ(queued(), stored);
    EXPECT_EQ(ledger_->healthy().error().code, Code::storage_full);
    EXPECT_TRUE(ledger_->healthy().error().message.starts_with("the disk is full"))
        << ledger_->healthy().error().message;
    ledger_.reset();
    EXPECT_EQ(integrity(), "ok");
    options_.database_bytes_max = 0;
    open();
    EXPECT_EQ(queued(), stored);
    accept(spec);
    EXPECT_TRUE(ledger_->healthy());
}

struct Fault {
    const char* name;
    std::atomic<int>& where;
    int result;
    Code expected;

    friend void PrintTo(const Fault& shown, std::ostream* out) { *out << shown.name; }
};

class FaultTest : public SqliteTest, public testing::WithParamInterface<Fault> {
protected:
    sqlite::FaultVfs disk_;  // goes after the ledger is closed in TearDown()
    void TearDown() override { ledger_.reset(); }
};
INSTANTIATE_TEST_SUITE_P(
    Disk,
    FaultTest,
    testing::Values(
        Fault{"DiskFull", sqlite::FaultVfs::write_result, SQLITE_FULL, Code::storage_full},
        Fault{
            "WriteError",
            sqlite::FaultVfs::write_result,
            SQLITE_IOERR_WRITE,
            Code::storage_unavailable
        },
        Fault{
            "SyncError",
            sqlite::FaultVfs::sync_result,
            SQLITE_IOERR_FSYNC,
            Code::storage_unavailable
        },
        Fault{
            "ReadOnly", sqlite::FaultVfs::write_result, SQLITE_READONLY, Code::storage_unavailable
        }
    ),
    [](const auto& info) { return info.param.name; }
);

TEST_P(FaultTest, AFailedWriteLeavesNothingAndLaterOnesWork) {
    const auto& fault = GetParam();
    options_.probe_interval = std::chrono::hours(1);
    open();
    const auto before = accept();
    for (int round = 0; round < 3; ++round) {
        fault.where = fault.result;
        const auto refused = make_new(full_spec(), clock_.now());
        for (int i = 0; i < 2; ++i) {
            EXPECT_EQ(await_code(ledger_->accept(refused)), fault.expected);
            EXPECT_EQ(
                await_code(ledger_->commit(get(jobs::start(before, "w", 2, clock_.now())))),
                fault.expected
            );
        }
        EXPECT_EQ(ledger_->healthy().error().code, fault.expected);
        EXPECT_FALSE(await_value(ledger_->find(refused.change.job.id)));
        EXPECT_EQ(describe(await_value(ledger_->find(before.id)).value()), describe(before));
        fault.where = SQLITE_OK;
        accept();
        EXPECT_TRUE(ledger_->healthy());
    }
    EXPECT_EQ(queued(), 4U);
    EXPECT_GT(ledger_->storage_stats().failed_batches, 0U);
    ledger_.reset();
    EXPECT_EQ(integrity(), "ok");
    open();
    EXPECT_EQ(queued(), 4U);
}

TEST_P(FaultTest, HealthComesBackWithoutAnybodyWriting) {
    const auto& fault = GetParam();
    options_.probe_interval = Millis(1);
    open();
    fault.where = fault.result;
    EXPECT_EQ(accept_code(), fault.expected);
    EXPECT_FALSE(ledger_->healthy());
    EXPECT_NE(ledger_->storage_stats().breaker, CircuitBreaker::State::closed);
    fault.where = SQLITE_OK;
    while (!ledger_->healthy()) {
        std::this_thread::yield();
    }
    EXPECT_EQ(ledger_->storage_stats().breaker, CircuitBreaker::State::closed);
}

TEST_F(SqliteTest, PagesOfACommitAreWrittenTogether) {
    sqlite::FaultVfs disk;
    open();
    auto spec = simple_spec();
    jobs::Job latest;
    for (const int kilobytes : {0, 9, 100, 300, 1500}) {
        spec.workflow.assign(1000U * static_cast<std::size_t>(kilobytes), 'x');
        accept(spec);  // the log's own head is written with the first
        const int before = disk.log_writes;
        latest = accept(spec);
        // Other pages than the workflow's have less than 200 KB.
        EXPECT_LE(disk.log_writes - before, 2 + kilobytes / 100) << kilobytes;
    }
    const int before = disk.log_writes;
    accept();
    EXPECT_EQ(disk.log_writes - before, 1);
    EXPECT_EQ(await_value(ledger_->find(latest.id)).value().state, jobs::State::queued);
    ledger_.reset();
    EXPECT_EQ(integrity(), "ok");
}

TEST_F(SqliteTest, AnotherProgramsLockIsAnErrorThatPasses) {
    options_.busy_timeout = Millis(1);
    open();
    {
        auto other =
            get(sqlite::Database::open(options_.path, sqlite::Mode::read_write, Millis(0)));
        get(other->execute("BEGIN IMMEDIATE"));
        const auto refused = await(ledger_->accept(make_new(simple_spec(), clock_.now())));
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code, Code::storage_unavailable);
        EXPECT_THAT(refused.error().message, HasSubstr(options_.path.string()));
        EXPECT_EQ(queued(), 0U);
        get(other->execute("ROLLBACK"));
    }
    accept();
}

Task<> accept_into(
    SqliteLedger& ledger, jobs::NewJob job, std::vector<Result<jobs::Accepted>>& outcomes
) {
    auto outcome = co_await ledger.accept(std::move(job));
    outcomes.push_back(std::move(outcome));
}

class QueueTest : public SqliteTest {
protected:
    void spawn(jobs::Spec spec = simple_spec()) {
        boost::asio::co_spawn(
            *io_,
            accept_into(*ledger_, make_new(std::move(spec), clock_.now()), outcomes_),
            [](std::exception_ptr) {}
        );
    }
    int count(std::optional<Code> code) const {
        int found = 0;
        for (const auto& outcome : outcomes_) {
            found += (outcome ? !code : code == outcome.error().code) ? 1 : 0;
        }
        return found;
    }
    // The writer may be leaving the executor still when the last task has ended.
    void TearDown() override { ledger_.reset(); }

    std::unique_ptr<boost::asio::io_context> io_ = std::make_unique<boost::asio::io_context>(1);
    std::vector<Result<jobs::Accepted>> outcomes_;
};

TEST_F(QueueTest, StoppingFinishesWhatIsQueuedAndRefusesTheRest) {
    open();
    for (int i = 0; i < 1'000; ++i) {
        spawn();
    }
    io_->poll();
    ledger_->stop();
    for (int i = 0; i < 10; ++i) {
        spawn();
    }
    io_->restart();
    io_->run();
    EXPECT_EQ(count(std::nullopt), 1'000);
    EXPECT_EQ(count(Code::shutting_down), 10);
    EXPECT_EQ(await_code(ledger_->find(JobId{})), Code::shutting_down);
    ledger_.reset();
    open();
    EXPECT_EQ(queued(), 1'000U);
}

TEST_F(QueueTest, AnExecutorMayGoWithoutRunningWhatWasFinished) {
    open();
    for (int i = 0; i < 100; ++i) {
        spawn();
    }
    io_->poll();
    ledger_->stop();
    io_.reset();
    ledger_.reset();
    open();
    EXPECT_EQ(queued(), 100U);
}

TEST_F(QueueTest, NewJobsAreRefusedWhenTooMuchWaits) {
    options_.queue_bytes_max = 100'000;
    open();
    auto other = get(sqlite::Database::open(options_.path, sqlite::Mode::read_write, Millis(0)));
    get(other->execute("BEGIN IMMEDIATE"));
    auto spec = simple_spec();
    spec.workflow.assign(20'000, 'x');
    for (int i = 0; i < 50; ++i) {
        spawn(spec);
    }
    io_->poll();
    EXPECT_GE(count(Code::queue_full), 40);
    get(other->execute("ROLLBACK"));
    other.reset();
    io_->restart();
    io_->run();
    EXPECT_GE(count(std::nullopt), 4);
    EXPECT_EQ(queued(), static_cast<std::uint64_t>(count(std::nullopt)));
}

TEST_F(QueueTest, ManyWritesShareATransaction) {
    open();
    for (int i = 0; i < 2'000; ++i) {
        spawn();
    }
    io_->restart();
    io_->run();
    const auto stats = ledger_->storage_stats();
    EXPECT_EQ(count(std::nullopt), 2'000);
    EXPECT_EQ(stats.commits, 2'000U);
    EXPECT_LT(stats.batches, 500U);
    EXPECT_EQ(stats.queue_depth, 0U);
    EXPECT_GT(stats.wal_bytes, 0U);
    std::uint64_t measured = 0;
    for (const auto bucket : stats.latency.counts) {
        measured += bucket;
    }
    EXPECT_EQ(measured, 2'000U);
}

TEST_F(QueueTest, TheLogIsKeptShort) {
    options_.wal_bytes_max = 4 * 1024 * 1024;
    open();
    auto spec = simple_spec();
    spec.workflow.assign(50'000, 'x');
    for (int i = 0; i < 1'000; ++i) {
        spawn(spec);
    }
    io_->restart();
    io_->run();
    EXPECT_EQ(count(std::nullopt), 1'000);
    EXPECT_GT(ledger_->storage_stats().checkpoints, 1U);
    // A batch more than the limit, because a batch is never split.
    EXPECT_LT(std::filesystem::file_size(options_.path.string() + "-wal"), 32U * 1024 * 1024);
}

// Accepts, changes and reads back; notes whether it ever continued on another thread.
Task<> live(SqliteLedger& ledger, const Clock& clock, std::atomic<int>& wrong) {
    const auto home = std::this_thread::get_id();
    for (int i = 0; i < 20; ++i) {
        auto made = make_new(simple_spec("t" + std::to_string(i % 3)), clock.now());
        const auto job = made.change.job;
        const auto accepted = co_await ledger.accept(std::move(made));
        auto change = get(jobs::start(job, "w", 2, clock.now()));
        const auto committed = co_await ledger.commit(change);
        const auto found = co_await ledger.find(job.id);
        const auto page = co_await ledger.list({});
        const bool is_right = accepted && committed && found && *found && (*found)->revision == 2 &&
                              page && !page->jobs.empty() && std::this_thread::get_id() == home;
        wrong += is_right ? 0 : 1;
    }
}

TEST_F(SqliteTest, SeveralExecutorsEachContinueOnTheirOwn) {
    open();
    std::atomic<int> wrong = 0;
    std::deque<boost::asio::io_context> contexts;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        boost::asio::io_context& io = contexts.emplace_back(1);
        for (int i = 0; i < 8; ++i) {
            boost::asio::co_spawn(io, live(*ledger_, clock_, wrong), [&](std::exception_ptr error) {
                wrong += error ? 1 : 0;
            });
        }
        threads.emplace_back([&io] { io.run(); });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(await_value(ledger_->counts(std::nullopt)).of(State::running), 4U * 8 * 20);
    ledger_.reset();
}

TEST_F(QueueTest, AFilterThatMatchesAlmostNothingEndsItsPageEarly) {
    open();
    auto wanted = simple_spec();
    wanted.workflow_id = "wanted";
    const auto job = accept(wanted);
    for (int i = 0; i < 25'000; ++i) {
        spawn();
    }
    io_->restart();
    io_->run();
    jobs::ListQuery query;
    query.workflow_id = "wanted";
    auto page = await_value(ledger_->list(query));
    EXPECT_TRUE(page.jobs.empty());
    ASSERT_TRUE(page.next_cursor);
    query.cursor = page.next_cursor;
    page = await_value(ledger_->list(query));
    ASSERT_EQ(page.jobs.size(), 1U);
    EXPECT_EQ(page.jobs[0].id, job.id);
    EXPECT_FALSE(page.next_cursor);
}

}  // namespace
}  // namespace comfyd::ledger::test
