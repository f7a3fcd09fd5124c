// How SQLite purges: by index, behind everybody else, and so that the file gets shorter.
#include "ledger/sqlite/purge.hpp"

#include <gmock/gmock.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "ledger/older_database_test_support.hpp"
#include "ledger/sqlite/database.hpp"
#include "ledger/test_support.hpp"

namespace comfyd::ledger::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class PurgeTest : public testing::Test {
protected:
    PurgeTest() {
        options_.path = folder_.path() / "ledger.db";
        open();
    }
    void open() { ledger_ = get(SqliteLedger::open(options_, clock_)); }
    std::unique_ptr<sqlite::Database> raw() {
        return get(sqlite::Database::open(options_.path, sqlite::Mode::read_write, Millis(1'000)));
    }
    void end_jobs(int count, std::size_t bytes = 0) {
        for (int i = 0; i < count; ++i) {
            auto spec = simple_spec();
            spec.metadata["filling"] = std::string(bytes, 'x');
            auto made = make_new(std::move(spec), clock_.now());
            const auto job = made.change.job;
            await_value(ledger_->accept(std::move(made)));
            await_value(ledger_->commit(get(jobs::expire(job, 2, clock_.now()))));
        }
    }
    int purge_all() {
        clock_.advance(Millis(1));
        int count = 0;
        for (bool more = true; more;) {
            const auto purged = await_value(ledger_->purge(clock_.now(), 16));
            count += purged.jobs;
            more = purged.more;
        }
        return count;
    }

    TempFolder folder_;
    ManualClock clock_;
    SqliteLedger::Options options_;
    std::unique_ptr<SqliteLedger> ledger_;
};

TEST_F(PurgeTest, EndedJobsAreFoundByIndex) {
    auto db = raw();
    static const std::string kPlan = std::string("EXPLAIN QUERY PLAN ") + sqlite::kFindEnded;
    sqlite::Query query(*db, kPlan.c_str());
    query.bind(clock_.now(), clock_.now(), JobId{}, 9);
    std::string plan;
    get(sqlite::each_row(query, [&] { plan += query.string(3) + "\n"; }));
    EXPECT_THAT(plan, HasSubstr("SEARCH jobs USING INDEX jobs_ended ((finished_at,id)>(?,?)"));
    EXPECT_THAT(plan, Not(HasSubstr("SCAN")));
    EXPECT_THAT(plan, Not(HasSubstr("TEMP B-TREE")));
}

TEST_F(PurgeTest, TheFileGetsShorter) {
    end_jobs(100, 200'000);
    ledger_.reset();
    const auto full = std::filesystem::file_size(options_.path);
    open();
    EXPECT_EQ(purge_all(), 100);
    ledger_.reset();
    EXPECT_LT(std::filesystem::file_size(options_.path), full / 4);
}

TEST_F(PurgeTest, ADatabaseFromBeforeCanGetShorterToo) {
    ledger_.reset();
    get(raw()->execute("PRAGMA journal_mode = DELETE; PRAGMA auto_vacuum = NONE; VACUUM"));
    EXPECT_EQ(get(raw()->integer("PRAGMA auto_vacuum")), 0);
    open();
    ledger_.reset();
    EXPECT_EQ(get(raw()->integer("PRAGMA auto_vacuum")), 2);
}

TEST_F(PurgeTest, UsesOfAnOlderDatabaseAreFound) {
    const std::string hash = "blake3:" + std::string(64, 'b');
    auto spec = simple_spec();
    spec.workflow = R"({"1": {"inputs": {"image": {"__type": "core/ASSET", "info": {"hash": ")" +
                    hash + R"("}}}}})";
    await_value(ledger_->accept(make_new(spec, clock_.now())));
    ledger_.reset();
    get(raw()->execute(
        kAsVersion9 +
        "DROP TABLE asset_uses; DROP INDEX jobs_ended; "
        "ALTER TABLE jobs DROP COLUMN shared_prompt; "
        "ALTER TABLE jobs DROP COLUMN shared_place; PRAGMA user_version = 7"
    ));
    open();
    EXPECT_EQ(get(raw()->integer("SELECT count(*) FROM asset_uses")), 1);
}

Task<> purge_into(SqliteLedger& ledger, Time before, std::vector<std::string>& order) {
    auto purged = co_await ledger.purge(before, 16);
    order.push_back(purged ? "purge" : "failed");
}
Task<> accept_into(SqliteLedger& ledger, jobs::NewJob job, std::vector<std::string>& order) {
    auto accepted = co_await ledger.accept(std::move(job));
    order.push_back(accepted ? "accept" : "failed");
}

TEST_F(PurgeTest, AcceptsGoFirstAndAPurgeIsNotPutOffForEver) {
    end_jobs(20);
    clock_.advance(Millis(1));
    boost::asio::io_context& io = make_io();
    std::vector<std::string> order;
    const auto ignore = [](std::exception_ptr) {};
    {
        // While another program writes, everything queues up.
        auto other = raw();
        get(other->execute("BEGIN IMMEDIATE"));
        const auto accept = [&] {
            auto job = make_new(simple_spec(), clock_.now());
            boost::asio::co_spawn(io, accept_into(*ledger_, std::move(job), order), ignore);
        };
        accept();  // what the writer waits with
        boost::asio::co_spawn(io, purge_into(*ledger_, clock_.now(), order), ignore);
        for (int i = 0; i < 5'000; ++i) {
            accept();
        }
        io.poll();
        get(other->execute("COMMIT"));
    }
    io.run();
    ASSERT_EQ(order.size(), 5'002U);
    const auto at = std::find(order.begin(), order.end(), "purge") - order.begin();
    EXPECT_GE(at, 256) << "a whole batch of accepts that came later went before it";
    EXPECT_LT(at, 5'001) << "it had its turn before the last of them";
    EXPECT_EQ(std::count(order.begin(), order.end(), "failed"), 0);
    ledger_.reset();
}

}  // namespace
}  // namespace comfyd::ledger::test
